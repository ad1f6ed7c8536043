//! Decoded instructions by address. Instructions that lie side by side in the program lie side by side here: what costs most
//! is memory that is not in the processor's caches.

use super::op::{Kind, Op};

/// Instructions that are kept.
const ENTRIES: usize = 1 << 15;
/// Instructions of a bucket, which belongs to 16 bytes of code.
const BUCKET: usize = 8;

#[repr(C, align(64))]
pub(super) struct Cache {
    entries: [Op; ENTRIES],
}

fn bucket(address: u64) -> usize {
    let chunk = address >> 4;
    // Mixed from above only, so that neighbours stay neighbours.
    let mixed = chunk ^ (chunk >> 12).wrapping_mul(0x9e5);
    mixed as usize % (ENTRIES / BUCKET) * BUCKET
}

impl Cache {
    /// Drops everything.
    pub(super) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.address = 0;
        }
    }

    /// Forgets in which bursts bytes were compared.
    pub(super) fn age(&mut self) {
        for entry in &mut self.entries {
            entry.generation = 0;
        }
    }

    /// The decoded instruction at an address.
    #[inline(always)]
    pub(super) fn find(&mut self, address: u64) -> Option<&mut Op> {
        let first = bucket(address);
        let start = address as usize >> 1;
        for probe in 0..BUCKET {
            let at = first + (start + probe) % BUCKET;
            let found = self.entries[at % ENTRIES].address;
            if found == address {
                return Some(&mut self.entries[at % ENTRIES]);
            }
            if found == 0 {
                return None;
            }
        }
        None
    }

    /// Keeps one.
    pub(super) fn insert(&mut self, op: &Op) {
        let first = bucket(op.address);
        let start = op.address as usize >> 1;
        let place = |probe: usize| (first + (start + probe) % BUCKET) % ENTRIES;
        let free = (0..BUCKET).map(place).find(|&at| {
            let address = self.entries[at].address;
            address == 0 || address == op.address
        });
        self.entries[free.unwrap_or(place(0))] = *op;
    }

    /// Drops all instructions that have thunks.
    pub(super) fn drop_thunks(&mut self) {
        // An empty place would hide what was put behind it: it stays, as an instruction that is never at its address.
        for entry in &mut self.entries {
            if entry.kind == Kind::Thunk {
                entry.address = u64::from(entry.address != 0);
                entry.kind = Kind::Stop;
            }
        }
    }
}
