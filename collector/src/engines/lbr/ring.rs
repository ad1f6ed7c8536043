//! The reader of a ring buffer into which the kernel writes records.
//!
//! One page of control fields, then the data, whose size is a power of two. The kernel advances
//! `data_head` after the records that it has written, and never writes beyond `data_tail`, which the reader advances.
//! Both only grow, and count modulo the size.

#![allow(unsafe_code, reason = "rings of the kernel are mapped")]

use memmap2::MmapRaw;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in the first page: `perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// Size of a record's head: kind, misc, size.
const HEAD: usize = 8;

/// A record as the kernel wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Number of its kind.
    pub kind: u32,
    /// Flags.
    pub misc: u16,
    /// Everything behind its head.
    pub body: Vec<u8>,
    /// Bytes that the kernel had written before it.
    pub at: u64,
}

/// Damage of a buffer, whose contents are then skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RingError {
    /// More bytes are unread than the buffer holds.
    #[error("records were overwritten before they were read")]
    Overwritten,
    /// The end moved backwards.
    #[error("the end of a buffer moved backwards")]
    Backwards,
    /// A record's size is impossible.
    #[error("a record's size is impossible")]
    Size,
}

/// The reader's side of a buffer.
#[derive(Debug)]
pub struct Ring {
    map: MmapRaw,
    /// Where the data begin: the size of a page.
    offset: usize,
    /// Size of the data less one.
    mask: u64,
}

impl Ring {
    /// Reads a mapping whose first `offset` bytes, a page, are the control fields.
    ///
    /// `None` if the rest is no power of two, or shorter than the head of a record.
    pub fn new(map: MmapRaw, offset: usize) -> Option<Self> {
        let size = map.len().checked_sub(offset)?;
        let fits = size.is_power_of_two() && size >= HEAD && offset >= DATA_TAIL + 8;
        fits.then_some(Self {
            map,
            offset,
            mask: size as u64 - 1,
        })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the first page, which `new` checked, and aligned to 8; the mapping lives as long as `self`.
        // Both sides use it only atomically.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// The kernel's end: everything before it is complete.
    fn head(&self) -> u64 {
        // Pairs with the kernel's barrier between data and head.
        self.word(DATA_HEAD).load(Ordering::Acquire)
    }

    /// Copies data that lie before the head, around the end of the buffer where need be.
    fn copy(&self, at: u64, into: &mut [u8]) {
        let (start, size) = ((at & self.mask) as usize, self.mask as usize + 1);
        let first = into.len().min(size - start);
        // SAFETY: callers pass at most the size of the data, so both parts lie in it. The kernel does not write there
        // until the tail has moved past.
        unsafe {
            let data = self.map.as_ptr().add(self.offset);
            std::ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }

    /// Calls `each` with every complete record, and frees the space of these records. Records that arrive meanwhile are
    /// left for the next call.
    ///
    /// # Errors
    /// The buffer is damaged. Its contents are then skipped.
    pub fn drain(&self, mut each: impl FnMut(Record)) -> Result<(), RingError> {
        let head = self.head();
        // Only the reader writes it.
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        let mut read = || {
            if head < tail {
                return Err(RingError::Backwards);
            }
            if head - tail > self.mask + 1 {
                return Err(RingError::Overwritten);
            }
            while tail != head {
                let at = tail;
                let mut start = [0; HEAD];
                if head - tail < HEAD as u64 {
                    return Err(RingError::Size);
                }
                self.copy(tail, &mut start);
                let [a, b, c, d, e, f, g, h] = start;
                let size = u16::from_ne_bytes([g, h]);
                if usize::from(size) < HEAD || u64::from(size) > head - tail {
                    return Err(RingError::Size);
                }
                let mut body = vec![0; usize::from(size) - HEAD];
                self.copy(tail + HEAD as u64, &mut body);
                tail += u64::from(size);
                each(Record {
                    kind: u32::from_ne_bytes([a, b, c, d]),
                    misc: u16::from_ne_bytes([e, f]),
                    body,
                    at,
                });
            }
            Ok(())
        };
        let done = read();
        // Pairs with the kernel's read of the tail before it writes there.
        self.word(DATA_TAIL).store(head, Ordering::Release);
        done
    }
}
