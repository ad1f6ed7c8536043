//! Thunks: code that loads the shadow registers that one instruction reads, runs the instruction, and stores the
//! registers that it writes.
//!
//! A memory operand is always in a buffer of the engine. The code is in memory that is mapped twice, once writable and
//! once executable.

use super::state::{Machine, State};
use super::sys;
use core::mem::offset_of;
use core::ptr::null_mut;

/// Bytes of memory for thunks.
const CODE_CAPACITY: usize = 256 * 1024;
/// Bytes of the longest thunk: 16 general registers, 32 vectors, opmasks, and the rest.
const MAX_THUNK_SIZE: usize = 1024;

/// Registers that an instruction uses, one bit each.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Used {
    pub general: u32,
    pub vectors: u32,
    pub written_vectors: u32,
    pub masks: u8,
    pub flags: bool,
    pub writes_flags: bool,
    pub x87: bool,
    pub width: Width,
}

/// The part of a vector register that an encoding accesses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Width {
    /// SSE: 16 bytes; the rest of the register is unchanged.
    #[default]
    Legacy,
    /// VEX: 32 bytes; the rest of a written register becomes 0.
    Vex,
    /// EVEX: 64 bytes.
    Evex,
}

/// The memory of thunks.
#[derive(Debug)]
pub(super) struct Thunks {
    write: *mut u8,
    run: *const u8,
    used: usize,
}

impl Thunks {
    /// A value without memory: no thunk can be made.
    pub(super) fn none() -> Self {
        Self {
            write: null_mut(),
            run: null_mut(),
            used: 0,
        }
    }

    /// Maps the memory; [`Thunks::none`] if the kernel refuses executable memory.
    pub(super) fn reserve() -> Self {
        let Ok(write) = sys::map(CODE_CAPACITY, sys::READ_WRITE, sys::SHARED) else {
            return Self::none();
        };
        let run = sys::map_again(write, CODE_CAPACITY).and_then(|run| {
            // SAFETY: the mapping is new; nothing refers to it yet.
            let ready = unsafe { sys::protect(run, CODE_CAPACITY, sys::READ_EXECUTE) };
            if ready.is_err() {
                // SAFETY: the mapping is new; nothing refers to it yet.
                unsafe { sys::unmap(run, CODE_CAPACITY) };
            }
            ready.map(|()| run)
        });
        match run {
            Ok(run) => Self { write, run, used: 0 },
            Err(_) => {
                // SAFETY: the mapping is new; nothing refers to it yet.
                unsafe { sys::unmap(write, CODE_CAPACITY) };
                Self::none()
            }
        }
    }

    /// Unmaps the memory.
    pub(super) fn release(&mut self) {
        if self.exist() {
            // SAFETY: Exclusive: both mappings belong to this value, and no thunk runs while it is borrowed mutably.
            unsafe {
                sys::unmap(self.write, CODE_CAPACITY);
                sys::unmap(self.run.cast_mut(), CODE_CAPACITY);
            }
        }
        *self = Self::none();
    }

    /// See [`sys::set_inherited`].
    pub(super) fn set_inherited(&self, is_inherited: bool) -> bool {
        let set = |memory| sys::set_inherited(memory, CODE_CAPACITY, is_inherited);
        !self.exist() || set(self.write.cast_const()) && set(self.run)
    }

    pub(super) fn exist(&self) -> bool {
        !self.write.is_null()
    }

    /// Whether another thunk fits.
    pub(super) fn has_space(&self) -> bool {
        self.used + MAX_THUNK_SIZE <= CODE_CAPACITY
    }

    /// Drops all thunks.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// The address of a thunk's code.
    pub(super) fn code(&self, offset: u32) -> *const u8 {
        self.run.wrapping_add(offset as usize % CODE_CAPACITY)
    }

    /// Emits a thunk with the parameters `(state, operand)`. `memory`: the register in which `code` expects the
    /// operand's address; `base`: a register that it does not use. `None` if there is no space.
    pub(super) fn make(
        &mut self,
        code: &[u8],
        used: &Used,
        memory: Option<u8>,
        base: u8,
        machine: &Machine,
    ) -> Option<u32> {
        if !self.exist() || !self.has_space() {
            return None;
        }
        // SAFETY: `has_space` leaves `MAX_THUNK_SIZE` bytes of the mapping, which belongs to this value; no other
        // reference to it exists.
        let buffer = unsafe { core::slice::from_raw_parts_mut(self.write.add(self.used), MAX_THUNK_SIZE) };
        let mut e = Emitter {
            buffer,
            length: 0,
            base,
        };
        e.thunk(code, used, memory, machine);
        if e.length > MAX_THUNK_SIZE {
            return None;
        }
        let offset = self.used as u32;
        self.used += e.length.next_multiple_of(16);
        Some(offset)
    }
}

const MXCSR: i32 = offset_of!(State, mxcsr) as i32;
const HOST_MXCSR: i32 = offset_of!(State, host_mxcsr) as i32;
const RFLAGS: i32 = offset_of!(State, rflags) as i32;
const X87: i32 = offset_of!(State, x87) as i32;

