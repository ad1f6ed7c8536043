//! The overlay: stores of the burst, in lines of 64 bytes with a bit for each stored byte. Bytes without the bit come
//! from the program's memory.

/// Bytes of a line.
const LINE: u64 = 64;
/// Maximum of lines, which limits the stores of a burst.
const LINES: usize = 2048;
/// Capacity of the hash table of lines.
const PLACES: usize = 4096;
/// Maximum of probes in the hash table.
const PROBES: usize = 16;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line {
    bytes: [u8; LINE as usize],
}

/// The stores of a burst.
#[repr(C, align(64))]
pub(super) struct Overlay {
    /// Lines in use.
    used: usize,
    /// By place: number of a line plus one, or 0.
    index: [u16; PLACES],
    /// By line: its number in memory, the bytes that are stored, its place.
    numbers: [u64; LINES],
    stored: [u64; LINES],
    places: [u16; LINES],
    /// By line: the tainted bytes.
    tainted: [u64; LINES],
    /// Number of tainted bytes.
    tainted_bytes: u32,
    lines: [Line; LINES],
}

/// The overlay has no space for a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;

fn mask(at: u64, size: u64) -> u64 {
    (u64::MAX >> (64 - size)) << at
}

impl Overlay {
    /// Forgets all stores.
    pub(super) fn clear(&mut self) {
        for line in 0..self.used.min(LINES) {
            let place = self.places[line] as usize % PLACES;
            self.index[place] = 0;
        }
        self.used = 0;
        self.tainted_bytes = 0;
    }

    /// Whether nothing was stored.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The first place of a line in the hash table.
    fn home(number: u64) -> usize {
        // Adjacent lines get adjacent places.
        (number ^ number >> 12) as usize % PLACES
    }

    fn find(&self, number: u64) -> Option<usize> {
        let home = Self::home(number);
        for probe in 0..PROBES {
            let line = self.index[(home + probe) % PLACES] as usize;
            if line == 0 {
                return None;
            }
            if self.numbers[(line - 1) % LINES] == number {
                return Some((line - 1) % LINES);
            }
        }
        None
    }

    fn find_or_make(&mut self, number: u64) -> Result<usize, Full> {
        let home = Self::home(number);
        for probe in 0..PROBES {
            let place = (home + probe) % PLACES;
            let line = self.index[place] as usize;
            if line == 0 {
                if self.used >= LINES {
                    return Err(Full);
                }
                let line = self.used;
                self.used += 1;
                self.index[place] = line as u16 + 1;
                (self.numbers[line], self.stored[line], self.places[line]) = (number, 0, place as u16);
                self.tainted[line] = 0;
                return Ok(line);
            }
            if self.numbers[(line - 1) % LINES] == number {
                return Ok((line - 1) % LINES);
            }
        }
        Err(Full)
    }

