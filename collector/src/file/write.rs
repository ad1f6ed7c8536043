//! Writes the payload.

use super::{HAS_HARDWARE, HAS_SYSTEM_CALL, HAS_TIMING, PROVED};
use crate::vector::{CodeAddress, HardwareSample, VectorSet};
use std::os::unix::ffi::OsStrExt;

/// The uncompressed payload.
pub(super) fn payload(set: &VectorSet) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.set(set);
    writer.out
}

#[derive(Default)]
pub(super) struct Writer {
    out: Vec<u8>,
    /// Last offset seen in each module; the first place is that of `ModuleId::EXTERNAL`.
    last: Vec<u64>,
    module: usize,
}

impl Writer {
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    pub(super) fn difference(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number(((difference << 1) ^ (difference >> 63)) as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend(bytes);
    }

    pub(super) fn address(&mut self, address: CodeAddress) {
        let place = address.module.0.wrapping_add(1) as usize;
        // 0: the module of the address before.
        self.number(if place == self.module { 0 } else { place as u64 + 1 });
        self.module = place;
        if self.last.len() <= place {
            self.last.resize(place + 1, 0);
        }
        self.difference(self.last[place], address.offset);
        self.last[place] = address.offset;
    }

    fn optional(&mut self, address: Option<CodeAddress>) {
        self.number(address.is_some().into());
        if let Some(address) = address {
            self.address(address);
        }
    }

    fn set(&mut self, set: &VectorSet) {
        self.number(set.modules.len() as u64);
        for module in &set.modules {
            self.bytes(module.path.as_os_str().as_bytes());
            self.number(module.build_id.is_some().into());
            if let Some(id) = &module.build_id {
                self.bytes(&id.0);
            }
            self.number(module.mappings.len() as u64);
            for mapping in &module.mappings {
                self.number(mapping.process.into());
                self.number(mapping.start);
                self.difference(mapping.start, mapping.end);
                self.number(mapping.file_offset);
            }
        }
        self.number(set.processes.len() as u64);
        for process in &set.processes {
            self.number(process.pid.into());
            self.number(process.parent.map_or(0, |parent| u64::from(parent) + 1));
            self.bytes(process.command.as_bytes());
            self.out.extend(process.program_cpu_seconds.to_le_bytes());
            self.out.extend(process.own_cpu_seconds.to_le_bytes());
            self.number(process.lost);
            self.number(process.declined);
            self.number(process.undisturbed.into());
        }
        self.number(set.events.len() as u64);
        for event in &set.events {
            self.bytes(event.as_bytes());
        }
        self.number(set.bursts.len() as u64);
        let mut time = 0;
        for burst in &set.bursts {
            self.number(burst.process.into());
            self.number(burst.thread.into());
            self.difference(time, burst.time_ns);
            time = burst.time_ns;
            let hardware = if burst.hardware.is_some() { HAS_HARDWARE } else { 0 };
            let timing = if burst.timing.is_some() { HAS_TIMING } else { 0 };
            let proved = if burst.proved { PROVED } else { 0 };
            let system_call = if burst.system_call.is_some() {
                HAS_SYSTEM_CALL
            } else {
                0
            };
            let flags = hardware | timing | proved | system_call;
            self.out.extend([burst.engine as u8 | flags, burst.end_reason as u8]);
            self.number(burst.instructions.into());
            self.number(burst.count);
            self.optional(burst.start);
            self.number(burst.branches.len() as u64);
            for branch in &burst.branches {
                self.address(branch.from);
                self.address(branch.to);
            }
            self.optional(burst.end);
            if let Some(hardware) = &burst.hardware {
                self.hardware(hardware);
            }
            if let Some(timing) = burst.timing {
                self.out.extend(timing.branches.to_le_bytes());
                self.out.extend(timing.nanoseconds.to_le_bytes());
            }
            self.number(burst.values.len() as u64);
            for observed in &burst.values {
                self.number(observed.branch.into());
                self.optional(observed.division);
                self.number(observed.value);
            }
            if let Some(number) = burst.system_call {
                self.number(number.into());
            }
        }
        self.number(set.compressed.is_some().into());
        if let Some(compressed) = &set.compressed {
            self.compressed(compressed);
        }
        self.coverage(&set.coverage);
        self.number(set.samples.len() as u64);
        let mut time = 0;
        for sample in &set.samples {
            self.number(sample.event.0.into());
            self.number(sample.thread.into());
            self.difference(time, sample.time_ns);
            time = sample.time_ns;
            self.address(sample.at);
            self.number(sample.period);
        }
    }

    fn hardware(&mut self, sample: &HardwareSample) {
        self.number(sample.event.0.into());
        self.address(sample.ip);
        self.number(sample.facts.len() as u64);
        for fact in &sample.facts {
            self.number(u64::from(fact.cycles) << 2 | u64::from(fact.prediction as u8));
        }
    }
}
