//! Taint. Each encoding form runs twice, from states that differ only in tainted values: values that are not tainted
//! afterwards must be equal. Short programs test where a burst ends.

use crate::forms::{self, Forms};
use crate::native::{CODE, CODE_SIZE, Layout, SCRATCH};
use crate::random::Random;
use crate::setup::Setup;
use crate::{ENGINE, MEMORY, install};
use core::sync::atomic::Ordering::Relaxed;
use iced_x86::InstructionInfoFactory;
use pleach_facilities::skip;
use pleach_shadow::{End, Engine, Limits, Outcome, State, Taint};

/// Marks that hit what an instruction uses more often than not.
fn marks(random: &mut Random) -> Taint {
    let mut taint = Taint::NONE;
    let bits = |random: &mut Random| random.next() & random.next();
    // The stack pointer's use is an address.
    taint.general = bits(random) as u16 & !(1 << 4);
    if random.one_in(3) {
        taint.flags = bits(random) as u32 & 0x8d5;
    }
    taint.vectors = [bits(random) as u32, bits(random) as u32];
    taint.masks = bits(random) as u8;
    taint.x87 = random.one_in(4);
    taint
}

/// Another value for everything that is tainted.
fn change(state: &State, taint: &Taint, layout: &Layout, random: &mut Random) -> State {
    let mut other = *state;
    for (i, register) in other.general_mut().iter_mut().enumerate() {
        if taint.general >> i & 1 != 0 {
            *register = random.next() >> random.below(64);
        }
    }
    let rflags = state.rflags() ^ random.next() & u64::from(taint.flags);
    other.set_rflags(rflags);
    for (i, vector) in other.vectors_mut().iter_mut().enumerate() {
        for (word, value) in vector.iter_mut().enumerate() {
            if taint.vectors[usize::from(word >= 2)] >> i & 1 != 0 {
                *value = random.next();
            }
        }
    }
    for (i, mask) in other.masks_mut().iter_mut().enumerate() {
        if taint.masks >> i & 1 != 0 {
            *mask = random.next();
        }
    }
    if taint.x87 {
        let mut image = [0; 160];
        image.copy_from_slice(state.x87());
        for (i, byte) in image[32..].iter_mut().enumerate() {
            // Significands; exponents as they are, so that nothing is out of range.
            if i % 16 < 7 {
                *byte = random.next() as u8;
            }
        }
        other.set_x87(&image);
    }
    layout.restrict(&mut other);
    other
}

fn differences(a: &State, b: &State, taint: &Taint) -> Vec<String> {
    let mut found = Vec::new();
    for i in (0..16).filter(|i| taint.general >> i & 1 == 0) {
        if a.general()[i] != b.general()[i] {
            found.push(format!("register {i}: {:x}, {:x}", a.general()[i], b.general()[i]));
        }
    }
    if (a.rflags() ^ b.rflags()) & !u64::from(taint.flags) != 0 {
        found.push(format!("flags {:x}, {:x}", a.rflags(), b.rflags()));
    }
    for i in 0..32 {
        for (half, words) in [(0, 0..2), (1, 2..8)] {
            if taint.vectors[half] >> i & 1 == 0 && a.vectors()[i][words.clone()] != b.vectors()[i][words] {
                found.push(format!("vector {i}, half {half}"));
            }
        }
    }
    for i in (0..8).filter(|i| taint.masks >> i & 1 == 0) {
        if a.masks()[i] != b.masks()[i] {
            found.push(format!("mask {i}"));
        }
    }
    // Where its last instruction was does not matter.
    if !taint.x87 && (a.x87()[..5] != b.x87()[..5] || a.x87()[32..] != b.x87()[32..]) {
        found.push("x87".into());
    }
    if !taint.mxcsr && a.mxcsr() != b.mxcsr() {
        found.push("mxcsr".into());
    }
    found
}

