//! perf.data in file mode: header, ids, attributes, data, features.

use super::plan::{Sink, Stack};
use crate::perf::attr::{SAMPLE_ID_ALL, branch_type, kind_of, sample_type};
use crate::perf::container::{FEATURE_BUILD_ID, FEATURE_EVENT_DESC, FILE_HEADER, MAGIC, MISC_BUILD_ID_SIZE};
use crate::perf::records::{HEAD, kind};
use crate::vector::{BuildId, Module, ModuleMapping, Prediction, Process, VectorSet};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

/// Size of an attribute that all versions of perf with branch stacks since 2012 read, including `use_clockid`.
const ATTR: usize = 112;
/// Flag for a file whose samples have branches.
const FEATURE_BRANCH_STACK: u32 = 15;
const SAMPLE_TYPE: u64 = sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::PERIOD
    | sample_type::BRANCH_STACK
    | sample_type::IDENTIFIER;
/// `disabled`, `inherit`, `exclude_kernel`, `exclude_hv`, `mmap`, `comm`, `task`, `sample_id_all`, `mmap2`,
/// `comm_exec`.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 13 | SAMPLE_ID_ALL | 1 << 23 | 1 << 24;
/// perf interprets branch events with a period of 1 as another kind of trace.
const PERIOD: u64 = 1000;
const MISC_USER: u16 = 2;
const MISC_COMM_EXEC: u16 = 1 << 13;
/// All mappings follow one by one.
const MISC_FORK_WITHOUT_MAPPINGS: u16 = 1 << 13;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const BUILD_ID_CAPACITY: usize = 20;
/// Name of the event for engines without events.
const NO_EVENT: &str = "branches:u";
/// The longest path that fits beside the other fields.
const LONGEST_PATH: usize = 4095;

/// A file while it is written.
pub(super) struct File {
    events: Vec<String>,
    data: Vec<u8>,
    /// Build-ids by path.
    builds: BTreeMap<Vec<u8>, BuildId>,
}

impl File {
    pub(super) fn new(set: &VectorSet) -> Self {
        let mut events = set.events.clone();
        // The event for samples without an event comes last.
        if events.is_empty() || set.compressed.is_some() || set.bursts.iter().any(|burst| burst.hardware.is_none()) {
            events.push(NO_EVENT.to_owned());
        }
        Self {
            events,
            data: Vec::new(),
            builds: BTreeMap::new(),
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let ids_at = FILE_HEADER;
        let attrs_at = ids_at + self.events.len() * 8;
        let attrs_size = self.events.len() * (ATTR + 16);
        let data_at = attrs_at + attrs_size;
        let mut out = MAGIC.to_vec();
        let sizes = [
            FILE_HEADER,
            ATTR + 16,
            attrs_at,
            attrs_size,
            data_at,
            self.data.len(),
            0,
            0,
        ];
        sizes.iter().for_each(|size| put(&mut out, *size as u64));
        let features: u64 = 1 << FEATURE_BUILD_ID | 1 << FEATURE_EVENT_DESC | 1 << FEATURE_BRANCH_STACK;
        [features, 0, 0, 0].iter().for_each(|word| put(&mut out, *word));
        (0..self.events.len()).for_each(|event| put(&mut out, id(event)));
        for (position, name) in self.events.iter().enumerate() {
            out.extend(attr(name));
            put(&mut out, (ids_at + position * 8) as u64);
            put(&mut out, 8);
        }
        out.extend(&self.data);
        let sections = [self.build_ids(), self.event_names(), Vec::new()];
        let mut at = out.len() + sections.len() * 16;
        for section in &sections {
            put(&mut out, at as u64);
            put(&mut out, section.len() as u64);
            at += section.len();
        }
        sections.iter().for_each(|section| out.extend(section));
        out
    }

    fn build_ids(&self) -> Vec<u8> {
        let mut section = Vec::new();
        for (path, id) in &self.builds {
            let mut body = u32::MAX.to_le_bytes().to_vec();
            body.extend(padded_id(id));
            body.extend([id.0.len() as u8, 0, 0, 0]);
            body.extend(path);
            body.push(0);
            record(&mut section, 0, MISC_USER | MISC_BUILD_ID_SIZE, &body);
        }
        section
    }

    fn event_names(&self) -> Vec<u8> {
        let mut section = (self.events.len() as u32).to_le_bytes().to_vec();
        section.extend((ATTR as u32).to_le_bytes());
        for (position, name) in self.events.iter().enumerate() {
            section.extend(attr(name));
            section.extend(1u32.to_le_bytes());
            let length = (name.len() + 1).next_multiple_of(64);
            section.extend((length as u32).to_le_bytes());
            section.extend(name.as_bytes());
            section.resize(section.len() + length - name.len(), 0);
            put(&mut section, id(position));
        }
        section
    }

    /// A record that is not a sample, followed by its thread and time.
    fn event(&mut self, kind: u32, misc: u16, mut body: Vec<u8>, pid: u32, time_ns: u64) {
        body.resize(body.len().next_multiple_of(8), 0);
        put_pair(&mut body, pid, pid);
        put(&mut body, time_ns);
        put(&mut body, id(0));
        record(&mut self.data, kind, misc, &body);
    }
}

impl Sink for File {
    fn process(&mut self, pid: u32, parent: Option<u32>, process: &Process, time_ns: u64) {
        if let Some(parent) = parent {
            let mut body = Vec::new();
            put_pair(&mut body, pid, parent);
            put_pair(&mut body, pid, parent);
            put(&mut body, time_ns);
            self.event(kind::FORK, MISC_FORK_WITHOUT_MAPPINGS, body, pid, time_ns);
        }
        let mut body = Vec::new();
        put_pair(&mut body, pid, pid);
        // The kernel's names have 15 bytes at most.
        let name = process.command.split(' ').next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        body.extend(name.bytes().filter(|byte| *byte != 0).take(15));
        body.push(0);
        let misc = if parent.is_none() { MISC_COMM_EXEC } else { 0 };
        self.event(kind::COMM, misc, body, pid, time_ns);
    }

