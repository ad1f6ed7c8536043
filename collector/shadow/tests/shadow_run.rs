//! Shadow execution against the processor: a burst runs ahead, then the trap flag leads the program over the same
//! stretch. Branches, registers, flags and vectors have to agree.

#![allow(
    unsafe_code,
    reason = "instructions are executed in mapped memory, by the engine and by the processor"
)]

use core::ffi::{c_char, c_int, c_void};
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pleach_facilities::skip;
use pleach_shadow::{Engine, Limits, Observed, Outcome, State, Taken, recover};
use pleach_wire::x86::{self, Kind};
use std::ffi::CString;
use std::process::Command;

const MAX: usize = 1 << 16;
const TRAP_FLAG: i64 = 0x100;
/// Flags that instructions may leave undefined, and that a later one hardly reads.
const DEFINED: u64 = 0x8c5 | 0x400;

struct Check {
    engine: *mut Engine,
    branches: Box<[(u64, u64); MAX]>,
    count: usize,
    checked: usize,
    outcome: Option<Outcome>,
    instructions: u32,
    last: u64,
    state: State,
    limits: Limits,
    stop: bool,
    wait: u32,
    bursts: u64,
    total: u64,
    edges: u64,
    thunks: u64,
    compared: u64,
    ends: [u64; 16],
    wrong: u64,
}

static mut CHECK: *mut Check = core::ptr::null_mut();
static REQUEST: AtomicU64 = AtomicU64::new(0);

fn check() -> &'static mut Check {
    // SAFETY: one thread; set before the handlers are.
    unsafe { &mut *CHECK }
}

unsafe fn registers(context: *mut c_void) -> &'static mut [i64; 23] {
    // SAFETY: the kernel's frame.
    unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs }
}

unsafe fn begin(context: *mut c_void) {
    let check = check();
    // SAFETY: the engine is ours.
    let engine = unsafe { &mut *check.engine };
    // SAFETY: this handler's context.
    unsafe { engine.load_frame(context) };
    let (mut count, branches) = (0, &mut check.branches);
    let limits = check.limits;
    let outcome = engine.run_loaded(&limits, &mut |observed| {
        if let Observed::Taken(Taken { from, to, .. }) = observed {
            branches[count & (MAX - 1)] = (from, to);
            count += 1;
        }
    });
    check.count = count;
    check.checked = 0;
    check.instructions = 0;
    check.outcome = Some(outcome);
    check.bursts += 1;
    check.thunks += u64::from(outcome.thunks);
    check.ends[outcome.end as usize] += 1;
    // SAFETY: as above.
    check.last = unsafe { registers(context) }[libc::REG_RIP as usize] as u64;
    check.wait = 0;
}

extern "C" fn on_request(_: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: our handler.
    unsafe {
        let flags = &mut registers(context)[libc::REG_EFL as usize];
        if REQUEST.load(Relaxed) != 0 {
            *flags |= TRAP_FLAG;
            check().outcome = None;
            check().stop = false;
        } else {
            *flags &= !TRAP_FLAG;
            check().stop = true;
        }
    }
}

extern "C" fn on_trap(_: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: our handler; one thread.
    unsafe {
        let check = check();
        let frame = registers(context);
        if check.stop {
            frame[libc::REG_EFL as usize] &= !TRAP_FLAG;
            return;
        }
        let pc = frame[libc::REG_RIP as usize] as u64;
        let Some(outcome) = check.outcome else {
            return begin(context);
        };
        if check.instructions < outcome.instructions {
            let bytes = core::slice::from_raw_parts(check.last as *const u8, x86::MAX_LENGTH);
            let ins = x86::decode(bytes, check.last).unwrap();
            if ins.kind == Kind::Repeat && pc == check.last {
                return;
            }
            check.instructions += 1;
            check.total += 1;
            let next = check.last + u64::from(ins.length);
            let taken = match ins.kind {
                Kind::IndirectJump | Kind::IndirectCall | Kind::Return => true,
                Kind::Jump | Kind::Call => pc == ins.target,
                Kind::Conditional => pc == ins.target && pc != next,
                _ => false,
            };
            if taken {
                let expected = check.branches[check.checked & (MAX - 1)];
                if check.checked >= check.count || expected != (check.last, pc) {
                    wrong(format_args!(
                        "{:#x} -> {pc:#x}, the shadow went {expected:x?}",
                        check.last
                    ));
                    check.outcome = None;
                    return;
                }
                check.checked += 1;
                check.edges += 1;
            }
            check.last = pc;
            if check.instructions < outcome.instructions {
                return;
            }
        }
        if check.wait == 0 {
            if outcome.end_pc != pc || check.checked != check.count {
                wrong(format_args!(
                    "ended at {:#x}, the program is at {pc:#x}",
                    outcome.end_pc
                ));
            } else {
                compare(context, &outcome);
            }
            // What cannot be followed runs before the next burst.
            if matches!(outcome.end as u8, 0..=2) {
                return begin(context);
            }
            check.wait = 1;
            check.last = pc;
            return;
        }
        if pc != check.last {
            begin(context);
        }
    }
}

