//! Sets of vectors as perf could have recorded them, and a look into files.

#![allow(dead_code, reason = "each test binary uses a part")]

use pleach_collector::vector::{
    Branch, BranchFacts, BuildId, Burst, CodeAddress, EndReason, Engine, EventId, HardwareSample, Module, ModuleId,
    ModuleMapping, Prediction, Process, VectorSet,
};
use proptest::prelude::*;
use std::path::PathBuf;

pub const MODULES: u32 = 3;
pub const PROCESSES: u32 = 2;
pub const LENGTH: u64 = 0x1000;
pub const FILE_OFFSET: u64 = 0x400;

pub fn modules() -> Vec<Module> {
    let module = |number: u32| Module {
        path: PathBuf::from(format!("/nowhere/module {number}")),
        build_id: (number > 0).then(|| BuildId(vec![number as u8; if number == 1 { 20 } else { 8 }])),
        mappings: (0..PROCESSES)
            .map(|process| {
                let start = 0x40_0000 + u64::from(number * PROCESSES + process) * LENGTH;
                ModuleMapping {
                    process,
                    start,
                    end: start + LENGTH,
                    file_offset: FILE_OFFSET,
                }
            })
            .collect(),
    };
    (0..MODULES).map(module).collect()
}

pub fn process(number: u32) -> Process {
    Process {
        pid: 100 + number,
        parent: None,
        command: format!("program{number}"),
        program_cpu_seconds: 0.0,
        own_cpu_seconds: 0.0,
        lost: 0,
        declined: 0,
        undisturbed: false,
    }
}

pub fn address() -> impl Strategy<Value = CodeAddress> {
    let in_module = (0..MODULES, 0..LENGTH).prop_map(|(module, offset)| CodeAddress {
        module: ModuleId(module),
        offset: FILE_OFFSET + offset,
    });
    let in_kernel = (0xffff_ffff_8000_0000u64..=u64::MAX).prop_map(|offset| CodeAddress {
        module: ModuleId::EXTERNAL,
        offset,
    });
    prop_oneof![9 => in_module, 1 => in_kernel]
}

/// A set as perf could have recorded it, with no branch twice in a burst.
pub fn set() -> impl Strategy<Value = VectorSet> {
    let fact = (0u8..3, any::<u16>()).prop_map(|(prediction, cycles)| BranchFacts {
        prediction: Prediction::from_u8(prediction).unwrap(),
        cycles,
    });
    let branch = ((address(), address()).prop_map(|(from, to)| Branch { from, to }), fact);
    let head = (0..PROCESSES, any::<u32>(), 1..1u64 << 60, 0u32..2, address());
    let burst = (head, prop::collection::vec(branch, 1..40)).prop_map(|(head, mut branches)| {
        branches.dedup_by_key(|(branch, _)| *branch);
        Burst {
            process: head.0,
            thread: head.1,
            time_ns: head.2,
            engine: Engine::Perf,
            start: None,
            branches: branches.iter().map(|(branch, _)| *branch).collect(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count: 1,
            proved: true,
            values: Vec::new(),
            system_call: None,
            hardware: Some(Box::new(HardwareSample {
                event: EventId(head.3),
                ip: head.4,
                facts: branches.iter().map(|(_, fact)| *fact).collect(),
            })),
            timing: None,
        }
    });
    prop::collection::vec(burst, 1..20).prop_map(|bursts| VectorSet {
        modules: modules(),
        processes: (0..PROCESSES).map(process).collect(),
        events: vec!["cycles:u".to_owned(), "my event".to_owned()],
        bursts,
        compressed: None,
        coverage: Vec::new(),
        samples: Vec::new(),
    })
}

pub fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

pub fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let head = u64::from(kind) | ((body.len() + 8) as u64) << 48;
    [&head.to_le_bytes(), body].concat()
}
