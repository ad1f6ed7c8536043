//! Reads little-endian fields. A read past the end returns `None`.

/// The bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a 64-bit number of items, and then the items' bytes; `size` is the size of an item.
    pub(super) fn take_items(&mut self, count: u64, size: usize) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(size)?)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// The bytes up to the first zero, or to the end.
    pub(super) fn string(&self) -> &'a [u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// The 64-bit number at an offset.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Cursor(bytes.get(offset..)?).u64()
}
