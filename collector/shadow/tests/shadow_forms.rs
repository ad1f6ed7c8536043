//! Shadow execution of single instructions against the processor: every encoding form of common libraries, on random
//! registers and memory, in the engine and in a traced child.
//!
//! `SHADOW_FORMS_ALL=1`: more instructions of each form, more libraries, more runs. `SHADOW_FORMS=FILE`: a list of all
//! forms and what became of them.

#![allow(
    unsafe_code,
    reason = "instructions are executed in mapped memory, by the engine and by the processor"
)]

#[path = "shadow_forms/forms.rs"]
mod forms;
#[path = "shadow_forms/native.rs"]
mod native;
#[path = "shadow_forms/random.rs"]
mod random;
#[path = "shadow_forms/setup.rs"]
mod setup;
#[path = "shadow_forms/taint.rs"]
mod taint;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};
use forms::{Forms, Key};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits};
use native::{CODE, CODE_SIZE, Layout, Memory, Native, SCRATCH, Step, differences};
use pleach_facilities::skip;
use pleach_shadow::{End, Engine, Limits, Observed, State, Taint, recover};
use random::Random;
use setup::{Setup, number};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

const STATUS: u64 = 0x8d5;
const DIRECTION: u64 = 0x400;
/// How many mismatches to end with.
const MAX_SHOWN: usize = 60;

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(core::ptr::null_mut());
/// At fixed addresses, so for one test at a time; what maps it once, or why that failed.
static MEMORY: LazyLock<Mutex<Result<Memory, String>>> = LazyLock::new(|| Mutex::new(Memory::map()));
static CURRENT: [AtomicU8; 16] = [const { AtomicU8::new(0) }; 16];

extern "C" fn on_fault(signal: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: the engine of the one thread that has one.
    if unsafe { recover(ENGINE.load(Relaxed), context) } {
        return;
    }
    // Not a fault of the burst: name the instruction, then fault again.
    let mut text = *b"outside of a burst; last instruction: ................................\n";
    for (i, byte) in CURRENT.iter().map(|byte| byte.load(Relaxed)).enumerate() {
        text[38 + 2 * i] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[39 + 2 * i] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    // SAFETY: our text.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::signal(signal, libc::SIG_DFL);
    }
}

fn install() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
        // SAFETY: a handler of this signature.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        }
    }
}

/// What became of a form.
#[derive(Default)]
struct Tally {
    interpreted: u64,
    thunks: u64,
    faults: u64,
    declined: BTreeMap<String, u64>,
    mismatches: u64,
}

/// What the instruction divides by.
fn divisor(setup: &Setup, engine: &Engine) -> Option<u64> {
    let ins = &setup.ins;
    if !matches!(ins.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
        return None;
    }
    let general = setup.state.general();
    if ins.op0_kind() == OpKind::Register {
        let register = ins.op0_register();
        let is_high = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
        let whole = general[if is_high {
            register as usize - Register::AH as usize
        } else {
            number(register)?
        }];
        let part = if is_high { whole >> 8 } else { whole };
        return Some(part & u64::MAX >> (64 - 8 * register.size()));
    }
    let address = ins.virtual_address(0, 0, |register, _, _| match register {
        Register::FS => Some(setup.state.fs_base()),
        Register::GS => Some(setup.gs),
        Register::DS | Register::SS | Register::ES | Register::CS => Some(0),
        _ => Some(general[number(register)?] & u64::MAX >> (64 - 8 * register.size())),
    })?;
    let mut value = [0; 8];
    // SAFETY: the instruction has read these bytes.
    unsafe { engine.read(address, &mut value[..ins.memory_size().size()]) };
    Some(u64::from_le_bytes(value))
}

impl Tally {
    fn text(&self) -> String {
        let mut text = String::new();
        let counts = [
            ("interpreted", self.interpreted),
            ("thunk", self.thunks),
            ("fault", self.faults),
            ("MISMATCH", self.mismatches),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let _ = write!(text, " {name} {count}");
        }
        for (reason, count) in &self.declined {
            let _ = write!(text, " declined({reason}) {count}");
        }
        text
    }
}

