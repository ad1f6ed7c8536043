//! Decoded instructions, block by block: stretches of code that end at the first jump, call or return.
//!
//! What costs most in a burst is memory that is not in the processor's caches. So a block is one piece of memory: a header,
//! and 16 bytes for an instruction. It remembers which block came after it.

use super::op::Op;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Headers and instructions that are kept.
const SLOTS: usize = 1 << 17;
/// Places to find a block by its address.
const PLACES: usize = 1 << 15;
const PROBES: usize = 16;
/// Of a header.
const HEADER: usize = 2;
/// Slots of a block's instructions.
pub(super) const LONGEST: usize = 32;

/// 16 bytes.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Slot([u64; 2]);

/// A block, by the slot of its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block(u32);

/// A block that may follow another one: its place in that one's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    block: Block,
    /// Control fell through.
    falls: bool,
}

/// What is known of a block.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Its address.
    pub start: u64,
    /// Of its bytes.
    pub check: u32,
    /// Burst in which its bytes were compared with memory.
    pub generation: u16,
    /// Bytes of code.
    pub bytes: u16,
    /// Slots of its instructions.
    pub slots: u32,
    /// Blocks that came after it, where it jumps and where it falls through; 0: none yet.
    links: [u32; 2],
}

const _: () = assert!(size_of::<Header>() == HEADER * size_of::<Slot>());
const _: () = assert!(size_of::<Op>() == size_of::<Slot>());

impl Header {
    /// One without instructions.
    pub(super) fn new(start: u64) -> Self {
        Self {
            start,
            check: 0,
            generation: 0,
            bytes: 0,
            slots: 0,
            links: [0; 2],
        }
    }
}

/// The blocks. All zeroes is the empty set.
#[repr(C, align(64))]
pub(super) struct Blocks {
    /// Slots in use; the first ones are nobody's, for 0 is no block.
    used: usize,
    /// Where the block that is being made goes on; a fault leaves it unfinished.
    next: usize,
    /// Grows when all is dropped.
    pub epoch: u32,
    places: [u32; PLACES],
    slots: [Slot; SLOTS],
}

/// Blocks that lie apart from the engine that uses them, so that an instruction stays borrowed while the engine changes.
#[derive(Debug)]
pub(super) struct Shelf(NonNull<Blocks>);

impl Shelf {
    /// The blocks at an address.
    ///
    /// # Safety
    /// They are valid, and nobody else's.
    pub(super) unsafe fn at(blocks: *mut Blocks) -> Self {
        // SAFETY: given.
        Self(unsafe { NonNull::new_unchecked(blocks) })
    }
}

impl Deref for Shelf {
    type Target = Blocks;

    #[inline(always)]
    fn deref(&self) -> &Blocks {
        // SAFETY: see `at`.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Shelf {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Blocks {
        // SAFETY: see `at`.
        unsafe { self.0.as_mut() }
    }
}

fn home(address: u64) -> usize {
    (address ^ (address >> 15).wrapping_mul(0x9e5)) as usize % PLACES
}

impl Blocks {
    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.places.fill(0);
        self.used = 0;
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Forgets in which bursts bytes were compared.
    pub(super) fn age(&mut self) {
        let mut at = HEADER;
        while at < self.used {
            let header = self.header(Block(at as u32));
            header.generation = 0;
            at += HEADER + header.slots as usize;
        }
    }

    /// Whether a block of any length fits.
    pub(super) fn has_room(&self) -> bool {
        self.used + 2 * HEADER + LONGEST < SLOTS
    }

    /// A block's header.
    #[inline(always)]
    pub(super) fn header(&mut self, block: Block) -> &mut Header {
        let at = (block.0 as usize).min(SLOTS - HEADER);
        // SAFETY: within the slots, and any bytes are a header.
        unsafe { &mut *(&raw mut self.slots[at]).cast::<Header>() }
    }

    /// The slots of a block's instructions.
    #[inline(always)]
    pub(super) fn range(&mut self, block: Block) -> (usize, usize) {
        let first = block.0 as usize + HEADER;
        (first, first + self.header(block).slots as usize)
    }

    /// The instruction in a slot, which must be one of a block's, and no constant. It stays there while a block runs.
    #[inline(always)]
    pub(super) fn op(&self, slot: usize) -> *const Op {
        (&raw const self.slots[slot % SLOTS]).cast()
    }

    /// The constant behind an instruction.
    #[inline(always)]
    pub(super) fn constant(&self, slot: usize) -> u64 {
        self.slots[(slot + 1) % SLOTS].0[0]
    }

    /// The block at an address.
    #[inline(always)]
    pub(super) fn find(&mut self, address: u64) -> Option<Block> {
        let home = home(address);
        for probe in 0..PROBES {
            let block = self.places[(home + probe) % PLACES];
            if block == 0 {
                return None;
            }
            if self.header(Block(block)).start == address {
                return Some(Block(block));
            }
        }
        None
    }

    /// The block that came that way before, if it did.
    #[inline(always)]
    pub(super) fn follow(&mut self, link: Link) -> Option<Block> {
        let next = self.header(link.block).links[usize::from(link.falls)];
        (next != 0).then_some(Block(next))
    }

    /// Has the processor fetch what may come after a block.
    #[inline(always)]
    pub(super) fn prefetch(&mut self, block: Block) {
        for next in self.header(block).links {
            let at = (&raw const self.slots)
                .cast::<Slot>()
                .wrapping_add(next as usize)
                .cast::<i8>();
            // SAFETY: no more than a hint.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(at);
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64));
            }
        }
    }

    /// Remembers that it came.
    pub(super) fn set_link(&mut self, link: Link, next: Block) {
        self.header(link.block).links[usize::from(link.falls)] = next.0;
    }

    /// Where a way out of a block is remembered.
    #[inline(always)]
    pub(super) fn link(block: Block, falls: bool) -> Link {
        Link { block, falls }
    }

    /// Nobody comes to this one any more.
    pub(super) fn remove(&mut self, block: Block) {
        // It stays in its place, for it may have been passed by when others were put behind it.
        self.header(block).start = u64::MAX;
    }

    /// Begins a block behind all others: there must be room. Instructions follow by [`Blocks::push`].
    pub(super) fn begin(&mut self, header: Header) -> Block {
        let at = self.used.max(HEADER);
        let block = Block(at as u32);
        *self.header(block) = header;
        self.next = at + HEADER;
        block
    }

    /// Appends an instruction, with the constant that belongs to it.
    pub(super) fn push(&mut self, op: Op, constant: Option<u64>) {
        // SAFETY: any instruction is 16 bytes.
        self.put(unsafe { core::mem::transmute::<Op, Slot>(op) });
        if let Some(constant) = constant {
            self.put(Slot([constant, 0]));
        }
    }

    fn put(&mut self, slot: Slot) {
        if let Some(place) = self.slots.get_mut(self.next) {
            *place = slot;
            self.next += 1;
        }
    }

    /// Ends a block, which can be found from now on. False: there was no place for it.
    pub(super) fn end(&mut self, block: Block, bytes: usize, check: u32, generation: u16) -> bool {
        let slots = self.next - block.0 as usize - HEADER;
        self.used = self.next;
        let header = self.header(block);
        (header.slots, header.bytes) = (slots as u32, bytes as u16);
        (header.check, header.generation) = (check, generation);
        let home = home(header.start);
        let free = (0..PROBES)
            .map(|probe| (home + probe) % PLACES)
            .find(|&place| self.places[place] == 0);
        if let Some(place) = free {
            self.places[place] = block.0;
        }
        free.is_some()
    }
}
