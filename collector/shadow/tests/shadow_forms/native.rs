//! A child that runs one instruction at a time on given registers.

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::ffi::{c_int, c_long, c_uint, c_void};
use pleach_shadow::State;
use std::ptr::null_mut;

/// Where the instructions lie. Relative operands reach `LOW`, relative branches stay in user space.
pub const CODE: u64 = 0xa000_0000;
pub const CODE_SIZE: usize = 0x1_0000;
/// The scratch memory has two addresses: one for absolute and 32-bit operands, one like those of the heap.
pub const LOW: u64 = 0x7000_0000;
pub const HIGH: u64 = 0x1234_5678_0000;
pub const SCRATCH: usize = 0x4000;
const PAGE: usize = 0x1000;

const NT_X86_XSTATE: usize = 0x202;

/// Memory at fixed addresses, shared with the child.
pub struct Memory {
    pub code: &'static mut [u8],
    pub scratch: &'static mut [u64],
}

fn error(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// # Safety
/// The place is free or ours.
unsafe fn map(at: u64, size: usize, protection: c_int, flags: c_int, fd: c_int) -> Result<*mut c_void, String> {
    // SAFETY: given.
    let mapped = unsafe { libc::mmap(at as *mut c_void, size, protection, flags, fd, 0) };
    if mapped as u64 == at {
        Ok(mapped)
    } else {
        Err(error(&format!("no memory at {at:#x}")))
    }
}

impl Memory {
    /// Maps it, with pages around that cannot be accessed.
    pub fn map() -> Result<Self, String> {
        const NONE: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        const SHARED: c_int = libc::MAP_SHARED | libc::MAP_FIXED;
        const WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new descriptors; the second mapping of a place replaces the first, which is ours.
        unsafe {
            let file = |size: usize| {
                let fd = libc::memfd_create(c"forms".as_ptr(), 0);
                if fd < 0 || libc::ftruncate(fd, size as i64) != 0 {
                    Err(error("memfd"))
                } else {
                    Ok(fd)
                }
            };
            let (code, scratch) = (file(CODE_SIZE)?, file(SCRATCH)?);
            for (at, size, fd) in [
                (CODE, CODE_SIZE, code),
                (LOW, SCRATCH, scratch),
                (HIGH, SCRATCH, scratch),
            ] {
                map(at - PAGE as u64, size + 2 * PAGE, libc::PROT_NONE, NONE, -1)?;
                map(at, size, WRITE, SHARED, fd)?;
            }
            Ok(Self {
                code: core::slice::from_raw_parts_mut(CODE as *mut u8, CODE_SIZE),
                scratch: core::slice::from_raw_parts_mut(LOW as *mut u64, SCRATCH / 8),
            })
        }
    }
}

/// Offsets in an XSAVE image; 0 for components that the processor lacks.
#[derive(Clone, Copy)]
pub struct Layout {
    avx: usize,
    masks: usize,
    zmm_high: usize,
    zmm_upper: usize,
    size: usize,
}

impl Layout {
    pub fn find() -> Option<Self> {
        if __cpuid(1).ecx & 1 << 27 == 0 {
            return None;
        }
        // SAFETY: OSXSAVE is set.
        let enabled = unsafe { enabled() };
        let offset = |part: u32| {
            let there = enabled >> part & 1 != 0;
            if there {
                __cpuid_count(0xd, part).ebx as usize
            } else {
                0
            }
        };
        Some(Self {
            avx: offset(2),
            masks: offset(5),
            zmm_high: offset(6),
            zmm_upper: offset(7),
            size: __cpuid_count(0xd, 0).ebx as usize,
        })
    }

    /// Clears what the processor does not have.
    pub fn restrict(&self, state: &mut State) {
        for (i, vector) in state.vectors_mut().iter_mut().enumerate() {
            let words = [2, 4, 8][usize::from(self.avx != 0) + usize::from(self.zmm_high != 0)];
            vector[if i >= 16 && self.zmm_upper == 0 { 0 } else { words }..].fill(0);
        }
        if self.masks == 0 {
            state.masks_mut().fill(0);
        }
    }

    /// Parts of an image and of the state, as `(offset in the image, vector, first word, words)`.
    fn parts(&self) -> Vec<(usize, usize, usize, usize)> {
        let mut parts = Vec::new();
        for i in 0..16 {
            parts.push((160 + 16 * i, i, 0, 2));
            if self.avx != 0 {
                parts.push((self.avx + 16 * i, i, 2, 2));
            }
            if self.zmm_high != 0 {
                parts.push((self.zmm_high + 32 * i, i, 4, 4));
            }
            if self.zmm_upper != 0 {
                parts.push((self.zmm_upper + 64 * i, 16 + i, 0, 8));
            }
        }
        parts
    }

    fn put(&self, image: &mut [u8], state: &State) {
        const PARTS: u64 = 0xe7;
        let x87 = state.x87();
        image[..24].copy_from_slice(&x87[..24]);
        image[24..28].copy_from_slice(&state.mxcsr().to_le_bytes());
        image[32..160].copy_from_slice(&x87[32..160]);
        for (at, vector, word, words) in self.parts() {
            for (i, value) in state.vectors()[vector][word..word + words].iter().enumerate() {
                image[at + 8 * i..at + 8 * i + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        if self.masks != 0 {
            for (i, mask) in state.masks().iter().enumerate() {
                image[self.masks + 8 * i..self.masks + 8 * i + 8].copy_from_slice(&mask.to_le_bytes());
            }
        }
        // SAFETY: OSXSAVE was set when the layout was found.
        let held = unsafe { enabled() } & PARTS;
        let old = u64::from_le_bytes(image[512..520].try_into().unwrap());
        image[512..520].copy_from_slice(&(old | held).to_le_bytes());
    }

    fn get(&self, image: &[u8], state: &mut State) {
        let word = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
        let mut x87 = [0; 160];
        x87.copy_from_slice(&image[..160]);
        state.set_x87(&x87);
        state.set_mxcsr(word(24) as u32);
        for (at, vector, first, words) in self.parts() {
            for i in 0..words {
                state.vectors_mut()[vector][first + i] = word(at + 8 * i);
            }
        }
        if self.masks != 0 {
            for i in 0..8 {
                state.masks_mut()[i] = word(self.masks + 8 * i);
            }
        }
    }
}

/// # Safety
/// The processor has OSXSAVE.
#[target_feature(enable = "xsave")]
unsafe fn enabled() -> u64 {
    // SAFETY: see above.
    unsafe { _xgetbv(0) }
}

/// What became of an instruction.
pub enum Step {
    Ran(Box<State>),
    /// A signal, and whether it is for a page that cannot be accessed.
    Signal(c_int, bool),
    /// A repeated instruction that does not end.
    Endless,
}

/// The child.
pub struct Native {
    pid: c_int,
    registers: libc::user_regs_struct,
    /// With the segments of a process.
    template: libc::user_regs_struct,
    image: Vec<u8>,
    layout: Layout,
}

impl Native {
    pub fn start(layout: Layout) -> Result<Self, String> {
        // SAFETY: the child calls only what may be called in a signal handler.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(error("fork"));
        }
        if pid == 0 {
            // SAFETY: as above.
            unsafe {
                let run = libc::PROT_READ | libc::PROT_EXEC;
                let failed = libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<c_void>(), null_mut::<c_void>()) != 0
                    || libc::mprotect(CODE as *mut c_void, CODE_SIZE, run) != 0;
                if !failed {
                    libc::raise(libc::SIGSTOP);
                }
                libc::_exit(1);
            }
        }
        // SAFETY: all zeroes are registers.
        let template = unsafe { core::mem::zeroed() };
        let mut child = Self {
            pid,
            registers: template,
            template,
            image: vec![0; layout.size],
            layout,
        };
        let status = child.wait();
        if !libc::WIFSTOPPED(status) || libc::WSTOPSIG(status) != libc::SIGSTOP {
            return Err(format!(
                "tracing or executable memory is refused (wait status {status:#x})"
            ));
        }
        let options = libc::PTRACE_O_EXITKILL as usize;
        child.request(libc::PTRACE_SETOPTIONS, 0, options as *mut c_void)?;
        child.get()?;
        child.template = child.registers;
        Ok(child)
    }

    fn wait(&self) -> c_int {
        let mut status = 0;
        // SAFETY: our child.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {}
        status
    }

    fn request(&self, request: c_uint, address: usize, data: *mut c_void) -> Result<(), String> {
        // SAFETY: the callers' pointers fit their requests.
        let result: c_long = unsafe { libc::ptrace(request, self.pid, address, data) };
        if result == -1 {
            Err(error(&format!("ptrace {request:#x}")))
        } else {
            Ok(())
        }
    }

    fn vectors(&mut self, request: c_uint) -> Result<(), String> {
        let mut place = libc::iovec {
            iov_base: self.image.as_mut_ptr().cast(),
            iov_len: self.image.len(),
        };
        self.request(request, NT_X86_XSTATE, (&raw mut place).cast())
    }

    fn get(&mut self) -> Result<(), String> {
        let registers = (&raw mut self.registers).cast();
        self.request(libc::PTRACE_GETREGS, 0, registers)?;
        self.vectors(libc::PTRACE_GETREGSET)
    }

    /// Runs one instruction. `gs`: base of that segment; `repeats`: to be stepped until it is over.
    pub fn step(&mut self, state: &State, gs: u64, repeats: bool) -> Result<Step, String> {
        let [
            rax,
            rcx,
            rdx,
            rbx,
            rsp,
            rbp,
            rsi,
            rdi,
            r8,
            r9,
            r10,
            r11,
            r12,
            r13,
            r14,
            r15,
        ] = *state.general();
        self.registers = libc::user_regs_struct {
            r15,
            r14,
            r13,
            r12,
            rbp,
            rbx,
            r11,
            r10,
            r9,
            r8,
            rax,
            rcx,
            rdx,
            rsi,
            rdi,
            // Not in a system call.
            orig_rax: u64::MAX,
            rip: state.pc(),
            eflags: state.rflags(),
            rsp,
            fs_base: state.fs_base(),
            gs_base: gs,
            ..self.template
        };
        let mut image = core::mem::take(&mut self.image);
        self.layout.put(&mut image, state);
        self.image = image;
        let registers = (&raw mut self.registers).cast();
        self.request(libc::PTRACE_SETREGS, 0, registers)?;
        self.vectors(libc::PTRACE_SETREGSET)?;
        for _ in 0..5000 {
            self.request(libc::PTRACE_SINGLESTEP, 0, null_mut())?;
            let status = self.wait();
            if !libc::WIFSTOPPED(status) {
                return Err(format!("the child ended with status {status:#x}"));
            }
            match libc::WSTOPSIG(status) {
                libc::SIGTRAP => {}
                signal @ (libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL) => {
                    const SEGV_ACCERR: c_int = 2;
                    // SAFETY: all zeroes are such information.
                    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
                    self.request(libc::PTRACE_GETSIGINFO, 0, (&raw mut info).cast())?;
                    return Ok(Step::Signal(
                        signal,
                        signal == libc::SIGSEGV && info.si_code <= SEGV_ACCERR,
                    ));
                }
                // From outside, before the instruction.
                _ => continue,
            }
            let registers = (&raw mut self.registers).cast();
            self.request(libc::PTRACE_GETREGS, 0, registers)?;
            if repeats && self.registers.rip == state.pc() {
                continue;
            }
            self.get()?;
            return Ok(Step::Ran(Box::new(self.state())));
        }
        Ok(Step::Endless)
    }

    fn state(&self) -> State {
        let mut state = State::new();
        let r = &self.registers;
        *state.general_mut() = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ];
        state.set_pc(r.rip);
        state.set_rflags(r.eflags);
        state.set_bases(r.fs_base, r.gs_base);
        self.layout.get(&self.image, &mut state);
        state
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: our child.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, null_mut(), 0);
        }
    }
}