/// Results of all runs.
#[derive(Default)]
struct Report {
    tallies: BTreeMap<Key, Tally>,
    runs: u64,
    compared: u64,
    undefined: u64,
    /// Runs of what was at the address before.
    stale: u64,
    /// Runs that left the shadow's x87 state to the caller.
    leftovers: u64,
    mismatches: u64,
    shown: Vec<String>,
}

struct Test<'a> {
    memory: &'a mut Memory,
    native: Native,
    layout: Layout,
    engine: *mut Engine,
    factory: InstructionInfoFactory,
    random: Random,
    at: usize,
    /// What was last run at an offset.
    known: HashMap<usize, Vec<u8>>,
    report: Report,
    before: Vec<u64>,
    shadow: Vec<u64>,
}

fn as_bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: words are bytes.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Status flags that the instruction defines.
fn defined(ins: &Instruction) -> u64 {
    let undefined = ins.rflags_undefined();
    let flags = [
        (RflagsBits::OF, 0x800),
        (RflagsBits::SF, 0x80),
        (RflagsBits::ZF, 0x40),
        (RflagsBits::AF, 0x10),
        (RflagsBits::CF, 1),
        (RflagsBits::PF, 4),
    ];
    let held = flags.iter().filter(|(flag, _)| undefined & flag == 0);
    held.fold(DIRECTION, |sum, (_, bit)| sum | bit)
}

/// What an engine must leave alone: x87 control, status and tags, MXCSR.
fn host() -> ([u8; 5], u32) {
    #[repr(align(16))]
    struct Image([u8; 512]);
    let mut image = Image([0; 512]);
    // SAFETY: the buffer has the size of the stored image.
    unsafe { core::arch::x86_64::_fxsave64(image.0.as_mut_ptr()) };
    let mxcsr = u32::from_le_bytes(image.0[24..28].try_into().unwrap());
    // Flags of what this program itself computed do not matter.
    (image.0[..5].try_into().unwrap(), mxcsr & !0x3f)
}

