//! What records are made of: LEB128 numbers and raw bytes.

/// Appends a number.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a difference, small ones of either sign in one byte.
pub(super) fn difference(out: &mut Vec<u8>, from: u32, to: u32) {
    let difference = i64::from(to) - i64::from(from);
    number(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Bytes not yet read.
pub(super) struct Reader<'r> {
    pub bytes: &'r [u8],
}

const ENDS: &str = "it ends too early";

impl<'r> Reader<'r> {
    pub fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first().ok_or(ENDS)?;
            self.bytes = rest;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                break;
            }
            value |= low << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number is too large")
    }

    /// The number that [`difference`] told apart from `from`, if it is one.
    pub fn relative(&mut self, from: u32) -> Result<Option<u32>, &'static str> {
        let coded = self.number()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        let to = i64::from(from).checked_add(difference);
        Ok(to.and_then(|to| u32::try_from(to).ok()))
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.take(N as u64)?);
        Ok(raw)
    }

    pub fn take(&mut self, length: u64) -> Result<&'r [u8], &'static str> {
        let length = usize::try_from(length)
            .ok()
            .filter(|&l| l <= self.bytes.len())
            .ok_or(ENDS)?;
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(taken)
    }
}