/// The differences of two states. Only the flags in `flags` are compared.
pub fn differences(shadow: &State, real: &State, flags: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: String, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
        found.push(format!("{what}: {a:x?}, natively {b:x?}"));
    };
    const NAMES: [&str; 8] = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    if shadow.pc() != real.pc() {
        differ("rip".into(), &shadow.pc(), &real.pc());
    }
    for (i, (a, b)) in shadow
        .general()
        .iter()
        .zip(real.general())
        .enumerate()
        .filter(|(_, (a, b))| a != b)
    {
        differ(NAMES.get(i).map_or_else(|| format!("r{i}"), ToString::to_string), a, b);
    }
    let (a, b) = (shadow.rflags() & flags, real.rflags() & flags);
    if a != b {
        differ("flags".into(), &a, &b);
    }
    for (i, (a, b)) in shadow
        .vectors()
        .iter()
        .zip(real.vectors())
        .enumerate()
        .filter(|(_, (a, b))| a != b)
    {
        differ(format!("zmm{i}"), a, b);
    }
    for (i, (a, b)) in shadow
        .masks()
        .iter()
        .zip(real.masks())
        .enumerate()
        .filter(|(_, (a, b))| a != b)
    {
        differ(format!("k{i}"), a, b);
    }
    if shadow.mxcsr() != real.mxcsr() {
        differ("mxcsr".into(), &shadow.mxcsr(), &real.mxcsr());
    }
    let (a, b) = (shadow.x87(), real.x87());
    if a[..5] != b[..5] {
        differ("x87 control, status, tags".into(), &&a[..5], &&b[..5]);
    }
    for i in 0..8 {
        let register = 32 + 16 * i..42 + 16 * i;
        if a[register.clone()] != b[register.clone()] {
            differ(format!("st{i}"), &&a[register.clone()], &&b[register]);
        }
    }
    if shadow.fs_base() != real.fs_base() {
        differ("fs".into(), &shadow.fs_base(), &real.fs_base());
    }
    found
}