impl Test<'_> {
    /// `again`: where the last one was, so that it may be known.
    fn run(&mut self, key: Key, original: &[u8], tame: bool, again: bool) -> Result<(), String> {
        let mut code = original.to_vec();
        if !again {
            self.at = (self.at + code.len() + self.random.below(24) as usize) % (CODE_SIZE - 64);
        }
        let at = CODE + self.at as u64;
        let setup = Setup::make(
            &mut code,
            at,
            tame,
            &self.layout,
            &mut self.factory,
            &mut self.random,
            self.memory.scratch,
        );
        self.memory.code[self.at..self.at + code.len()].copy_from_slice(&code);
        for (i, byte) in CURRENT.iter().enumerate() {
            byte.store(code.get(i).copied().unwrap_or(0), Relaxed);
        }
        self.before.copy_from_slice(self.memory.scratch);
        // SAFETY: ours alone.
        let engine = unsafe { &mut *self.engine };
        let limits = Limits {
            max_instructions: 1,
            ..Limits::default()
        };
        let mut branches: Vec<(u64, u64)> = Vec::with_capacity(4);
        let host_before = host();
        let mut divisors: Vec<(u64, u64)> = Vec::with_capacity(4);
        let outcome = engine.run(&setup.state, &limits, &mut |observed| match observed {
            Observed::Taken(taken) => branches.push((taken.from, taken.to)),
            Observed::Division { at, divisor } => divisors.push((at, divisor)),
        });
        let host_after = host();
        let shadow = *engine.state();
        // SAFETY: mapped.
        unsafe { engine.read(setup.region, as_bytes(&mut self.shadow)) };
        self.report.runs += 1;
        if outcome.decodes > 0 {
            self.known.insert(self.at, code.clone());
        } else if self.known.get(&self.at) != Some(&code) {
            // Changed bytes are recognised by 16 bits of check.
            self.report.stale += 1;
            return Ok(());
        }

        let mut wrong = Vec::new();
        if host_after != host_before {
            // A signal handler's x87 state is its own, and it has none; MXCSR it uses.
            self.report.leftovers += 1;
            if host_after.1 != host_before.1 {
                wrong.push(format!(
                    "the caller's MXCSR {:x} became {:x}",
                    host_before.1, host_after.1
                ));
            }
            // SAFETY: as it was, so that the next run is not blamed.
            unsafe { core::arch::asm!("fninit") };
        }
        if self.before != self.memory.scratch {
            wrong.push("the engine changed the program's memory".into());
        }
        let ins = setup.ins;
        let ran = outcome.instructions > 0;
        let mut counted = "";
        if !ran && outcome.end != End::Fault {
            self.decline(key, format!("{:?}", outcome.end));
            if outcome.end_pc != at {
                wrong.push(format!("declined, but at {:#x}", outcome.end_pc));
            }
        } else if !may_run(&ins) {
            if ran && *engine.taint() == Taint::NONE {
                wrong.push("claims to know what the kernel, the clock or the processor's make decide".into());
            }
        } else {
            let repeats = (ins.has_rep_prefix() || ins.has_repne_prefix()) && ins.is_string_instruction();
            match self.native.step(&setup.state, setup.gs, repeats)? {
                Step::Ran(real) if ran => {
                    self.report.compared += 1;
                    counted = if outcome.thunks > 0 { "thunk" } else { "interpreted" };
                    let expected = divisor(&setup, engine).map(|divisor| (at, divisor));
                    if divisors != Vec::from_iter(expected) {
                        wrong.push(format!("divisors {divisors:x?}, but it divides by {expected:x?}"));
                    }
                    self.compare(&setup, &shadow, &real, &branches, &mut wrong);
                    if outcome.end_pc != real.pc() {
                        wrong.push(format!("end_pc {:#x}, natively {:#x}", outcome.end_pc, real.pc()));
                    }
                }
                // The trap comes before the fault if there was some progress.
                Step::Ran(real) if ins.is_vsib() && real.pc() == at => counted = "fault",
                Step::Ran(_) if self.suppresses(&ins) => self.decline(key, "Fault of a masked part".into()),
                Step::Ran(_) => wrong.push("fault, natively none".into()),
                // As documented, stores to where nothing can be stored are not noticed.
                Step::Signal(_, true) if ran && self.only_stores(&ins) => self.decline(key, "store not checked".into()),
                Step::Signal(signal, _) if ran => wrong.push(format!("ran, natively signal {signal}")),
                Step::Signal(..) => {
                    counted = "fault";
                    self.report.compared += 1;
                    if outcome.end_pc != at || shadow.pc() != at {
                        wrong.push(format!("fault, but at {:#x}", outcome.end_pc));
                    }
                    if !repeats {
                        let flags = shadow.rflags() != setup.state.rflags();
                        if shadow.general() != setup.state.general() || flags {
                            wrong.push("the fault left changed registers".into());
                        }
                    }
                }
                Step::Endless => {}
            }
        }
        let tally = self.report.tallies.entry(key).or_default();
        match counted {
            "thunk" => tally.thunks += 1,
            "interpreted" => tally.interpreted += 1,
            "fault" => tally.faults += 1,
            _ => {}
        }
        if !wrong.is_empty() {
            tally.mismatches += 1;
            self.report.mismatches += 1;
            if tally.mismatches <= 2 && self.report.shown.len() < 4000 {
                let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
                let g = setup.state.general();
                self.report.shown.push(format!(
                    "{key}: {hex} at {at:#x} ({:?}, {} thunks, {:?}):\n    {}\n    began with {g:x?} flags {:x} mxcsr {:x} x87 {:x?}",
                    outcome.end,
                    outcome.thunks,
                    ins.mnemonic(),
                    wrong.join("\n    "),
                    setup.state.rflags(),
                    setup.state.mxcsr(),
                    &setup.state.x87()[..5],
                ));
            }
        }
        Ok(())
    }

    fn decline(&mut self, key: Key, why: String) {
        *self
            .report
            .tallies
            .entry(key)
            .or_default()
            .declined
            .entry(why)
            .or_default() += 1;
    }

    /// Whether parts of the operand do not have to be there.
    fn suppresses(&mut self, ins: &Instruction) -> bool {
        let conditional = |access| matches!(access, OpAccess::CondRead | OpAccess::CondWrite);
        let masked = matches!(
            ins.mnemonic(),
            Mnemonic::Vmaskmovps | Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovd | Mnemonic::Vpmaskmovq
        );
        let used = self.factory.info(ins).used_memory();
        masked || ins.has_op_mask() || used.iter().any(|m| conditional(m.access()))
    }

    /// Whether there is an operand that is stored and not read.
    fn only_stores(&mut self, ins: &Instruction) -> bool {
        let stored = |access| matches!(access, OpAccess::Write | OpAccess::CondWrite);
        self.factory.info(ins).used_memory().iter().any(|m| stored(m.access()))
    }

    fn compare(
        &mut self,
        setup: &Setup,
        shadow: &State,
        real: &State,
        branches: &[(u64, u64)],
        wrong: &mut Vec<String>,
    ) {
        let ins = &setup.ins;
        let flags = defined(ins);
        wrong.extend(differences(shadow, real, flags));
        let undefined = !flags & STATUS;
        self.report.undefined += u64::from(shadow.rflags() & undefined != real.rflags() & undefined);
        let mut native = self.memory.scratch.to_vec();
        if matches!(ins.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq) {
            // The trap flag of our step, and what only `popf` sets: a child that did keeps it.
            let at = real.general()[4].wrapping_sub(setup.region) as usize;
            for (byte, bit) in [(1, 1), (2, 0x20)] {
                if let Some(byte) = as_bytes(&mut native).get_mut(at + byte) {
                    *byte &= !bit;
                }
            }
        }
        if native != self.shadow {
            let (native, shadow) = (as_bytes(&mut native), as_bytes(&mut self.shadow));
            let differs: Vec<usize> = (0..SCRATCH).filter(|&i| native[i] != shadow[i]).collect();
            let (first, last) = (differs[0], differs[differs.len() - 1]);
            wrong.push(format!(
                "memory at {:#x} to {:#x}, {} bytes: {:x?}, natively {:x?}",
                setup.region + first as u64,
                setup.region + last as u64,
                differs.len(),
                &shadow[first..(last + 1).min(first + 32)],
                &native[first..(last + 1).min(first + 32)],
            ));
        }
        let next = ins.next_ip();
        let taken = match ins.flow_control() {
            FlowControl::Next => Some(false),
            FlowControl::ConditionalBranch if ins.near_branch_target() == next => None,
            FlowControl::ConditionalBranch => Some(real.pc() != next),
            _ => Some(true),
        };
        let expected = [(ins.ip(), real.pc())];
        if taken.is_some_and(|taken| branches != &expected[..usize::from(taken)]) {
            wrong.push(format!(
                "branches {branches:x?}, natively {:?} to {:#x}",
                taken,
                real.pc()
            ));
        }
    }
}

