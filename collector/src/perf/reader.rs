//! Records → order of time → session: the same for those of a file and those of a running kernel.

use super::attr::Event;
use super::container::Container;
use super::cursor::Cursor;
use super::mapping::RawMapping;
use super::order::Order;
use super::records::{Record, kind};
use super::report::Format;
use super::sample::{self, ENTRY};
use super::session::{SampleHead, Session};
use crate::convert::modules::FileIdentity;
use crate::vector::BuildId;
use std::collections::HashMap;

/// In COMM: after `execve`. In FORK: mappings follow one by one. In MMAP: the mapping is data.
const MISC_EXEC_OR_DATA: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;
const EVENT_NAME: u64 = 2;

/// Decodes records and passes them to the session in order of time.
pub(super) struct Reader<'a> {
    pub(super) container: Container<'a>,
    /// Positions of events by id.
    ids: HashMap<u64, usize>,
    order: Order<(usize, Record<'a>)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(container: Container<'a>) -> Self {
        let mut reader = Self {
            container,
            ids: HashMap::new(),
            order: Order::default(),
        };
        reader.index_ids();
        reader
    }

    fn index_ids(&mut self) {
        self.ids = (self.container.events.iter().enumerate())
            .flat_map(|(position, event)| event.ids.iter().map(move |id| (*id, position)))
            .collect();
    }

    /// The filter of an event that left branches out, if there is one.
    pub(super) fn filter(&self) -> Option<&'static str> {
        self.container.events.iter().find_map(Event::filter)
    }

    /// Reads a record. Records come in the order in which they were stored.
    pub(super) fn record(&mut self, record: Record<'a>, session: &mut Session) {
        if record.kind >= kind::FIRST_OF_TOOL {
            self.of_tool(&record, session);
            return;
        }
        let is_sample = record.kind == kind::SAMPLE;
        let Some((position, event)) = self.event_of(&record.body, is_sample) else {
            return session
                .report
                .malformed(record.at, Format::PerfData, "a record of no event");
        };
        let time = match is_sample {
            true => sample::time(event, &record.body),
            false => sample::time_of_other(event, &record.body),
        };
        match time {
            // Written by perf itself before the program began, or without a time.
            None | Some(0 | u64::MAX) => self.deliver(position, &record, session),
            Some(time) => self.order.add(time, (position, record)),
        }
    }

    /// The period of a sample, if it has one.
    pub(super) fn period(&self, body: &[u8]) -> Option<u64> {
        sample::period(self.event_of(body, true)?.1, body)
    }

    fn event_of(&self, body: &[u8], is_sample: bool) -> Option<(usize, &Event)> {
        let events = &self.container.events;
        let first = events.first()?;
        if events.len() == 1 {
            return Some((0, first));
        }
        // All events have their ids at the same place.
        let position = match sample::id(first, body, is_sample) {
            Some(id) if is_sample => *self.ids.get(&id)?,
            Some(id) => self.ids.get(&id).copied().unwrap_or(0),
            None => 0,
        };
        Some((position, &events[position]))
    }

    /// Passes all buffered records to the session.
    pub(super) fn finish(&mut self, session: &mut Session) {
        let mut order = std::mem::take(&mut self.order);
        order.finish(&mut |(position, record)| self.deliver(position, &record, session));
    }

    /// Ends a round, in which every buffer was read once: passes on records that no older record can precede.
    pub(super) fn round(&mut self, session: &mut Session) {
        let mut order = std::mem::take(&mut self.order);
        order.round(&mut |(position, record)| self.deliver(position, &record, session));
        self.order = order;
    }

    fn of_tool(&mut self, record: &Record, session: &mut Session) {
        let mut cursor = Cursor(&record.body);
        match record.kind {
            kind::FINISHED_ROUND => self.round(session),
            kind::HEADER_ATTR => {
                let size = super::cursor::u64_at(&record.body, 0).map(|word| (word >> 32) as usize);
                let Some(mut event) = Event::read(&record.body) else {
                    return;
                };
                let ids = record.body.get(size.unwrap_or(0)..).unwrap_or_default();
                event.ids = ids.chunks_exact(8).filter_map(|id| Cursor(id).u64()).collect();
                let position = self.container.events.len();
                self.ids.extend(event.ids.iter().map(|id| (*id, position)));
                self.container.events.push(event);
            }
            kind::HEADER_FEATURE => {
                if let Some(feature) = cursor.u64() {
                    self.container.feature(feature as u32, cursor.0);
                }
            }
            kind::BUILD_ID => self.container.build_id(record.misc, &record.body),
            kind::EVENT_UPDATE => {
                if let (Some(EVENT_NAME), Some(id)) = (cursor.u64(), cursor.u64())
                    && let Some(position) = self.ids.get(&id)
                {
                    self.container.events[*position].name = String::from_utf8_lossy(cursor.string()).into_owned();
                }
            }
            _ => {}
        }
    }

    /// In order of time.
    fn deliver(&self, event: usize, record: &Record, session: &mut Session) {
        let event = &self.container.events[event];
        let read = match record.kind {
            kind::SAMPLE => read_sample(event, &record.body, session),
            kind::MMAP | kind::MMAP2 => self.read_mapping(record, session),
            kind::COMM => read_name(record, session),
            kind::FORK => read_fork(record, session),
            kind::LOST => read_lost(&record.body, true, session),
            kind::LOST_SAMPLES => read_lost(&record.body, false, session),
            kind::THROTTLE => {
                session.report.throttled += 1;
                Some(())
            }
            _ => Some(()),
        };
        if read.is_none() {
            let what = "a record shorter than its fields";
            session.report.malformed(record.at, Format::PerfData, what);
        }
    }

    fn read_mapping(&self, record: &Record, session: &mut Session) -> Option<()> {
        let mut cursor = Cursor(&record.body);
        let (pid, _tid) = (cursor.u32()?, cursor.u32()?);
        let (start, length, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let mut identity = FileIdentity::Unknown;
        if record.kind == kind::MMAP2 {
            let id = cursor.take(24)?;
            identity = if record.misc & MISC_BUILD_ID != 0 {
                FileIdentity::Build(BuildId(id[4..4 + usize::from(id[0]).min(20)].to_vec()))
            } else {
                FileIdentity::Inode(super::cursor::u64_at(id, 8)?)
            };
            let (protection, _flags) = (cursor.u32()?, cursor.u32()?);
            if protection & PROT_EXEC == 0 {
                return Some(());
            }
        } else if record.misc & MISC_EXEC_OR_DATA != 0 {
            return Some(());
        }
        // The kernel's own.
        if pid == u32::MAX {
            return Some(());
        }
        let path = cursor.string().to_vec();
        if !matches!(identity, FileIdentity::Build(_))
            && let Some(id) = self.container.build_ids.get(&path)
        {
            identity = FileIdentity::Build(id.clone());
        }
        let addresses = start..start.saturating_add(length);
        session.map(
            pid,
            RawMapping {
                path,
                addresses,
                offset,
                identity,
            },
        );
        Some(())
    }
}