#[test]
fn what_is_not_marked_does_not_depend_on_what_is() {
    let mut memory = MEMORY.lock().unwrap();
    let (Some(layout), Ok(memory)) = (Layout::find(), memory.as_mut()) else {
        return skip("no XSAVE, or no memory at fixed addresses");
    };
    let engine = Engine::reserve().unwrap();
    ENGINE.store(engine, Relaxed);
    install();
    // SAFETY: ours alone.
    let engine = unsafe { &mut *engine };
    let mut forms = Forms::new(6);
    for (path, step) in forms::libraries(false) {
        let _ = forms.add(&path, step);
    }
    let (mut factory, mut random) = (InstructionInfoFactory::new(), Random(7));
    let one = Limits {
        max_instructions: 1,
        ..Limits::default()
    };
    let mut at = 0;
    let (mut compared, mut ended, mut wrong) = (0, 0, Vec::new());
    let found: Vec<Vec<u8>> = forms.found.values().flatten().cloned().collect();
    for original in found.iter().flat_map(|code| [code; 4]) {
        let mut code = original.clone();
        at = (at + code.len() + 3) % (CODE_SIZE - 64);
        let setup = Setup::make(
            &mut code,
            CODE + at as u64,
            true,
            &layout,
            &mut factory,
            &mut random,
            memory.scratch,
        );
        memory.code[at..at + code.len()].copy_from_slice(&code);
        engine.invalidate();
        let taint = marks(&mut random);
        let other = change(&setup.state, &taint, &layout, &mut random);
        let mut stored = [[0u8; SCRATCH], [0; SCRATCH]];
        let mut run = |state: &State, bytes: &mut [u8; SCRATCH]| -> (Outcome, State, Taint) {
            *engine.state_mut() = *state;
            engine.begin();
            engine.mark(&taint);
            let outcome = engine.go_on(&one, &mut |_| ());
            // SAFETY: mapped.
            unsafe { engine.read(setup.region, bytes) };
            for (i, byte) in bytes.iter_mut().enumerate() {
                if engine.is_unknown(setup.region + i as u64, 1) {
                    *byte = 0;
                }
            }
            (outcome, *engine.state(), *engine.taint())
        };
        let first = run(&setup.state, &mut stored[0]);
        let second = run(&other, &mut stored[1]);
        let mut complaints = Vec::new();
        if first.0.end != second.0.end {
            complaints.push(format!("ended with {:?} and {:?}", first.0.end, second.0.end));
        }
        if first.0.end == End::Instructions {
            compared += 1;
            if first.0.end_pc != second.0.end_pc {
                complaints.push("went elsewhere".into());
            }
            if first.2 != second.2 {
                complaints.push("other marks".into());
            }
            complaints.extend(differences(&first.1, &second.1, &first.2));
            if stored[0] != stored[1] {
                complaints.push("stored something else".into());
            }
        } else {
            ended += u32::from(first.0.end == End::Taint);
        }
        if !complaints.is_empty() {
            wrong.push(format!(
                "{:?} {code:02x?} {taint:x?}: {}",
                setup.ins.code(),
                complaints.join("; ")
            ));
        }
    }
    println!(
        "{compared} pairs compared, {ended} ended at a mark, {} wrong",
        wrong.len()
    );
    assert!(compared > 3000 && ended > 300);
    assert!(wrong.is_empty(), "{}", wrong[..wrong.len().min(40)].join("\n"));
}

/// The reason for the end of a burst of some code, its offset in the code, and the taint then. The code is in plain
/// memory and never runs natively.
fn burst(code: &[u8]) -> (End, u64, Taint) {
    // An endless loop behind it.
    let code = [code, &[0xeb, 0xfe], &[0; 16]].concat();
    let stack = [0u64; 64];
    let engine = Engine::reserve().unwrap();
    let mut state = State::new();
    state.set_pc(code.as_ptr() as u64);
    state.general_mut()[4] = stack[32..].as_ptr() as u64;
    // SAFETY: ours alone.
    let result = unsafe {
        let outcome = (*engine).run(&state, &Limits::default(), &mut |_| ());
        let end = outcome.end_pc - code.as_ptr() as u64;
        (outcome.end, end, *(*engine).taint())
    };
    // SAFETY: it ran its last.
    unsafe { Engine::release(engine) };
    result
}