/// Whether it may run in the child: no system calls, nothing that comes out differently each time.
fn may_run(ins: &Instruction) -> bool {
    !matches!(
        ins.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Int
            | Mnemonic::Int3
            | Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Rdpid
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Rdpmc
            | Mnemonic::Cpuid
            | Mnemonic::Xgetbv
    )
}

#[test]
fn each_instruction_does_what_the_processor_does() {
    let all = std::env::var_os("SHADOW_FORMS_ALL").is_some();
    let start = Instant::now();
    let Some(layout) = Layout::find() else {
        return skip("the processor has no XSAVE");
    };
    let mut memory = MEMORY.lock().unwrap();
    let memory = match memory.as_mut() {
        Ok(memory) => memory,
        Err(reason) => return skip(&reason.to_string()),
    };
    let native = match Native::start(layout) {
        Ok(native) => native,
        Err(reason) => return skip(&reason.to_string()),
    };
    let mut forms = Forms::new(if all { 40 } else { 10 });
    for (path, step) in forms::libraries(all) {
        let (forms_before, instructions) = (forms.found.len(), forms.instructions);
        if forms.add(&path, step).is_some() {
            println!(
                "{}: {} instructions, {} new forms",
                path.display(),
                forms.instructions - instructions,
                forms.found.len() - forms_before
            );
        }
    }
    println!("libraries read after {:.1} s", start.elapsed().as_secs_f64());
    assert!(forms.found.len() > 100, "no libraries");
    if all {
        forms.mutate(20, &mut Random(7));
        println!("{} forms with changed bits", forms.found.len());
    }

    let engine = Engine::reserve().unwrap();
    // SAFETY: just made.
    println!("thunks: {}", unsafe { (*engine).has_thunks() });
    ENGINE.store(engine, Relaxed);
    install();
    let mut test = Test {
        memory,
        native,
        layout,
        engine,
        factory: InstructionInfoFactory::new(),
        random: Random(20_26),
        at: 0,
        known: HashMap::new(),
        report: Report::default(),
        before: vec![0; SCRATCH / 8],
        shadow: vec![0; SCRATCH / 8],
    };
    for line in test.memory.scratch.chunks_mut(8) {
        test.random.fill(line);
    }
    for round in 0..if all { 24 } else { 8 } {
        for (key, instances) in &forms.found {
            for bytes in instances {
                test.run(*key, bytes, round % 4 == 0, false).unwrap();
                test.run(*key, bytes, false, true).unwrap();
            }
        }
    }
    ENGINE.store(core::ptr::null_mut(), Relaxed);
    // SAFETY: not used any more.
    unsafe { Engine::release(engine) };
    finish(&test.report, &forms);
    println!("{:.1} s", start.elapsed().as_secs_f64());
    let report = &test.report;
    assert!(report.compared > 1000, "too little is followed");
    assert!(report.stale <= 2 + report.runs / 20_000, "{} stale", report.stale);
    assert_eq!(
        report.mismatches,
        0,
        "\n{}",
        report.shown[..report.shown.len().min(MAX_SHOWN)].join("\n")
    );
}