/// Text that needs no allocation: handlers may interrupt one.
struct Text {
    bytes: [u8; 600],
    length: usize,
}

impl core::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for (to, from) in self.bytes[self.length..].iter_mut().zip(text.as_bytes()) {
            *to = *from;
            self.length += 1;
        }
        Ok(())
    }
}

/// Tells what differs at once: there may be no later.
fn wrong(what: core::fmt::Arguments) {
    check().wrong += 1;
    if check().wrong > 40 {
        return;
    }
    let mut text = Text {
        bytes: [0; 600],
        length: 0,
    };
    let _ = writeln!(text, "{what}");
    // SAFETY: the bytes are there.
    unsafe { libc::write(2, text.bytes.as_ptr().cast(), text.length) };
}

unsafe fn compare(context: *mut c_void, outcome: &Outcome) {
    let check = check();
    // SAFETY: our engine.
    let engine = unsafe { &mut *check.engine };
    let shadow = *engine.state();
    // SAFETY: this handler's frame.
    unsafe { engine.load_frame(context) };
    let real = *engine.state();
    check.state = real;
    check.compared += 1;
    let report = |what: core::fmt::Arguments| wrong(format_args!("at {:#x} after {outcome:?}: {what}", outcome.end_pc));
    for (i, (a, b)) in shadow.general().iter().zip(real.general()).enumerate() {
        if a != b {
            report(format_args!("register {i}: {a:#x}, not {b:#x}"));
        }
    }
    let (a, b) = (shadow.rflags() & DEFINED, real.rflags() & DEFINED);
    if a != b {
        report(format_args!("flags {a:#x}, not {b:#x}"));
    }
    for (i, (a, b)) in shadow.vectors().iter().zip(real.vectors()).enumerate() {
        if a != b {
            report(format_args!("vector {i}: {a:x?}, not {b:x?}"));
        }
    }
    for (i, (a, b)) in shadow.masks().iter().zip(real.masks()).enumerate() {
        if a != b {
            report(format_args!("mask {i}: {a:x?}, not {b:x?}"));
        }
    }
    if shadow.mxcsr() != real.mxcsr() {
        report(format_args!("mxcsr {:#x}, not {:#x}", shadow.mxcsr(), real.mxcsr()));
    }
    // Registers, control, status and tags; the last instruction's address is not kept.
    for range in [0..5, 32..160] {
        if shadow.x87()[range.clone()] != real.x87()[range.clone()] {
            report(format_args!(
                "x87 {:x?}, not {:x?}",
                &shadow.x87()[range.clone()],
                &real.x87()[range]
            ));
        }
    }
}

extern "C" fn on_fault(signal: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: the engine of this thread.
    unsafe {
        if !recover(check().engine, context) {
            let frame = registers(context);
            let own = on_fault as *const () as usize;
            wrong(format_args!(
                "signal {signal} at {:#x}, this handler is at {own:#x}, registers {frame:x?}",
                frame[libc::REG_RIP as usize]
            ));
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn install() {
    let limits = Limits {
        max_branches: 300,
        max_instructions: 4000,
        max_new_decodes: 4000,
    };
    let check = Box::new(Check {
        engine: Engine::reserve().unwrap(),
        branches: vec![(0, 0); MAX].into_boxed_slice().try_into().unwrap(),
        count: 0,
        checked: 0,
        outcome: None,
        instructions: 0,
        last: 0,
        state: State::new(),
        limits,
        stop: false,
        wait: 0,
        bursts: 0,
        total: 0,
        edges: 0,
        thunks: 0,
        compared: 0,
        ends: [0; 16],
        wrong: 0,
    });
    // SAFETY: before the handlers are installed.
    unsafe { CHECK = Box::into_raw(check) };
    let handler = |signal: c_int, handler: extern "C" fn(c_int, *mut c_void, *mut c_void)| {
        // SAFETY: handlers of this signature, with a mask that leaves faults through.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(signal, &action, core::ptr::null_mut());
        }
    };
    handler(libc::SIGUSR1, on_request);
    handler(libc::SIGTRAP, on_trap);
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
        handler(signal, on_fault);
    }
}

fn followed(name: &str, work: impl FnOnce()) {
    let before = (check().total, check().edges, check().wrong, check().thunks);
    REQUEST.store(1, Relaxed);
    // SAFETY: our own handler.
    unsafe { libc::raise(libc::SIGUSR1) };
    work();
    REQUEST.store(0, Relaxed);
    // SAFETY: as above.
    unsafe { libc::raise(libc::SIGUSR1) };
    let check = check();
    println!(
        "{name}: {} instructions, {} branches, {} by thunks, {} wrong",
        check.total - before.0,
        check.edges - before.1,
        check.thunks - before.3,
        check.wrong - before.2
    );
}

fn words(count: usize) -> Vec<String> {
    let mut seed = 7u64;
    (0..count)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("w{}-{:.3}", seed >> 50, (seed >> 40) as f64 / 77.0)
        })
        .collect()
}

