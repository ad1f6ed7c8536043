//! Registers of the shadow.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::ffi::c_void;

/// Packed status flags: the results of `lahf` in `ah` and of `seto` in `al`.
pub(super) const OVERFLOW: u64 = 1;
pub(super) const CARRY: u64 = 1 << 8;
pub(super) const PARITY: u64 = 1 << 10;
pub(super) const ZERO: u64 = 1 << 14;
pub(super) const SIGN: u64 = 1 << 15;
const DIRECTION: u64 = 1 << 10;
/// The six status flags in RFLAGS.
const STATUS: u64 = 0x8d5;

/// Registers of a thread: general, flags, segment bases, vectors, masks, x87.
///
/// The layout is fixed: code made at run time addresses it.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct State {
    /// In the order of the encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8–r15; then what [`super::op`] names.
    pub(super) registers: [u64; 24],
    pub(super) pc: u64,
    /// See [`CARRY`].
    pub(super) flags: u64,
    /// RFLAGS without the six status flags.
    pub(super) other_flags: u64,
    /// RFLAGS on the way into a thunk and out of it.
    pub(super) rflags: u64,
    pub(super) mxcsr: u32,
    /// MXCSR of the host, restored after each thunk.
    pub(super) host_mxcsr: u32,
    /// Opmask registers.
    pub(super) masks: [u64; 8],
    /// Zmm0–31.
    pub(super) vectors: [[u64; 8]; 32],
    /// An image for `fxrstor64`, of which only the x87 part matters.
    pub(super) x87: X87,
}

/// 512 bytes as `fxsave64` writes them.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct X87(pub [u8; 512]);

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "State {{ pc: {:#x}, registers: {:x?} }}", self.pc, self.general())
    }
}

/// Features of the processor, and the layout of its XSAVE image. Determined once.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Machine {
    /// Offsets in an XSAVE image: upper halves of ymm, k0–7, upper halves of zmm0–15, zmm16–31.
    avx: usize,
    masks: usize,
    zmm_high: usize,
    zmm_upper: usize,
    pub(super) has_avx: bool,
    /// With instructions that gather.
    pub(super) has_avx2: bool,
    /// With 64-bit opmask registers.
    pub(super) has_avx512: bool,
    /// Features that the kernel has enabled, as in XCR0.
    pub(super) features: u64,
    /// Bytes that `xsave` saves of them.
    pub(super) save_size: usize,
    /// The thread has a shadow stack. Its instructions are not supported.
    pub(super) has_shadow_stack: bool,
    /// `rdfsbase` works.
    has_fsgsbase: bool,
}

impl Machine {
    /// Queries the processor. `capabilities` is the kernel's `AT_HWCAP2`.
    pub(super) fn find(capabilities: u64) -> Self {
        const FSGSBASE: u64 = 2;
        let mut machine = Self::default();
        if __cpuid(1).ecx & 1 << 27 == 0 {
            return machine;
        }
        // SAFETY: OSXSAVE is set, as the test above shows.
        let enabled = unsafe { os_features() };
        let features = __cpuid_count(7, 0);
        machine.features = enabled;
        machine.save_size = __cpuid_count(0xd, 0).ebx as usize;
        machine.has_shadow_stack = shadow_stack() != 0;
        let offset = |component: u32| __cpuid_count(0xd, component).ebx as usize;
        machine.has_avx = enabled & 6 == 6;
        machine.has_avx2 = machine.has_avx && features.ebx & 1 << 5 != 0;
        machine.has_avx512 = enabled & 0xe6 == 0xe6 && features.ebx & 1 << 16 != 0 && features.ebx & 1 << 30 != 0;
        machine.has_fsgsbase = features.ebx & 1 != 0 && capabilities & FSGSBASE != 0;
        if machine.has_avx {
            machine.avx = offset(2);
        }
        if enabled & 0xe6 == 0xe6 {
            (machine.masks, machine.zmm_high, machine.zmm_upper) = (offset(5), offset(6), offset(7));
        }
        machine
    }
}