fn finish(report: &Report, forms: &Forms) {
    let instances: usize = forms.found.values().map(Vec::len).sum();
    println!(
        "{} forms, {instances} instructions, {} runs, {} compared ({} faults), {} with other undefined flags, {} left x87 registers \
         changed, {} of changed code, {} mismatches",
        forms.found.len(),
        report.runs,
        report.compared,
        report.tallies.values().map(|t| t.faults).sum::<u64>(),
        report.undefined,
        report.leftovers,
        report.stale,
        report.mismatches
    );
    let count = |test: &dyn Fn(&Tally) -> bool| report.tallies.values().filter(|tally| test(tally)).count();
    println!(
        "forms: {} interpreted, {} by thunks, {} only ever faulted, {} only declined, {} with mismatches",
        count(&|t| t.interpreted > 0),
        count(&|t| t.thunks > 0),
        count(&|t| t.faults > 0 && t.interpreted + t.thunks == 0 && t.declined.is_empty()),
        count(&|t| !t.declined.is_empty() && t.interpreted + t.thunks == 0),
        count(&|t| t.mismatches > 0)
    );
    let mut declined: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (key, tally) in &report.tallies {
        for (reason, count) in &tally.declined {
            let entry = declined
                .entry(format!("{:?} {reason}", key.code.mnemonic()))
                .or_default();
            *entry = (entry.0 + 1, entry.1 + count);
        }
    }
    println!("declined, with forms and runs:");
    for (name, (forms, runs)) in declined {
        println!("  {name}: {forms}, {runs}");
    }
    if let Some(path) = std::env::var_os("SHADOW_FORMS") {
        let lines = report.tallies.iter().map(|(key, tally)| {
            let instructions = forms.found.get(key).map_or(0, Vec::len);
            format!("{key}:{} ({instructions} instructions)\n", tally.text())
        });
        let text: String = lines
            .chain(report.shown.iter().map(|shown| format!("{shown}\n")))
            .collect();
        std::fs::write(path, text).unwrap();
    }
}
