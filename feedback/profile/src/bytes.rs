//! The elements of records: unsigned LEB128 numbers, zigzag differences, rounded values and raw bytes.

use gimli::{EndianSlice, LittleEndian, leb128};

/// Appends a number as unsigned LEB128.
pub(super) fn push_number(out: &mut Vec<u8>, value: u64) {
    leb128::write::unsigned(out, value).expect("writing to a vector cannot fail");
}

/// Appends the difference of two numbers as zigzag LEB128: a small difference of either sign takes one byte.
pub(super) fn push_difference(out: &mut Vec<u8>, from: u32, to: u32) {
    let difference = i64::from(to) - i64::from(from);
    push_number(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// A value, rounded as in the file.
pub(super) fn stored(value: f64) -> f32 {
    // A cast alone would turn large finite values into infinity.
    if value.is_infinite() {
        f32::INFINITY
    } else {
        (value as f32).min(f32::MAX)
    }
}

/// Reads the elements of a record.
pub(super) struct RecordReader<'r> {
    /// Bytes not yet read.
    pub bytes: &'r [u8],
}

const ENDS: &str = "it ends too early";

impl<'r> RecordReader<'r> {
    pub fn number(&mut self) -> Result<u64, &'static str> {
        let mut input = EndianSlice::new(self.bytes, LittleEndian);
        let value = leb128::read::unsigned(&mut input).map_err(|error| match error {
            gimli::Error::BadUnsignedLeb128 => "a number is too large",
            _ => ENDS,
        })?;
        self.bytes = input.slice();
        Ok(value)
    }

    /// A value that [`stored`] rounded.
    pub fn value(&mut self) -> Result<f64, &'static str> {
        Ok(f32::from_le_bytes(self.array()?).into())
    }

    /// The number that [`push_difference`] encoded relative to `from`; `None` if it does not fit in 32 bits.
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