struct Emitter<'a> {
    buffer: &'a mut [u8],
    /// Bytes emitted. If they exceed the buffer, the thunk is discarded.
    length: usize,
    /// The register that holds the state's address; not rsp or r12.
    base: u8,
}

impl Emitter<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.length += bytes.len();
    }

    /// ModRM and displacement of a field of the state, at offset `at`.
    fn operand(&mut self, register: u8, at: i32) {
        self.bytes(&[0x80 | (register & 7) << 3 | self.base & 7]);
        self.bytes(&at.to_le_bytes());
    }

    /// An instruction with a field of the state as its operand; `wide` sets REX.W.
    fn on_state(&mut self, wide: bool, opcode: &[u8], register: u8, at: i32) {
        let rex = 0x40 | u8::from(wide) << 3 | (register >> 3 & 1) << 2 | self.base >> 3;
        if rex != 0x40 {
            self.bytes(&[rex]);
        }
        self.bytes(opcode);
        self.operand(register, at);
    }

    fn push(&mut self, register: u8) {
        if register >= 8 {
            self.bytes(&[0x41]);
        }
        self.bytes(&[0x50 | register & 7]);
    }

    fn pop(&mut self, register: u8) {
        if register >= 8 {
            self.bytes(&[0x41]);
        }
        self.bytes(&[0x58 | register & 7]);
    }

    fn general(&mut self, mask: u32, store: bool) {
        for register in (0..16u8).filter(|r| mask >> r & 1 != 0 && *r != 4) {
            let at = offset_of!(State, registers) as i32 + 8 * i32::from(register);
            self.on_state(true, &[if store { 0x89 } else { 0x8b }], register, at);
        }
    }

    fn masks(&mut self, mask: u8, store: bool) {
        for register in (0..8u8).filter(|r| mask >> r & 1 != 0) {
            let at = offset_of!(State, masks) as i32 + 8 * i32::from(register);
            // kmovq
            let vex = 0xc1 | u8::from(self.base < 8) << 5;
            self.bytes(&[0xc4, vex, 0xf8, if store { 0x91 } else { 0x90 }]);
            self.operand(register, at);
        }
    }

    fn vectors(&mut self, mask: u32, width: Width, store: bool) {
        let opcode = if store { 0x11 } else { 0x10 };
        for register in (0..32u8).filter(|r| mask >> r & 1 != 0) {
            let at = offset_of!(State, vectors) as i32 + 64 * i32::from(register);
            let low_base = u8::from(self.base < 8) << 5;
            match width {
                Width::Legacy => self.on_state(false, &[0x0f, opcode], register, at),
                Width::Vex => {
                    let vex = 0x41 | u8::from(register < 8) << 7 | low_base;
                    self.bytes(&[0xc4, vex, 0x7c, opcode]);
                    self.operand(register, at);
                }
                Width::Evex => {
                    let high = u8::from(register & 8 == 0) << 7 | u8::from(register & 16 == 0) << 4;
                    self.bytes(&[0x62, 0x41 | high | low_base, 0x7c, 0x48, opcode]);
                    self.operand(register, at);
                }
            }
        }
    }

    fn thunk(&mut self, code: &[u8], used: &Used, memory: Option<u8>, machine: &Machine) {
        const KEPT: [u8; 6] = [3, 5, 12, 13, 14, 15];
        for register in KEPT {
            self.push(register);
        }
        // Moves the parameters from rsi and rdi to the chosen registers.
        self.push(6);
        self.push(7);
        self.pop(self.base);
        match memory {
            Some(register) => self.pop(register),
            // lea rsp, [rsp + 8]
            None => self.bytes(&[0x48, 0x8d, 0x64, 0x24, 0x08]),
        }
        if used.x87 {
            self.on_state(true, &[0x0f, 0xae], 1, X87);
        }
        self.on_state(false, &[0x0f, 0xae], 2, MXCSR);
        self.masks(used.masks, false);
        self.vectors(used.vectors, used.width, false);
        self.general(used.general, false);
        if used.flags {
            // push [rflags]; popfq
            self.on_state(false, &[0xff], 6, RFLAGS);
            self.bytes(&[0x9d]);
        }
        self.bytes(code);
        if used.writes_flags {
            // pushfq; pop [rflags]
            self.bytes(&[0x9c]);
            self.on_state(false, &[0x8f], 0, RFLAGS);
        }
        self.general(used.general, true);
        let stored = match used.width {
            // A VEX instruction clears the upper half of the register, so all 64 bytes are stored.
            Width::Vex if machine.has_avx512 => Width::Evex,
            width => width,
        };
        self.vectors(used.written_vectors, stored, true);
        self.masks(used.masks, true);
        if used.x87 {
            self.on_state(true, &[0x0f, 0xae], 0, X87);
        }
        self.on_state(false, &[0x0f, 0xae], 3, MXCSR);
        if used.width != Width::Legacy {
            self.bytes(&[0xc5, 0xf8, 0x77]);
        }
        self.on_state(false, &[0x0f, 0xae], 2, HOST_MXCSR);
        for register in KEPT.into_iter().rev() {
            self.pop(register);
        }
        self.bytes(&[0xc3]);
    }
}