unsafe extern "C" fn by_number(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: `qsort` passes elements.
    unsafe { (*a.cast::<i32>()).cmp(&*b.cast::<i32>()) as c_int }
}

/// Compiles the C++ part and loads it.
fn library(directory: &std::path::Path) -> Option<[unsafe extern "C" fn() -> c_int; 5]> {
    let (source, object) = (directory.join("a.cc"), directory.join("a.so"));
    std::fs::write(&source, include_str!("shadow_run.cc")).unwrap();
    let built = Command::new("clang++-22")
        .args(["-O2", "-shared", "-fPIC", "-Wl,-z,lazy", "-o"])
        .args([&object, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        skip("clang++-22 cannot compile a shared library");
        return None;
    }
    let path = CString::new(object.to_str().unwrap()).unwrap();
    // SAFETY: our own library.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    assert!(!handle.is_null());
    Some(
        [c"throws", c"jumps", c"dispatches", c"recurses", c"floats"].map(|name| {
            // SAFETY: functions of that signature.
            unsafe {
                let symbol = libc::dlsym(handle, name.as_ptr());
                assert!(!symbol.is_null());
                core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(symbol)
            }
        }),
    )
}

#[test]
fn the_program_takes_the_same_way() {
    install();
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path());
    let scale = if std::env::var_os("PLEACH_SHADOW_FULL").is_some() {
        10
    } else {
        1
    };

    let text = words(100 * scale);
    followed("sort of strings", || {
        let mut sorted = text.clone();
        sorted.sort();
        std::hint::black_box(&sorted);
    });
    followed("hash map", || {
        let mut map = std::collections::HashMap::new();
        for word in &text {
            *map.entry(word.as_str()).or_insert(0) += word.len();
        }
        std::hint::black_box(&map);
    });
    followed("qsort", || {
        let mut numbers: Vec<i32> = (0..150 * scale as i32).map(|i| i * 7919 % 1009).collect();
        // SAFETY: the slice and its element size.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(by_number)) };
        std::hint::black_box(&numbers);
    });
    followed("float formatting", || {
        let mut buffer = [0u8; 128];
        for i in 0..12 * scale {
            let (a, b) = (i as f64 * 1.234e-5, 1e17 / (i as f64 + 0.5));
            // SAFETY: bounded.
            unsafe {
                let to = buffer.as_mut_ptr().cast::<c_char>();
                libc::snprintf(
                    to,
                    128,
                    c"%.17g %a %e %d %s".as_ptr(),
                    a,
                    a,
                    b,
                    i as c_int,
                    c"text".as_ptr(),
                );
                std::hint::black_box(libc::strtod(to, core::ptr::null_mut()));
            }
            std::hint::black_box(format!("{a:?} {b:.3}").parse::<f32>().is_ok());
        }
    });
    followed("string functions", || {
        let mut a = vec![0u8; 9000];
        for length in (0..70).chain([100, 127, 128, 129, 255, 256, 257, 511, 1023, 2049, 4097]) {
            a[..length].fill(b'x');
            a[length] = 0;
            let b = a.clone();
            // SAFETY: terminated strings within their buffers.
            unsafe {
                let (p, q) = (a.as_mut_ptr(), b.as_ptr());
                std::hint::black_box(libc::strlen(p.cast()));
                std::hint::black_box(libc::memcmp(p.cast(), q.cast(), length));
                std::hint::black_box(libc::strcmp(p.cast(), q.cast()));
                std::hint::black_box(libc::strchr(p.cast(), 0x79));
                std::hint::black_box(libc::strrchr(p.cast(), 0x78));
                std::hint::black_box(libc::memchr(p.cast(), 0, length + 1));
                libc::memmove(p.add(3).cast(), p.cast(), length);
                libc::memcpy(p.cast(), q.cast(), length);
                libc::memset(p.cast(), 1, length);
                libc::strncpy(p.cast(), q.cast(), length / 2 + 1);
                std::hint::black_box(libc::strstr(q.cast(), c"xxy".as_ptr()));
            }
        }
    });
    if let Some([throws, jumps, dispatches, recurses, floats]) = library {
        let run = |name, function: unsafe extern "C" fn() -> c_int| {
            // SAFETY: our own library.
            followed(name, || assert_ne!(unsafe { function() }, -1));
        };
        run("exceptions", throws);
        run("setjmp", jumps);
        run("computed goto", dispatches);
        run("recursion", recurses);
        run("floating point", floats);
    }
    let check = check();
    println!(
        "{} bursts, {} instructions, {} branches, {} thunks, {} states compared; ends {:?}",
        check.bursts, check.total, check.edges, check.thunks, check.compared, check.ends
    );
    assert!(check.compared > 50);
    assert!(check.edges > 10_000);
    assert_eq!(check.wrong, 0);
}