/// Pointer of the shadow stack, 0 without one.
fn shadow_stack() -> u64 {
    let pointer: u64;
    // SAFETY: `rdsspq rax` reads the shadow stack pointer, and is a no-op without a shadow stack; `eax` is cleared
    // before.
    unsafe { asm!("xor eax, eax", ".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8", out("rax") pointer, options(nomem, nostack)) };
    pointer
}

/// # Safety
/// The processor has OSXSAVE.
#[target_feature(enable = "xsave")]
unsafe fn os_features() -> u64 {
    // SAFETY: the caller guarantees OSXSAVE, without which `xgetbv` faults.
    unsafe { _xgetbv(0) }
}

/// Offset of the general registers in `libc::ucontext_t`.
const FRAME_REGISTERS: usize = 40;
/// Index (`REG_…`) of each general register there, in the order of the encoding.
const FRAME_ORDER: [usize; 16] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
pub(super) const FRAME_RDI: usize = 8;
pub(super) const FRAME_RSP: usize = 15;
pub(super) const FRAME_RIP: usize = 16;
pub(super) const FRAME_FLAGS: usize = 17;
const FRAME_FLOATING: usize = 23;

/// Offset of the software bytes in a frame's FXSAVE area, and what they begin with where more follows the area.
const SOFTWARE_BYTES: usize = 464;
const EXTENDED_MAGIC: u32 = 0x4650_5853;

/// Bytes for an XSAVE image.
pub const FLOATING_IMAGE: usize = 16 << 10;

/// Registers of a stopped thread, as the kernel shows them to a debugger.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'i> {
    /// In the order of the encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8–r15.
    pub general: [u64; 16],
    /// Address of the next instruction.
    pub pc: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// Base of `fs:`.
    pub fs_base: u64,
    /// Base of `gs:`.
    pub gs_base: u64,
    /// The image of `xsave`, in its standard format; `None`: the state of a new thread.
    pub floating: Option<&'i [u8; FLOATING_IMAGE]>,
}

/// The general registers of a signal frame.
///
/// # Safety
/// `context` is the third argument of a signal handler.
pub(super) unsafe fn frame_registers(context: *mut c_void) -> *mut u64 {
    // SAFETY: the general registers are at this offset of the `ucontext_t` that the caller passes.
    unsafe { context.cast::<u8>().add(FRAME_REGISTERS).cast() }
}

