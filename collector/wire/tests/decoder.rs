//! The length decoder against iced-x86, over the code of whole libraries.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Mnemonic};
use object::{Object, ObjectSection, SectionKind};
use pleach_wire::x86::{Kind, MAX_LENGTH, decode};
use proptest::prelude::*;
use std::path::Path;

fn expected(instruction: &iced_x86::Instruction) -> Option<Kind> {
    if instruction.mnemonic() == Mnemonic::Syscall {
        return Some(Kind::SystemCall);
    }
    Some(match instruction.flow_control() {
        FlowControl::Next
            if instruction.is_string_instruction()
                && (instruction.has_rep_prefix() || instruction.has_repne_prefix()) =>
        {
            Kind::Repeat
        }
        FlowControl::Next => Kind::Plain,
        FlowControl::ConditionalBranch => Kind::Conditional,
        FlowControl::UnconditionalBranch => Kind::Jump,
        FlowControl::IndirectBranch => Kind::IndirectJump,
        FlowControl::Call => Kind::Call,
        FlowControl::IndirectCall => Kind::IndirectCall,
        FlowControl::Return => Kind::Return,
        _ => return None,
    })
}

fn agrees(bytes: &[u8], ip: u64) -> Result<u64, String> {
    let reference = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode();
    let Some(ours) = decode(bytes, ip) else {
        return Err(format!("too short: {bytes:02x?}"));
    };
    if ours.kind == Kind::Stop {
        return Ok(0);
    }
    let complaint = || {
        format!(
            "{bytes:02x?}: {ours:?} instead of {:?} ({} bytes)",
            reference.code(),
            reference.len()
        )
    };
    // What no processor decodes does not matter: it faults.
    if reference.code() != Code::INVALID {
        if ours.length as usize != reference.len() || expected(&reference) != Some(ours.kind) {
            return Err(complaint());
        }
        if matches!(ours.kind, Kind::Conditional | Kind::Jump | Kind::Call)
            && ours.target != reference.near_branch_target()
        {
            return Err(complaint());
        }
    }
    Ok(1)
}

#[test]
fn agrees_with_iced_over_libraries() {
    let (mut seen, mut refused) = (0, 0);
    let candidates = [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/bin/bash",
    ];
    for path in candidates.map(Path::new).into_iter().filter(|path| path.exists()) {
        let data = std::fs::read(path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let (bytes, base) = (section.data().unwrap(), section.address());
            let mut at = 0;
            while at + MAX_LENGTH <= bytes.len() {
                let window = &bytes[at..at + MAX_LENGTH];
                let reference = Decoder::with_ip(64, window, base + at as u64, DecoderOptions::NONE).decode();
                agrees(window, base + at as u64).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                // Ordinary code must not be refused.
                let ours = decode(window, 0).unwrap();
                let plain = matches!(
                    reference.flow_control(),
                    FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::Return
                );
                if ours.kind == Kind::Stop && plain && reference.code() != Code::INVALID && !reference.is_privileged() {
                    refused += 1;
                }
                at += reference.len().max(1);
                seen += 1;
            }
        }
    }
    assert!(seen > 100_000, "only {seen} instructions seen");
    // Some are data between functions.
    assert!(refused < seen / 500, "{refused} of {seen} refused");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200_000))]

    #[test]
    fn agrees_with_iced_on_noise(bytes in prop::array::uniform15(any::<u8>())) {
        prop_assert!(agrees(&bytes, 0x1000).is_ok(), "{:?}", agrees(&bytes, 0x1000));
    }

    #[test]
    fn short_input_is_asked_for_more(bytes in prop::array::uniform15(any::<u8>()), cut in 0usize..15) {
        let whole = decode(&bytes, 0).unwrap();
        match decode(&bytes[..cut], 0) {
            None => prop_assert!(whole.length == 0 || whole.length as usize > cut || whole.kind == Kind::Stop),
            Some(short) => prop_assert_eq!(short.kind, whole.kind),
        }
    }
}
