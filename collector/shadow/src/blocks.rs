//! The cache of decoded blocks. A block ends at the first jump, call or return.
//!
//! Cache misses dominate the cost of a burst. A block is therefore contiguous: a header, and 16 bytes for each
//! instruction. It links to the blocks that followed it.

use super::op::Op;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Capacity in slots, for headers and instructions.
const SLOTS: usize = 1 << 17;
/// Size of the hash table from addresses to blocks.
const PLACES: usize = 1 << 15;
/// Maximum of probes in the hash table.
const PROBES: usize = 16;
/// Slots of a header.
const HEADER: usize = 2;
/// Maximum of slots for a block's instructions.
pub(super) const MAX_BLOCK_SLOTS: usize = 32;

/// 16 bytes.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Slot([u64; 2]);

/// A block, by the slot of its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block(u32);

/// An edge from a block to the next: one of the two links in its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    block: Block,
    /// Control fell through.
    falls: bool,
}

/// The header of a block.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Its address.
    pub start: u64,
    /// Hash of its bytes.
    pub check: u32,
    /// The last burst in which its bytes were compared with memory.
    pub generation: u16,
    /// Bytes of code.
    pub bytes: u16,
    /// Slots of its instructions.
    pub slots: u32,
    /// The blocks that followed when it jumped and when it fell through; 0: none yet.
    links: [u32; 2],
}

const _: () = assert!(size_of::<Header>() == HEADER * size_of::<Slot>());
const _: () = assert!(size_of::<Op>() == size_of::<Slot>());

impl Header {
    /// The header of a block without instructions.
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
    /// Slots in use. The first ones stay unused, because 0 stands for no block.
    used: usize,
    /// The next slot of the block that is being decoded. A fault leaves the block unfinished.
    next: usize,
    /// Incremented when all blocks are dropped.
    pub epoch: u32,
    places: [u32; PLACES],
    slots: [Slot; SLOTS],
}

/// Blocks outside of the engine that uses them, so that an instruction can be borrowed while the engine changes.
#[derive(Debug)]
pub(super) struct Shelf(NonNull<Blocks>);

impl Shelf {
    /// The blocks at an address.
    ///
    /// # Safety
    /// The blocks are valid, and only this value uses them.
    pub(super) unsafe fn at(blocks: *mut Blocks) -> Self {
        // SAFETY: the caller passes valid blocks, so the pointer is not null.
        Self(unsafe { NonNull::new_unchecked(blocks) })
    }
}

impl Deref for Shelf {
    type Target = Blocks;

    #[inline(always)]
    fn deref(&self) -> &Blocks {
        // SAFETY: `at` required valid blocks that this value alone uses.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Shelf {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Blocks {
        // SAFETY: `at` required valid blocks that this value alone uses.
        unsafe { self.0.as_mut() }
    }
}

/// The first place of a block in the hash table.
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

    /// Marks all blocks as not compared with memory, when burst numbers wrap around.
    pub(super) fn age(&mut self) {
        let mut at = HEADER;
        while at < self.used {
            let header = self.header(Block(at as u32));
            header.generation = 0;
            at += HEADER + header.slots as usize;
        }
    }

    /// Whether a block of any length fits.
    pub(super) fn has_space(&self) -> bool {
        self.used + 2 * HEADER + MAX_BLOCK_SLOTS < SLOTS
    }

    /// A block's header.
    #[inline(always)]
    pub(super) fn header(&mut self, block: Block) -> &mut Header {
        let at = (block.0 as usize).min(SLOTS - HEADER);
        // SAFETY: `at` is at most `SLOTS - HEADER`, slots have a header's size and alignment, and any bytes are a valid
        // header.
        unsafe { &mut *(&raw mut self.slots[at]).cast::<Header>() }
    }

    /// The slots of a block's instructions.
    #[inline(always)]
    pub(super) fn range(&mut self, block: Block) -> (usize, usize) {
        let first = block.0 as usize + HEADER;
        (first, first + self.header(block).slots as usize)
    }

    /// The instruction in a slot of a block, which must not be a constant. It remains valid while the block runs.
    #[inline(always)]
    pub(super) fn op(&self, slot: usize) -> *const Op {
        (&raw const self.slots[slot % SLOTS]).cast()
    }

    /// The constant after an instruction.
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

    /// The block that followed along this edge before, if any.
    #[inline(always)]
    pub(super) fn follow(&mut self, link: Link) -> Option<Block> {
        let next = self.header(link.block).links[usize::from(link.falls)];
        (next != 0).then_some(Block(next))
    }

    /// Prefetches the blocks that followed a block before.
    #[inline(always)]
    pub(super) fn prefetch(&mut self, block: Block) {
        for next in self.header(block).links {
            let at = (&raw const self.slots)
                .cast::<Slot>()
                .wrapping_add(next as usize)
                .cast::<i8>();
            // SAFETY: a prefetch never faults.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(at);
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64));
            }
        }
    }

    /// Records that `next` followed along this edge.
    pub(super) fn set_link(&mut self, link: Link, next: Block) {
        self.header(link.block).links[usize::from(link.falls)] = next.0;
    }

    /// The edge out of a block.
    #[inline(always)]
    pub(super) fn link(block: Block, falls: bool) -> Link {
        Link { block, falls }
    }

    /// Removes a block, so that it is not found any more.
    pub(super) fn remove(&mut self, block: Block) {
        // It remains in the hash table: the probe sequences of other blocks may pass it.
        self.header(block).start = u64::MAX;
    }

    /// Begins a block after all others; [`Blocks::has_space`] must hold. Instructions follow by [`Blocks::push`].
    pub(super) fn begin(&mut self, header: Header) -> Block {
        let at = self.used.max(HEADER);
        let block = Block(at as u32);
        *self.header(block) = header;
        self.next = at + HEADER;
        block
    }

    /// Appends an instruction with its constant, if any.
    pub(super) fn push(&mut self, op: Op, constant: Option<u64>) {
        // SAFETY: both types have 16 bytes without padding, and any bytes are a valid slot.
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

    /// Ends a block, which can be found from now on. Returns false if the hash table has no place for it.
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