    /// Overwrites `bytes`, which were loaded from the program's memory at `address`, with the stored bytes.
    pub(super) fn patch(&self, address: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done as u64);
            let offset = at % LINE;
            let size = (LINE - offset).min((bytes.len() - done) as u64);
            if let Some(line) = self.find(at / LINE) {
                let stored = self.stored[line] & mask(offset, size);
                if stored != 0 {
                    for i in 0..size {
                        if stored >> (offset + i) & 1 != 0 {
                            bytes[done + i as usize] = self.lines[line].bytes[(offset + i) as usize];
                        }
                    }
                }
            }
            done += size as usize;
        }
    }

    /// Loads a value of up to 8 bytes. Bytes that were not stored come from `memory`, which is called only if needed.
    pub(super) fn load(&self, address: u64, size: u64, memory: impl FnOnce() -> u64) -> u64 {
        if self.used == 0 {
            return memory();
        }
        let offset = address % LINE;
        if offset + size > LINE {
            let mut bytes = memory().to_le_bytes();
            self.patch(address, &mut bytes[..size as usize]);
            return u64::from_le_bytes(bytes);
        }
        let Some(line) = self.find(address / LINE) else {
            return memory();
        };
        let wanted = mask(offset, size);
        let stored = self.stored[line] & wanted;
        if stored == 0 {
            return memory();
        }
        if stored == wanted {
            let bytes = &self.lines[line].bytes[offset as usize..(offset + size) as usize];
            let mut value = [0; 8];
            value[..size as usize].copy_from_slice(bytes);
            return u64::from_le_bytes(value);
        }
        let mut bytes = memory().to_le_bytes();
        self.patch(address, &mut bytes[..size as usize]);
        u64::from_le_bytes(bytes)
    }

    /// Stores bytes.
    ///
    /// # Errors
    /// The overlay has no space for another line.
    pub(super) fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), Full> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done as u64);
            let offset = at % LINE;
            let size = (LINE - offset).min((bytes.len() - done) as u64);
            let line = self.find_or_make(at / LINE)?;
            self.stored[line] |= mask(offset, size);
            let to = &mut self.lines[line].bytes[offset as usize..(offset + size) as usize];
            to.copy_from_slice(&bytes[done..done + size as usize]);
            done += size as usize;
        }
        Ok(())
    }

    /// Calls `act` with each line of a range, and the mask of the range's bytes in it.
    fn each_line(&mut self, address: u64, size: u64, mut act: impl FnMut(&mut Self, usize, u64)) {
        let mut done = 0;
        while done < size {
            let at = address.wrapping_add(done);
            let part = (LINE - at % LINE).min(size - done);
            if let Some(line) = self.find(at / LINE) {
                act(self, line, mask(at % LINE, part));
            }
            done += part;
        }
    }

    /// Taints stored bytes.
    pub(super) fn taint(&mut self, address: u64, size: u64) {
        self.each_line(address, size, |this, line, bytes| {
            this.tainted_bytes += (bytes & !this.tainted[line]).count_ones();
            this.tainted[line] |= bytes;
        });
    }

    /// Untaints bytes. Returns whether other bytes are tainted.
    pub(super) fn untaint(&mut self, address: u64, size: u64) -> bool {
        self.each_line(address, size, |this, line, bytes| {
            this.tainted_bytes -= (bytes & this.tainted[line]).count_ones();
            this.tainted[line] &= !bytes;
        });
        self.tainted_bytes != 0
    }

    /// Whether any of these bytes is tainted.
    pub(super) fn is_tainted(&mut self, address: u64, size: u64) -> bool {
        let mut any = false;
        self.each_line(address, size, |this, line, bytes| {
            any |= this.tainted[line] & bytes != 0
        });
        any
    }

    /// Whether any of these bytes was stored.
    pub(super) fn has_any(&self, address: u64, size: u64) -> bool {
        if self.used == 0 {
            return false;
        }
        let mut done = 0;
        while done < size {
            let at = address.wrapping_add(done);
            let part = (LINE - at % LINE).min(size - done);
            let is_stored = |line| self.stored[line] & mask(at % LINE, part) != 0;
            if self.find(at / LINE).is_some_and(is_stored) {
                return true;
            }
            done += part;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn overlay() -> Box<Overlay> {
        // SAFETY: all zeroes is an empty overlay.
        unsafe { Box::<Overlay>::new_zeroed().assume_init() }
    }

    proptest! {
        #[test]
        fn it_is_a_map_of_bytes(
            stores in prop::collection::vec((0u64..700, prop::collection::vec(any::<u8>(), 1..64)), 0..200),
            reads in prop::collection::vec((0u64..700, 1u64..64), 0..100),
        ) {
            let mut overlay = overlay();
            let mut model: HashMap<u64, u8> = HashMap::new();
            let base = 0x7fff_ffff_f000;
            for (at, bytes) in &stores {
                prop_assert_eq!(overlay.store(base + at, bytes), Ok(()));
                model.extend(bytes.iter().enumerate().map(|(i, b)| (at + i as u64, *b)));
            }
            for (at, size) in &reads {
                let expected: Vec<u8> = (*at..at + size).map(|a| model.get(&a).copied().unwrap_or(0xee)).collect();
                let mut bytes = vec![0xee; *size as usize];
                overlay.patch(base + at, &mut bytes);
                prop_assert_eq!(&bytes, &expected);
                let any = (*at..at + size).any(|a| model.contains_key(&a));
                prop_assert_eq!(overlay.has_any(base + at, *size), any);
                if *size <= 8 {
                    let value = overlay.load(base + at, *size, || 0xeeee_eeee_eeee_eeee >> (64 - 8 * size));
                    prop_assert_eq!(&value.to_le_bytes()[..*size as usize], &expected[..]);
                }
            }
            overlay.clear();
            prop_assert!(!overlay.has_any(base, 64));
        }
    }

    #[test]
    fn it_has_an_end() {
        let mut overlay = overlay();
        let mut lines = 0;
        while overlay.store(lines * LINE, &[1]).is_ok() {
            lines += 1;
        }
        assert_eq!(lines, LINES as u64);
        overlay.clear();
        assert_eq!(overlay.store(5, &[1]), Ok(()));
    }
}
