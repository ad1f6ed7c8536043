//! Which threads of a program are sampled, by name or kernel id.

/// Bytes of all names together.
const CAPACITY: usize = 240;
/// Longest thread name that Linux keeps.
const MAX_NAME: usize = 15;

/// A list of threads: only those are sampled, or all others. It allocates nothing, because signal handlers read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadFilter {
    is_exclusion: bool,
    /// Names and ids with a colon after each.
    list: [u8; CAPACITY],
    length: usize,
}

/// Why a list of threads cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadFilterError {
    /// A name is empty, or has a comma, a colon or an equals sign, which settings cannot hold.
    Name,
    /// There are too many names.
    TooLong,
}

impl ThreadFilter {
    /// All threads.
    pub const ALL: Self = Self {
        is_exclusion: true,
        list: [0; CAPACITY],
        length: 0,
    };

    /// Only these threads, or with `is_exclusion` all others. Linux keeps 15 bytes of a name, so longer names are cut.
    ///
    /// # Errors
    /// A name cannot be passed on, or there are too many.
    pub fn new<'n>(is_exclusion: bool, names: impl Iterator<Item = &'n str>) -> Result<Self, ThreadFilterError> {
        let mut filter = Self {
            is_exclusion,
            ..Self::ALL
        };
        for name in names {
            if name.is_empty() || name.contains([',', ':', '=']) {
                return Err(ThreadFilterError::Name);
            }
            let name = &name.as_bytes()[..name.len().min(MAX_NAME)];
            let end = filter.length + name.len() + 1;
            let place = filter
                .list
                .get_mut(filter.length..end)
                .ok_or(ThreadFilterError::TooLong)?;
            place[..name.len()].copy_from_slice(name);
            place[name.len()] = b':';
            filter.length = end;
        }
        Ok(filter)
    }

    /// Whether all threads are sampled.
    pub fn is_all(&self) -> bool {
        self.is_exclusion && self.length == 0
    }

    /// Whether a thread of this name (without its final zero) and kernel id is sampled.
    pub fn admits(&self, name: &[u8], id: u32) -> bool {
        let mut entries = self.list[..self.length].split(|byte| *byte == b':');
        let is_listed = entries.any(|entry| !entry.is_empty() && (entry == name || is_number(entry, id)));
        is_listed != self.is_exclusion
    }

    /// The value of the setting; `None` for all threads.
    pub(crate) fn to_text(self) -> Option<String> {
        let kind = if self.is_exclusion { '-' } else { '+' };
        let list = String::from_utf8_lossy(&self.list[..self.length]).into_owned();
        (!self.is_all()).then(|| format!("{kind}{list}"))
    }

    /// Reads the value of the setting; all threads if it is none.
    pub(crate) fn from_text(text: &str) -> Self {
        let (kind, list) = match text.as_bytes() {
            [kind @ (b'+' | b'-'), list @ ..] if list.len() <= CAPACITY => (*kind, list),
            _ => return Self::ALL,
        };
        let mut filter = Self {
            is_exclusion: kind == b'-',
            length: list.len(),
            ..Self::ALL
        };
        filter.list[..list.len()].copy_from_slice(list);
        filter
    }
}

/// Whether text is the decimal form of a number.
fn is_number(text: &[u8], number: u32) -> bool {
    let value = text.iter().try_fold(0_u32, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u32::from(digit))
    });
    value == Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_chosen_by_name_or_id() {
        let of = |is_exclusion, names: &[&str]| ThreadFilter::new(is_exclusion, names.iter().copied()).unwrap();
        let only = of(false, &["worker", "77"]);
        assert!(only.admits(b"worker", 1) && only.admits(b"other", 77));
        assert!(!only.admits(b"work", 1) && !only.admits(b"", 7));
        let but = of(true, &["a_spinning_thread_of_the_program"]);
        assert!(!but.admits(b"a_spinning_thre", 5) && but.admits(b"main", 5));
        assert!(ThreadFilter::ALL.admits(b"", 0) && ThreadFilter::ALL.is_all() && !but.is_all());
        for filter in [only, but, ThreadFilter::ALL] {
            let text = filter.to_text().unwrap_or_default();
            assert_eq!(ThreadFilter::from_text(&text), filter);
        }
    }

    #[test]
    fn lists_that_cannot_be_passed_on_are_refused() {
        let error = |names: &[&str]| ThreadFilter::new(true, names.iter().copied()).unwrap_err();
        assert_eq!(error(&["a,b"]), ThreadFilterError::Name);
        assert_eq!(error(&[""]), ThreadFilterError::Name);
        assert_eq!(error(&["fifteen_letters"; 16]), ThreadFilterError::TooLong);
        for odd in ["", "x", "*a:", &format!("+{}", "a".repeat(CAPACITY + 1))] {
            assert_eq!(ThreadFilter::from_text(odd), ThreadFilter::ALL);
        }
    }
}
