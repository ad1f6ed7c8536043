//! Fetches the next block: finds it and compares it with memory, or decodes it.

use super::access::Step;
use super::blocks::{Block, Header, Link, MAX_BLOCK_SLOTS};
use super::op::Kind;
use super::pages;
use super::rewrite::MAX_LENGTH;
use super::{End, Engine, decode};

const PAGE: u64 = pages::PAGE as u64;
/// The instruction `int3`.
const BREAKPOINT: u8 = 0xcc;
/// Maximum size of a block's code, in bytes.
const MAX_BLOCK_BYTES: u64 = 255;

/// A position within a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pc: u64,
    pub block: Block,
    pub slot: usize,
    pub end: usize,
    epoch: u32,
}

impl Engine {
    /// The position within a block at which the last call stopped, if the program counter is still there.
    pub(super) fn resume(&mut self) -> Option<Cursor> {
        let cursor = self.cursor.take()?;
        let is_same = cursor.pc == self.state.pc && cursor.epoch == self.blocks.epoch;
        let is_checked = is_same && self.blocks.header(cursor.block).generation == self.generation;
        is_checked.then_some(cursor)
    }

    /// Remembers a position for [`Engine::resume`].
    pub(super) fn stop_at(&mut self, block: Block, slot: usize, end: usize) {
        self.cursor = Some(Cursor {
            pc: self.state.pc,
            block,
            slot,
            end,
            epoch: self.blocks.epoch,
        });
    }

    /// The block at the program counter. `link`: the edge from the previous block.
    ///
    /// # Safety
    /// Called within a burst.
    #[inline(always)]
    pub(super) unsafe fn enter(&mut self, link: Option<Link>) -> Result<Block, End> {
        let pc = self.state.pc;
        let known = link.and_then(|link| self.blocks.follow(link));
        if let Some(block) = known {
            let header = self.blocks.header(block);
            if header.start == pc && header.generation == self.generation {
                self.blocks.prefetch(block);
                return Ok(block);
            }
        }
        // SAFETY: the caller is in a burst.
        let block = unsafe { self.find_block(pc, link, known)? };
        self.blocks.prefetch(block);
        Ok(block)
    }

    #[inline(never)]
    unsafe fn find_block(&mut self, pc: u64, link: Option<Link>, known: Option<Block>) -> Result<Block, End> {
        let epoch = self.blocks.epoch;
        let known = known.filter(|&block| self.blocks.header(block).start == pc);
        let block = match known.or_else(|| self.blocks.find(pc)) {
            Some(block) => {
                let header = *self.blocks.header(block);
                // SAFETY: Loads may fault (burst invariant).
                if header.generation == self.generation || unsafe { self.check(pc, header.bytes) } == header.check {
                    block
                } else {
                    self.blocks.remove(block);
                    // SAFETY: the caller is in a burst.
                    unsafe { self.decode_block(pc)? }
                }
            }
            // SAFETY: the caller is in a burst.
            None => unsafe { self.decode_block(pc)? },
        };
        let generation = self.generation;
        let header = self.blocks.header(block);
        if header.generation != generation {
            let bytes = header.bytes.into();
            header.generation = generation;
            self.unmodified(pc, bytes)?;
        }
        if let Some(link) = link
            && known != Some(block)
            && epoch == self.blocks.epoch
        {
            self.blocks.set_link(link, block);
        }
        Ok(block)
    }

    /// Ends the burst if it has written to the code: the blocks contain the program's bytes only.
    fn unmodified(&self, pc: u64, bytes: u64) -> Step {
        if self.overlay.has_any(pc, bytes) {
            return Err(End::ModifiedCode);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    unsafe fn decode_block(&mut self, start: u64) -> Result<Block, End> {
        if self.decodes_left == 0 {
            return Err(End::Decodes);
        }
        if !self.blocks.has_space() || self.thunks.exist() && !self.thunks.has_space() {
            self.invalidate();
        }
        let machine = self.machine;
        let block = self.blocks.begin(Header::new(start));
        let mut pc = start;
        let mut slots = 0;
        while slots < MAX_BLOCK_SLOTS && pc - start < MAX_BLOCK_BYTES - MAX_LENGTH as u64 && self.decodes_left > 0 {
            let is_first = pc == start;
            if !is_first && self.thunks.exist() && !self.thunks.has_space() {
                break;
            }
            let mut code = [0; MAX_LENGTH];
            // The page after the instruction may be unmapped: bytes of the next page are loaded only if needed.
            let on_page = (PAGE - pc % PAGE).min(MAX_LENGTH as u64) as usize;
            if !is_first && pc / PAGE != start / PAGE {
                break;
            }
            // SAFETY: Loads may fault (burst invariant).
            unsafe { self.copy_memory(pc, &mut code[..on_page]) };
            if code[0] == BREAKPOINT
                && let Some(byte) = super::original(pc)
            {
                code[0] = byte;
            }
            let mut found = decode::decode(&code[..on_page], pc, &machine, &mut self.thunks, &mut self.info);
            if found.is_none() && on_page < MAX_LENGTH && is_first {
                // SAFETY: Loads may fault (burst invariant).
                unsafe { self.copy_memory(pc.wrapping_add(on_page as u64), &mut code[on_page..]) };
                found = decode::decode(&code, pc, &machine, &mut self.thunks, &mut self.info);
            }
            let Some((op, instruction)) = found else { break };
            self.decodes_left -= 1;
            self.opcodes.record(instruction.code(), op.kind);
            let constant = (op.kind == Kind::MovWide).then(|| instruction.immediate(1));
            slots += 1 + usize::from(constant.is_some());
            self.blocks.push(op, constant);
            pc = instruction.next_ip();
            if op.kind.ends_block() {
                break;
            }
        }
        let bytes = pc.wrapping_sub(start);
        if bytes == 0 {
            return Err(End::Fault);
        }
        // SAFETY: Loads may fault (burst invariant), even here: another thread may have unmapped the bytes since they
        // were decoded.
        let check = unsafe { self.check(start, bytes as u16) };
        if !self.blocks.end(block, bytes as usize, check, self.generation) {
            // The hash table has no free place for this address.
            self.invalidate();
            return Err(End::Decodes);
        }
        self.unmodified(start, bytes)?;
        Ok(block)
    }

    /// A hash of a block's bytes, to detect modified code.
    ///
    /// # Safety
    /// Called within a burst.
    unsafe fn check(&self, start: u64, bytes: u16) -> u32 {
        let mut hash = 0x9e37_79b9_7f4a_7c15u64 ^ u64::from(bytes);
        let mut at = start;
        let mut left = u64::from(bytes);
        while left >= 8 {
            // SAFETY: Loads may fault (burst invariant).
            let word = unsafe { self.load_memory(at, 3) };
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
            at = at.wrapping_add(8);
            left -= 8;
        }
        if left > 0 {
            let mut word = [0; 8];
            // SAFETY: Loads may fault (burst invariant).
            unsafe { self.copy_memory(at, &mut word[..left as usize]) };
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        }
        (hash >> 32) as u32
    }
}