fn read_sample(event: &Event, body: &[u8], session: &mut Session) -> Option<()> {
    let sample = sample::read(event, body)?;
    let head = SampleHead {
        pid: sample.pid,
        thread: sample.tid,
        time_ns: sample.time.unwrap_or(0),
        ip: sample.ip,
        user_ip: sample.user_ip,
        period: sample.period.unwrap_or(1),
        event: session.event(&event.name),
    };
    let entries = sample.branches.unwrap_or_default().chunks_exact(ENTRY);
    // An entry has a fixed size, so decoding it cannot fail.
    let branches = entries.filter_map(|entry| sample::branch(entry, event.branch_type));
    session.sample(head, branches);
    Some(())
}

fn read_name(record: &Record, session: &mut Session) -> Option<()> {
    let mut cursor = Cursor(&record.body);
    let (pid, tid) = (cursor.u32()?, cursor.u32()?);
    if pid == tid {
        let name = String::from_utf8_lossy(cursor.string()).into_owned();
        session.name(pid, name, record.misc & MISC_EXEC_OR_DATA != 0);
    }
    Some(())
}

fn read_fork(record: &Record, session: &mut Session) -> Option<()> {
    let mut cursor = Cursor(&record.body);
    let (child, parent) = (cursor.u32()?, cursor.u32()?);
    session.fork(parent, child, record.misc & MISC_EXEC_OR_DATA == 0);
    Some(())
}

fn read_lost(body: &[u8], with_id: bool, session: &mut Session) -> Option<()> {
    let mut cursor = Cursor(body);
    if with_id {
        cursor.u64()?;
    }
    let lost = cursor.u64()?;
    session.lose(None, lost);
    Some(())
}
