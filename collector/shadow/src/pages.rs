//! The memory of another process, of which a burst reads copies of pages.
//!
//! A page is copied when a burst first reads it, and forgotten at the end of the burst. The cache is direct-mapped: a
//! page replaces an earlier one in the same slot.

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Slots of the cache.
const PLACES: usize = 1024;
/// Marks an empty slot.
const NONE: u64 = u64::MAX;

/// A copy of a page.
pub type Page = [u8; PAGE];

/// Copies a page of the other process, given its address. False: it cannot be read. It is called within a burst, so it
/// neither allocates nor panics.
pub type ReadPage = Box<dyn FnMut(u64, &mut Page) -> bool>;

/// The pages of another process that the burst has read.
pub(super) struct Pages {
    read: ReadPage,
    /// By place: the number of the page.
    numbers: Box<[u64]>,
    copies: Box<[Page]>,
}

impl Pages {
    pub(super) fn new(read: ReadPage) -> Self {
        Self {
            read,
            numbers: vec![NONE; PLACES].into_boxed_slice(),
            copies: vec![[0; PAGE]; PLACES].into_boxed_slice(),
        }
    }

    /// Forgets all copies.
    pub(super) fn forget(&mut self) {
        self.numbers.fill(NONE);
    }

    /// The copy of the page with this number.
    fn page(&mut self, number: u64) -> Option<&Page> {
        // Code, stack and heap lie far apart, their pages next to each other.
        let place = (number ^ number >> 10 ^ number >> 20) as usize % PLACES;
        if self.numbers[place] != number {
            self.numbers[place] = NONE;
            if !(self.read)(number.wrapping_mul(PAGE as u64), &mut self.copies[place]) {
                return None;
            }
            self.numbers[place] = number;
        }
        Some(&self.copies[place])
    }

    /// Copies any number of bytes. False: some cannot be read.
    pub(super) fn copy(&mut self, address: u64, to: &mut [u8]) -> bool {
        let mut done = 0;
        while done < to.len() {
            let at = address.wrapping_add(done as u64);
            let offset = at as usize % PAGE;
            let size = (PAGE - offset).min(to.len() - done);
            let Some(page) = self.page(at / PAGE as u64) else {
                return false;
            };
            to[done..done + size].copy_from_slice(&page[offset..offset + size]);
            done += size;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn pages_are_read_once_until_they_are_forgotten() {
        let reads = Rc::new(Cell::new(0));
        let count = reads.clone();
        let mut pages = Pages::new(Box::new(move |address, page| {
            count.set(count.get() + 1);
            page.fill((address >> 12) as u8);
            address < 0x9000
        }));
        let mut bytes = [0; 6];
        assert!(pages.copy(0x1ffd, &mut bytes));
        assert_eq!(bytes, [1, 1, 1, 2, 2, 2]);
        assert!(pages.copy(0x1000, &mut bytes) && pages.copy(0x2ff0, &mut bytes));
        assert_eq!(reads.get(), 2);
        pages.forget();
        assert!(pages.copy(0x1000, &mut bytes));
        assert_eq!(reads.get(), 3);
        // Page 0x9 cannot be read; what was in its place is no copy of it.
        assert!(!pages.copy(0x8ffd, &mut bytes) && !pages.copy(0x9000, &mut bytes));
    }

    #[test]
    fn pages_of_one_place_replace_each_other() {
        let mut pages = Pages::new(Box::new(|address, page| {
            page[..8].copy_from_slice(&address.to_le_bytes());
            true
        }));
        for number in (0..3 * PLACES as u64).chain(0..PLACES as u64) {
            let mut bytes = [0; 8];
            assert!(pages.copy(number * PAGE as u64, &mut bytes));
            assert_eq!(u64::from_le_bytes(bytes), number * PAGE as u64);
        }
    }
}
