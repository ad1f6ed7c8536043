//! Plays the kernel: writes records into a buffer as `kernel/events/ring_buffer.c` does.

#![allow(unsafe_code, reason = "rings of the kernel are mapped")]
#![allow(dead_code, reason = "each test binary uses a part")]

use memmap2::{MmapOptions, MmapRaw};
use pleach_collector::engines::lbr::ring::Ring;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the first page.
pub const PAGE: usize = 4096;
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The kernel's side of a buffer.
pub struct Kernel {
    map: MmapRaw,
    size: u64,
    head: u64,
    /// Records that did not fit since the last that did.
    lost: u64,
}

/// Both sides of a buffer of some size, which has held `before` bytes before, all read.
pub fn buffer(size: usize, before: u64) -> (Kernel, Ring) {
    let file = tempfile::tempfile().unwrap();
    file.set_len((PAGE + size) as u64).unwrap();
    let map = || MmapOptions::new().len(PAGE + size).map_raw(&file).unwrap();
    let kernel = Kernel {
        map: map(),
        size: size as u64,
        head: before,
        lost: 0,
    };
    kernel.word(HEAD).store(before, Ordering::Relaxed);
    kernel.word(TAIL).store(before, Ordering::Relaxed);
    (kernel, Ring::new(map(), PAGE).unwrap())
}

impl Kernel {
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: in the first page, aligned, and only used atomically.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Bytes that are free.
    pub fn free_space(&self) -> u64 {
        self.size - (self.head - self.word(TAIL).load(Ordering::Acquire))
    }

    /// Everything written so far.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Bytes in the buffer, without saying so.
    pub fn scribble(&self, at: u64, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            let place = ((at + offset as u64) % self.size) as usize;
            // SAFETY: in the data; the reader doesn't look there until the head has moved.
            unsafe { self.map.as_mut_ptr().add(PAGE + place).write(*byte) };
        }
    }

    /// Says that everything up to `head` is written.
    pub fn publish(&mut self, head: u64) {
        self.head = head;
        self.word(HEAD).store(head, Ordering::Release);
    }

    /// A record; where it doesn't fit, it is lost, and the next one that fits comes behind a record that says so.
    pub fn write(&mut self, kind: u32, misc: u16, body: &[u8]) -> bool {
        let mut bytes = Vec::new();
        if self.lost > 0 {
            let lost: Vec<u8> = [0u64, self.lost].iter().flat_map(|word| word.to_ne_bytes()).collect();
            bytes = record(2, 0, &lost);
        }
        bytes.extend(record(kind, misc, body));
        if bytes.len() as u64 > self.free_space() {
            self.lost += 1;
            return false;
        }
        self.lost = 0;
        self.scribble(self.head, &bytes);
        self.publish(self.head + bytes.len() as u64);
        true
    }
}

/// A record with its head.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend((body.len() as u16 + 8).to_ne_bytes());
    bytes.extend(body);
    bytes
}