    fn mapping(&mut self, pid: u32, module: &Module, mapping: &ModuleMapping, time_ns: u64) {
        let mut body = Vec::new();
        put_pair(&mut body, pid, pid);
        for number in [mapping.start, mapping.end - mapping.start, mapping.file_offset] {
            put(&mut body, number);
        }
        let path = module.path.as_os_str().as_bytes();
        let build_id = module.build_id.as_ref();
        // The older kind of record contains neither build-id nor inode.
        let (mut kind, mut misc) = (kind::MMAP, MISC_USER);
        if let Some(id) = build_id.filter(|id| (1..=BUILD_ID_CAPACITY).contains(&id.0.len())) {
            (kind, misc) = (kind::MMAP2, MISC_USER | MISC_MMAP_BUILD_ID);
            body.extend([id.0.len() as u8, 0, 0, 0]);
            body.extend(padded_id(id));
            // PROT_READ | PROT_EXEC, MAP_PRIVATE.
            put_pair(&mut body, 5, 2);
            self.builds.insert(path.to_vec(), id.clone());
        }
        body.extend(&path[..path.len().min(LONGEST_PATH)]);
        body.push(0);
        self.event(kind, misc, body, pid, time_ns);
    }

    fn stack(&mut self, stack: &Stack) {
        let event = stack.event.map_or(self.events.len() - 1, |event| event.0 as usize);
        let mut body = Vec::with_capacity(48 + stack.branches.len() * 24);
        put(&mut body, id(event));
        put(&mut body, stack.ip);
        put_pair(&mut body, stack.pid, stack.thread);
        put(&mut body, stack.time_ns);
        put(&mut body, stack.period);
        put(&mut body, stack.branches.len() as u64);
        for (from, to, facts) in stack.branches {
            put(&mut body, *from);
            put(&mut body, *to);
            let prediction = match facts.prediction {
                Prediction::Unknown => 0,
                Prediction::Mispredicted => 1,
                Prediction::Predicted => 2,
            };
            put(&mut body, prediction | u64::from(facts.cycles) << 4);
        }
        record(&mut self.data, kind::SAMPLE, MISC_USER, &body);
    }
}

fn id(event: usize) -> u64 {
    event as u64 + 1
}

fn attr(name: &str) -> Vec<u8> {
    let (kind, config) = kind_of(name);
    let mut attr = Vec::with_capacity(ATTR);
    put_pair(&mut attr, kind, ATTR as u32);
    for word in [
        config,
        PERIOD,
        SAMPLE_TYPE,
        0,
        FLAGS,
        0,
        0,
        0,
        branch_type::ANY | branch_type::USER,
    ] {
        put(&mut attr, word);
    }
    attr.resize(ATTR, 0);
    attr
}

fn padded_id(id: &BuildId) -> [u8; BUILD_ID_CAPACITY] {
    let mut padded = [0; BUILD_ID_CAPACITY];
    padded.iter_mut().zip(&id.0).for_each(|(to, from)| *to = *from);
    padded
}

fn record(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[u8]) {
    let size = (HEAD + body.len()).next_multiple_of(8);
    out.extend(kind.to_le_bytes());
    out.extend(misc.to_le_bytes());
    out.extend((size as u16).to_le_bytes());
    out.extend(body);
    out.resize(out.len() + size - HEAD - body.len(), 0);
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn put_pair(out: &mut Vec<u8>, first: u32, second: u32) {
    out.extend(first.to_le_bytes());
    out.extend(second.to_le_bytes());
}
