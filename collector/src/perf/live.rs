//! Records of a running kernel, through the same reader and session as those of a file.

use super::attr::Event;
use super::container::Container;
use super::mapping::RawMapping;
use super::reader::Reader;
use super::records::{self, Record};
use super::report::{Format, Report};
use super::session::Session;
use crate::convert::modules::FileIdentity;
use crate::vector::{Burst, Engine, VectorSet};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// An event of the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveEvent {
    /// Its `perf_event_attr`.
    pub attr: Vec<u8>,
    /// Its name.
    pub name: String,
    /// The kernel's ids for it, one for each processor.
    pub ids: Vec<u64>,
}

/// A process that ran before the recording began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningProcess {
    /// Its id.
    pub process: u32,
    /// Its name.
    pub command: String,
    /// What it could execute when it was found.
    pub mappings: Vec<RunningMapping>,
}

/// An executable mapping of a process that ran before the recording began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningMapping {
    /// The mapped file.
    pub path: Vec<u8>,
    /// Its addresses in memory.
    pub addresses: Range<u64>,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// The file's inode.
    pub inode: u64,
}

/// A recording in progress.
pub struct Live<'a> {
    reader: Reader<'static>,
    session: Session<'a>,
}

impl<'a> Live<'a> {
    /// Adds to a set, as samples of kernel events.
    pub fn of_kernel_events(set: &'a mut VectorSet, events: &[LiveEvent]) -> Self {
        let live = Self::new(set, Engine::Perf, events);
        Self {
            session: live.session.keeping_events(),
            ..live
        }
    }

    /// Adds to a set, as vectors of an engine.
    pub fn new(set: &'a mut VectorSet, engine: Engine, events: &[LiveEvent]) -> Self {
        let events = events.iter().filter_map(|event| {
            Some(Event {
                name: event.name.clone(),
                ids: event.ids.clone(),
                ..Event::read(&event.attr)?
            })
        });
        let container = Container {
            events: events.collect(),
            build_ids: HashMap::new(),
            data: &[],
            data_offset: 0,
        };
        Self {
            reader: Reader::new(container),
            session: Session::new(set, engine, None),
        }
    }

    /// Adds a process that ran before the recording began.
    pub fn add_running(&mut self, running: RunningProcess) {
        let RunningProcess {
            process,
            command,
            mappings,
        } = running;
        self.session.name(process, command, false);
        for mapping in mappings {
            let mapping = RawMapping {
                path: mapping.path,
                addresses: mapping.addresses,
                offset: mapping.offset,
                identity: FileIdentity::Inode(mapping.inode),
            };
            self.session.map(process, mapping);
        }
    }

    /// Reads the next record of a buffer; `at` is its position, for errors.
    ///
    /// Impossible records are counted as malformed.
    pub fn record(&mut self, kind: u32, misc: u16, body: Vec<u8>, at: u64) {
        if kind >= records::kind::FIRST_OF_TOOL {
            let what = "a record of a kind that kernels do not make";
            return self.session.report.malformed(at, Format::PerfData, what);
        }
        let body = Cow::Owned(body);
        let record = Record { kind, misc, body, at };
        self.reader.record(record, &mut self.session);
    }

    /// The bursts so far.
    pub fn bursts(&self) -> &[Burst] {
        self.session.bursts()
    }

    /// Number of events that a sample represents, if the sample says so.
    pub fn period(&self, sample: &[u8]) -> Option<u64> {
        self.reader.period(sample)
    }

    /// Records were lost because a buffer could not be read in time, or was damaged.
    pub fn damaged(&mut self, at: u64, what: impl Into<String>) {
        self.session.report.damaged(at, what);
    }

    /// Ends a round: each buffer was read at least up to its end at the start of the round.
    pub fn round(&mut self) {
        self.reader.round(&mut self.session);
    }

    /// Ends the recording. CPU seconds of all processes, and of sampling them, are added to the process `root`.
    pub fn finish(mut self, root: u32, program_cpu_seconds: f64, own_cpu_seconds: f64) -> Report {
        self.reader.finish(&mut self.session);
        self.session.account(root, program_cpu_seconds, own_cpu_seconds);
        self.session.finish()
    }
}
