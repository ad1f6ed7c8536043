//! The container: header, attributes, data, and the feature sections behind the data.
//!
//! Crates that read perf.data stop at the first unexpected field. This reader continues, and uses every part that is
//! intact.

use super::attr::Event;
use super::cursor::{Cursor, u64_at};
use super::report::Report;
use crate::vector::BuildId;
use std::collections::HashMap;

/// First bytes of a file by a little-endian machine.
pub(super) const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same by a big-endian one.
pub(super) const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
/// Size of the header of a file, and of that of a pipe.
pub(super) const FILE_HEADER: usize = 104;
const PIPE_HEADER: usize = 16;
/// Numbers of feature sections.
pub(super) const FEATURE_BUILD_ID: u32 = 2;
pub(super) const FEATURE_EVENT_DESC: u32 = 12;
const FEATURES: u32 = 256;
/// In a build-id record: its size is stored.
pub(super) const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// The parts of a file. In pipe mode, events and features are among the records.
#[derive(Clone, Debug)]
pub(super) struct Container<'a> {
    pub(super) events: Vec<Event>,
    pub(super) build_ids: HashMap<Vec<u8>, BuildId>,
    pub(super) data: &'a [u8],
    /// Offset of `data` in the file.
    pub(super) data_offset: u64,
}

impl<'a> Container<'a> {
    /// Splits a file that begins with [`MAGIC`].
    pub(super) fn open(bytes: &'a [u8], report: &mut Report) -> Result<Self, (u64, &'static str)> {
        let header = u64_at(bytes, 8).ok_or((8, "it ends in its header"))?;
        let mut container = Self {
            events: Vec::new(),
            build_ids: HashMap::new(),
            data: &[],
            data_offset: PIPE_HEADER as u64,
        };
        if header == PIPE_HEADER as u64 {
            container.data = &bytes[PIPE_HEADER..];
            return Ok(container);
        }
        if header < FILE_HEADER as u64 {
            return Err((8, "the size of the header is impossible"));
        }
        let field = |offset| u64_at(bytes, offset).ok_or((bytes.len() as u64, "it ends in its header"));
        let attr_size = field(16)?;
        let (attrs, attrs_size, data, data_size) = (field(24)?, field(32)?, field(40)?, field(48)?);
        field(FILE_HEADER - 8)?;
        container.read_attrs(bytes, attrs, attrs_size, attr_size)?;
        container.data_offset = data;
        let rest = usize::try_from(data).ok().and_then(|data| bytes.get(data..));
        let rest = rest.ok_or((40, "the data lie behind the end of the file"))?;
        if data_size == 0 {
            report.damaged(
                48,
                "`perf record` did not finish the file, so that its size of data is 0",
            );
            container.data = rest;
        } else if (rest.len() as u64) < data_size {
            report.damaged(
                bytes.len() as u64,
                format!("{} bytes of data are missing", data_size - rest.len() as u64),
            );
            container.data = rest;
        } else {
            container.data = &rest[..data_size as usize];
            container.read_features(bytes, data as usize + data_size as usize, report);
        }
        Ok(container)
    }

    fn read_attrs(&mut self, bytes: &[u8], at: u64, size: u64, each: u64) -> Result<(), (u64, &'static str)> {
        let section = section(bytes, at, size).ok_or((24, "the list of events lies outside of the file"))?;
        let each = usize::try_from(each)
            .ok()
            .filter(|each| *each >= super::attr::MIN_SIZE + 16);
        let each = each.ok_or((16, "the size of an event's description is impossible"))?;
        // Overlapping lists would let a small file cause long reading.
        let mut bytes_left = bytes.len();
        for entry in section.chunks_exact(each) {
            let (attr, ids) = entry.split_at(each - 16);
            let Some(mut event) = Event::read(attr) else { continue };
            let ids = section_at(bytes, ids).unwrap_or_default();
            bytes_left = bytes_left
                .checked_sub(ids.len())
                .ok_or((24, "the lists of the events' ids overlap"))?;
            event.ids = ids.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect();
            self.events.push(event);
        }
        if self.events.is_empty() {
            return Err((24, "it has no events"));
        }
        Ok(())
    }

    /// Reads the feature sections. Their table follows the data, in the order of their numbers.
    fn read_features(&mut self, bytes: &[u8], table: usize, report: &mut Report) {
        let present = |feature: u32| bytes[72 + feature as usize / 8] >> (feature % 8) & 1 == 1;
        for (position, feature) in (0..FEATURES).filter(|feature| present(*feature)).enumerate() {
            let entry = bytes.get(table + position * 16..).unwrap_or_default();
            match section_at(bytes, entry) {
                Some(section) => self.feature(feature, section),
                None => report.damaged(table as u64, "a section behind the data is missing"),
            }
        }
    }

    /// Reads a feature section, if the import uses it.
    pub(super) fn feature(&mut self, feature: u32, section: &[u8]) {
        match feature {
            FEATURE_BUILD_ID => {
                let mut rest = Cursor(section);
                while let Some((misc, body)) = record(&mut rest) {
                    self.build_id(misc, body);
                }
            }
            FEATURE_EVENT_DESC => {
                self.names(section);
            }
            _ => {}
        }
    }

    /// Reads a build-id record: process, 20 bytes of build-id and their number, name.
    pub(super) fn build_id(&mut self, misc: u16, body: &[u8]) {
        let mut cursor = Cursor(body);
        let (Some(_pid), Some(id)) = (cursor.u32(), cursor.take(24)) else {
            return;
        };
        let size = match misc & MISC_BUILD_ID_SIZE {
            // Older versions of perf pad shorter build-ids; lengths in use are 8, 16 and 20.
            0 => [8, 16]
                .into_iter()
                .find(|size| id[*size..20].iter().all(|byte| *byte == 0))
                .unwrap_or(20),
            _ => usize::from(id[20]).min(20),
        };
        if size > 0 {
            self.build_ids
                .insert(cursor.string().to_vec(), BuildId(id[..size].to_vec()));
        }
    }

    /// Reads the names that the user gave to events, and the events' ids.
    fn names(&mut self, section: &[u8]) -> Option<()> {
        let mut cursor = Cursor(section);
        let (count, attr_size) = (cursor.u32()?, cursor.u32()?);
        for position in 0..count as usize {
            cursor.take(attr_size as usize)?;
            let (ids, length) = (cursor.u32()?, cursor.u32()?);
            let name = Cursor(cursor.take(length as usize)?).string();
            let ids = cursor.take_items(ids.into(), 8)?;
            let first = u64_at(ids, 0);
            let by_id = self
                .events
                .iter()
                .position(|event| first.is_some_and(|id| event.ids.contains(&id)));
            if let Some(event) = self.events.get_mut(by_id.unwrap_or(position)) {
                event.name = String::from_utf8_lossy(name).into_owned();
            }
        }
        Some(())
    }
}

/// The next record of a list: its `misc` and its body.
fn record<'a>(rest: &mut Cursor<'a>) -> Option<(u16, &'a [u8])> {
    let (_kind, misc, size) = (rest.u32()?, rest.u16()?, rest.u16()?);
    Some((misc, rest.take(usize::from(size).checked_sub(8)?)?))
}

fn section(bytes: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    Cursor(bytes.get(usize::try_from(at).ok()?..)?).take_items(size, 1)
}

/// The section that an offset and a size, 8 bytes each, refer to.
fn section_at<'a>(bytes: &'a [u8], reference: &[u8]) -> Option<&'a [u8]> {
    section(bytes, u64_at(reference, 0)?, u64_at(reference, 8)?)
}