const RDTSC: [u8; 2] = [0x0f, 0x31];

#[test]
fn a_burst_goes_on_until_something_marked_decides() {
    let after = |code: &[u8]| {
        let (end, at, taint) = burst(&[&RDTSC, code].concat());
        (end, at - 2, taint)
    };
    // Nothing: the loop behind it spins.
    let (end, _, taint) = after(&[]);
    assert_eq!((end, taint.general), (End::Spin, 0b101));
    // test eax, eax; je
    let (end, at, taint) = after(&[0x85, 0xc0, 0x74, 0x00]);
    assert_eq!((end, at, taint.general, taint.flags), (End::Taint, 2, 0b101, 0x8d5));
    // mov rcx, [rax]
    assert_eq!(after(&[0x48, 0x8b, 0x08]).0, End::Taint);
    // xor edx, edx; mov ecx, 3; div eax
    assert_eq!(after(&[0x31, 0xd2, 0xb9, 3, 0, 0, 0, 0xf7, 0xf0]).0, End::Taint);
    // mov [rsp], eax; xor eax, eax; xor edx, edx: it goes on, with four bytes of memory marked.
    let kept = [0x89, 0x04, 0x24, 0x31, 0xc0, 0x31, 0xd2];
    let (end, _, taint) = after(&kept);
    assert_eq!((end, taint.general, taint.flags), (End::Spin, 0, 0));
    assert_ne!(taint, Taint::NONE);
    // cmp byte [rsp + 3], 0; je — and the same one byte behind it
    let (end, at, _) = after(&[&kept[..], &[0x80, 0x7c, 0x24, 3, 0, 0x74, 0]].concat());
    assert_eq!((end, at), (End::Taint, 12));
    let (end, _, _) = after(&[&kept[..], &[0x80, 0x7c, 0x24, 4, 0, 0x74, 0]].concat());
    assert_eq!(end, End::Spin);
    // mov dword [rsp], 1: nothing is marked any more
    let (end, _, taint) = after(&[&kept[..], &[0xc7, 0x04, 0x24, 1, 0, 0, 0]].concat());
    assert_eq!((end, taint), (End::Spin, Taint::NONE));
    // push rax; ret
    let (end, at, _) = after(&[0x50, 0xc3]);
    assert_eq!((end, at), (End::Taint, 1));
    // movd xmm1, eax; paddd xmm2, xmm1; pxor xmm1, xmm1; movd ecx, xmm1; test ecx, ecx; je; movd ecx, xmm2; test ecx,
    // ecx; je
    let vectors = [
        0x66, 0x0f, 0x6e, 0xc8, 0x66, 0x0f, 0xfe, 0xd1, 0x66, 0x0f, 0xef, 0xc9, 0x66, 0x0f, 0x7e, 0xc9, 0x85, 0xc9,
        0x74, 0x00, 0x66, 0x0f, 0x7e, 0xd1, 0x85, 0xc9, 0x74, 0x00,
    ];
    let (end, at, taint) = after(&vectors);
    assert_eq!((end, at, taint.vectors[0]), (End::Taint, 26, 0b100));
}

#[test]
fn random_numbers_and_processors_are_marked() {
    // rdrand ecx; jae
    let (end, at, taint) = burst(&[0x0f, 0xc7, 0xf1, 0x73, 0x00]);
    assert_eq!((end, at, taint.general, taint.flags), (End::Taint, 3, 0b10, 1));
    // cpuid; rdtscp; rdpid rsi
    let (end, _, taint) = burst(&[0x0f, 0xa2, 0x0f, 0x01, 0xf9, 0xf3, 0x0f, 0xc7, 0xfe]);
    assert_eq!((end, taint.general), (End::Spin, 0b100_1111));
}
