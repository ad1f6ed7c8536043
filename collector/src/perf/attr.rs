//! Decodes `perf_event_attr`, which determines the layout of an event's samples.

use super::cursor::{Cursor, u64_at};

/// Bits of `sample_type`.
pub(crate) mod sample_type {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `branch_sample_type`.
pub(crate) mod branch_type {
    pub(crate) const USER: u64 = 1;
    pub(crate) const ANY: u64 = 1 << 3;
    pub(crate) const NO_FLAGS: u64 = 1 << 14;
    pub(crate) const NO_CYCLES: u64 = 1 << 15;
    pub(crate) const HW_INDEX: u64 = 1 << 17;
    /// Filters other than `ANY`, with their names in `perf record -j`.
    pub(crate) const FILTERS: [(u64, &str); 9] = [
        (1 << 4, "any_call"),
        (1 << 5, "any_ret"),
        (1 << 6, "ind_call"),
        (1 << 7, "abort_tx"),
        (1 << 8, "in_tx"),
        (1 << 10, "cond"),
        (1 << 11, "call_stack"),
        (1 << 12, "ind_jmp"),
        (1 << 13, "call"),
    ];
}

/// `sample_id_all` among the attribute's flags.
pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// Size of the first published version. Fields that later versions added read as 0 if they are missing.
pub(super) const MIN_SIZE: usize = 64;

/// One event of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Event {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) sample_id_all: bool,
    pub(super) branch_type: u64,
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
}

impl Event {
    /// Reads an attribute, which may have any size from [`MIN_SIZE`] on.
    pub(super) fn read(attr: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(attr);
        let (kind, size, config) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        let (_period, sample_type, read_format, flags) = (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
        // The first version did not store its size.
        let size = if size == 0 { MIN_SIZE } else { size as usize };
        let attr = attr.get(..size.min(attr.len())).filter(|attr| attr.len() >= MIN_SIZE)?;
        Some(Self {
            sample_type,
            read_format,
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            branch_type: u64_at(attr, 72).unwrap_or(0),
            name: default_name(kind, config, flags),
            ids: Vec::new(),
        })
    }

    /// The filter that left branches out, if any. The code between two branches is then unknown.
    pub(super) fn filter(&self) -> Option<&'static str> {
        if self.sample_type & sample_type::BRANCH_STACK == 0 || self.branch_type & branch_type::ANY != 0 {
            return None;
        }
        let filters = branch_type::FILTERS.iter();
        filters
            .filter(|(bit, _)| self.branch_type & bit != 0)
            .map(|(_, name)| *name)
            .next()
    }
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const RAW: u32 = 4;
const NAMES: [(u32, u64, &str); 12] = [
    (HARDWARE, 0, "cycles"),
    (HARDWARE, 1, "instructions"),
    (HARDWARE, 2, "cache-references"),
    (HARDWARE, 3, "cache-misses"),
    (HARDWARE, 4, "branches"),
    (HARDWARE, 5, "branch-misses"),
    (HARDWARE, 6, "bus-cycles"),
    (HARDWARE, 9, "ref-cycles"),
    (SOFTWARE, 0, "cpu-clock"),
    (SOFTWARE, 1, "task-clock"),
    (SOFTWARE, 2, "page-faults"),
    (RAW, 0x20c4, "near_taken"),
];

fn default_name(kind: u32, config: u64, flags: u64) -> String {
    let known = NAMES.iter().find(|(k, c, _)| (*k, *c) == (kind, config));
    let name = known.map_or_else(|| format!("type{kind}/{config:#x}/"), |(_, _, name)| (*name).to_owned());
    if flags & EXCLUDE_KERNEL != 0 { name + ":u" } else { name }
}

/// Type and configuration of the event with a name; a raw event if the name is unknown.
pub(super) fn kind_of(name: &str) -> (u32, u64) {
    let base = name.split(':').next().unwrap_or_default();
    let known = NAMES.iter().find(|(_, _, known)| *known == base);
    known.map_or((RAW, 0), |(kind, config, _)| (*kind, *config))
}