impl State {
    /// All zeroes, with the control words of a new thread.
    pub fn new() -> Self {
        let mut x87 = [0; 512];
        (x87[0], x87[1]) = (0x7f, 3);
        x87[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        Self {
            registers: [0; 24],
            pc: 0,
            flags: 0,
            other_flags: 0x202,
            rflags: 0,
            mxcsr: 0x1f80,
            host_mxcsr: 0x1f80,
            masks: [0; 8],
            vectors: [[0; 8]; 32],
            x87: X87(x87),
        }
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Moves to another instruction.
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }

    /// General registers in the order of the encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8–r15.
    pub fn general(&self) -> &[u64; 16] {
        // SAFETY: the array has twenty-four elements, of which these are the first sixteen.
        unsafe { &*self.registers.as_ptr().cast() }
    }

    /// The same, to be changed.
    pub fn general_mut(&mut self) -> &mut [u64; 16] {
        // SAFETY: the array has twenty-four elements, of which these are the first sixteen.
        unsafe { &mut *self.registers.as_mut_ptr().cast() }
    }

    /// RFLAGS.
    pub fn rflags(&self) -> u64 {
        self.other_flags & !STATUS | self.flags >> 8 & 0xd5 | (self.flags & OVERFLOW) << 11
    }

    /// Sets RFLAGS.
    pub fn set_rflags(&mut self, rflags: u64) {
        self.other_flags = rflags & !STATUS;
        self.set_status(rflags);
    }

    /// Takes the status flags of an RFLAGS.
    pub(super) fn set_status(&mut self, rflags: u64) {
        self.flags = (rflags & 0xd5) << 8 | rflags >> 11 & 1;
    }

    /// Takes what `popfq` does. False: it would do more than change flags.
    pub(super) fn pop_rflags(&mut self, value: u64) -> bool {
        const TRAP: u64 = 1 << 8;
        const ALIGNMENT: u64 = 1 << 18;
        /// Direction, nested task, identification.
        const CHANGED: u64 = DIRECTION | 1 << 14 | 1 << 21;
        if value & (TRAP | ALIGNMENT) != 0 {
            return false;
        }
        self.other_flags = self.other_flags & !CHANGED | value & CHANGED;
        self.set_status(value);
        true
    }

    /// Zmm0–31 as words, the lowest first.
    pub fn vectors(&self) -> &[[u64; 8]; 32] {
        &self.vectors
    }

    /// The same, to be changed.
    pub fn vectors_mut(&mut self) -> &mut [[u64; 8]; 32] {
        &mut self.vectors
    }

    /// K0–7.
    pub fn masks(&self) -> &[u64; 8] {
        &self.masks
    }

    /// The same, to be changed.
    pub fn masks_mut(&mut self) -> &mut [u64; 8] {
        &mut self.masks
    }

    /// Control and status of SSE.
    pub fn mxcsr(&self) -> u32 {
        self.mxcsr
    }

    /// Sets it; reserved bits must be clear.
    pub fn set_mxcsr(&mut self, mxcsr: u32) {
        self.mxcsr = mxcsr;
    }

    /// The x87 registers, as the first 160 bytes of what `fxsave64` writes.
    pub fn x87(&self) -> &[u8] {
        &self.x87.0[..160]
    }

    /// Sets them, from the first 160 bytes of such an image.
    pub fn set_x87(&mut self, image: &[u8; 160]) {
        self.x87.0[..24].copy_from_slice(&image[..24]);
        self.x87.0[32..160].copy_from_slice(&image[32..]);
    }

    /// Base of `fs:`.
    pub fn fs_base(&self) -> u64 {
        self.registers[super::op::FS as usize]
    }

    /// Sets the bases of `fs:` and `gs:`.
    pub fn set_bases(&mut self, fs: u64, gs: u64) {
        self.registers[super::op::FS as usize] = fs;
        self.registers[super::op::GS as usize] = gs;
    }

    /// Whether string instructions go backwards.
    pub(super) fn is_backwards(&self) -> bool {
        self.other_flags & DIRECTION != 0
    }

    pub(super) fn set_backwards(&mut self, backwards: bool) {
        self.other_flags = self.other_flags & !DIRECTION | if backwards { DIRECTION } else { 0 };
    }

    /// Copies what a signal interrupted, in the thread that it interrupted.
    ///
    /// # Safety
    /// `context` is the third argument of the signal handler that runs.
    pub(super) unsafe fn load_frame(&mut self, context: *mut c_void, machine: &Machine) {
        // SAFETY: the caller passes the kernel's frame, whose floating-point pointer is null or an image of the
        // kernel's.
        unsafe {
            let frame = frame_registers(context);
            for (register, place) in self.registers.iter_mut().zip(FRAME_ORDER) {
                *register = *frame.add(place);
            }
            self.pc = *frame.add(FRAME_RIP);
            self.set_rflags(*frame.add(FRAME_FLAGS));
            let (fs, gs) = segment_bases(machine);
            self.set_bases(fs, gs);
            let image = *frame.add(FRAME_FLOATING) as *const u8;
            let is_extended =
                !image.is_null() && image.add(SOFTWARE_BYTES).cast::<u32>().read_unaligned() == EXTENDED_MAGIC;
            self.load_floating(image, is_extended, machine);
        }
    }

    /// Takes the registers of a stopped thread.
    pub(super) fn load_registers(&mut self, registers: &Registers<'_>, machine: &Machine) {
        self.general_mut().copy_from_slice(&registers.general);
        self.pc = registers.pc;
        self.set_rflags(registers.rflags);
        self.set_bases(registers.fs_base, registers.gs_base);
        let image = registers.floating.map_or(core::ptr::null(), |image| image.as_ptr());
        // SAFETY: the image is longer than what `cpuid` says of the parts that are read.
        unsafe { self.load_floating(image, true, machine) };
    }

    /// # Safety
    /// `image` is null or the kernel's image of the floating-point state: an FXSAVE area, and behind it the rest of an
    /// XSAVE image if `is_extended`.
    unsafe fn load_floating(&mut self, image: *const u8, is_extended: bool, machine: &Machine) {
        const X87_PART: u64 = 1;
        const SSE: u64 = 2;
        const AVX: u64 = 4;
        const MASKS: u64 = 1 << 5;
        const ZMM_HIGH: u64 = 1 << 6;
        const ZMM_UPPER: u64 = 1 << 7;
        self.vectors = [[0; 8]; 32];
        self.masks = [0; 8];
        self.mxcsr = 0x1f80;
        self.x87.0[..24].fill(0);
        self.x87.0[32..160].fill(0);
        (self.x87.0[0], self.x87.0[1]) = (0x7f, 3);
        if image.is_null() {
            return;
        }
        let vectors = self.vectors.as_mut_ptr().cast::<u8>();
        let copy = |from: *const u8, to: *mut u8, size: usize| {
            // SAFETY: callers stay within the kernel's image: an FXSAVE area, followed by the rest of an XSAVE image
            // where its header says so, at the offsets that `cpuid` reports.
            unsafe { core::ptr::copy_nonoverlapping(from, to, size) }
        };
        // SAFETY: the FXSAVE area has 512 bytes; the XSAVE header at 512 is read only of an extended image.
        unsafe {
            let parts = if is_extended {
                image.add(512).cast::<u64>().read_unaligned()
            } else {
                X87_PART | SSE
            };
            self.mxcsr = image.add(24).cast::<u32>().read_unaligned();
            if parts & X87_PART != 0 {
                copy(image, self.x87.0.as_mut_ptr(), 24);
                copy(image.add(32), self.x87.0.as_mut_ptr().add(32), 128);
            }
            for i in 0..16 {
                let register = vectors.add(64 * i);
                if parts & SSE != 0 {
                    copy(image.add(160 + 16 * i), register, 16);
                }
                if parts & AVX != 0 && machine.avx != 0 {
                    copy(image.add(machine.avx + 16 * i), register.add(16), 16);
                }
                if parts & ZMM_HIGH != 0 && machine.zmm_high != 0 {
                    copy(image.add(machine.zmm_high + 32 * i), register.add(32), 32);
                }
            }
            if parts & ZMM_UPPER != 0 && machine.zmm_upper != 0 {
                copy(image.add(machine.zmm_upper), vectors.add(1024), 1024);
            }
            if parts & MASKS != 0 && machine.masks != 0 {
                copy(image.add(machine.masks), self.masks.as_mut_ptr().cast(), 64);
            }
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// Bases of `fs:` and `gs:` of the calling thread.
///
/// Where the instructions that read them are missing, the ABI helps: the word at `fs:0` is its own address.
fn segment_bases(machine: &Machine) -> (u64, u64) {
    let (fs, gs): (u64, u64);
    // SAFETY: `rdfsbase` is used only where the kernel enabled it. Otherwise the first word of the thread control block
    // is readable by the ABI.
    unsafe {
        if machine.has_fsgsbase {
            asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack, preserves_flags));
        } else {
            asm!("mov {}, fs:[0]", out(reg) fs, options(nostack, preserves_flags, readonly));
            gs = 0;
        }
    }
    (fs, gs)
}
