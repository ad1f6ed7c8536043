//! Iterates over records, including those within compressed records.

use super::cursor::{Cursor, u64_at};
use super::report::Report;
use std::borrow::Cow;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Numbers of records, as in `perf_event.h` and, from 64 on, in perf's `event.h`.
pub(super) mod kind {
    pub(in super::super) const MMAP: u32 = 1;
    pub(in super::super) const LOST: u32 = 2;
    pub(in super::super) const COMM: u32 = 3;
    pub(in super::super) const THROTTLE: u32 = 5;
    pub(in super::super) const FORK: u32 = 7;
    pub(in super::super) const SAMPLE: u32 = 9;
    pub(in super::super) const MMAP2: u32 = 10;
    pub(in super::super) const LOST_SAMPLES: u32 = 13;
    /// First number of perf's own records.
    pub(in super::super) const FIRST_OF_TOOL: u32 = 64;
    pub(in super::super) const HEADER_ATTR: u32 = 64;
    pub(in super::super) const TRACING_DATA: u32 = 66;
    pub(in super::super) const BUILD_ID: u32 = 67;
    pub(in super::super) const FINISHED_ROUND: u32 = 68;
    pub(in super::super) const AUXTRACE: u32 = 71;
    pub(in super::super) const EVENT_UPDATE: u32 = 78;
    pub(in super::super) const HEADER_FEATURE: u32 = 80;
    pub(in super::super) const COMPRESSED: u32 = 81;
    pub(in super::super) const COMPRESSED2: u32 = 83;
    /// Above all known numbers: a higher number is no record.
    pub(in super::super) const NONE: u32 = 1024;
}

/// Size of a record's head: kind, misc, size.
pub(super) const HEAD: usize = 8;
/// Maximum ratio of decompressed to compressed size. perf's own records reach at most 50.
const GROWTH: usize = 1024;

/// A record without its head.
#[derive(Clone, Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: Cow<'a, [u8]>,
    /// Offset in the file; for a compressed record, that of the record that contains it.
    pub(super) at: u64,
}

/// Calls `each` with every record. Damage ends the reading, because the start of the next record is then unknown.
pub(super) fn for_each<'a>(
    data: &'a [u8],
    offset: u64,
    report: &mut Report,
    each: &mut impl FnMut(Record<'a>, &mut Report),
) {
    let mut inflate: Option<Inflate> = None;
    let mut rest = Cursor(data);
    while !rest.0.is_empty() {
        let at = offset + (data.len() - rest.0.len()) as u64;
        let (kind, misc, body) = match next(&mut rest) {
            Ok(record) => record,
            Err(what) => return report.damaged(at, what),
        };
        let skipped = match kind {
            kind::AUXTRACE => u64_at(body, 0),
            kind::TRACING_DATA => Cursor(body).u32().map(|size| u64::from(size).next_multiple_of(8)),
            _ => Some(0),
        };
        if skipped.and_then(|size| rest.take_items(size, 1)).is_none() {
            return report.damaged(at, "the file ends in a record's data");
        }
        let compressed = match kind {
            kind::COMPRESSED => Some(body),
            kind::COMPRESSED2 => {
                let mut inner = Cursor(body);
                inner.u64().and_then(|size| inner.take_items(size, 1)).or(Some(&[]))
            }
            _ => None,
        };
        let Some(compressed) = compressed else {
            let body = Cow::Borrowed(body);
            each(Record { kind, misc, body, at }, report);
            continue;
        };
        if inflate.is_none() {
            inflate = Inflate::new();
        }
        let Some(inflate) = &mut inflate else { return };
        if let Err(what) = inflate.add(compressed) {
            return report.damaged(at, what);
        }
        if let Err(what) = inflate.drain(|kind, misc, body| {
            let body = Cow::Owned(body.to_vec());
            each(Record { kind, misc, body, at }, report);
        }) {
            return report.damaged(at, what);
        }
    }
}

fn next<'a>(rest: &mut Cursor<'a>) -> Result<(u32, u16, &'a [u8]), &'static str> {
    let ends = "the file ends in a record";
    let head = (rest.u32(), rest.u16(), rest.u16());
    let (Some(kind), Some(misc), Some(size)) = head else {
        return Err(ends);
    };
    let size = usize::from(size)
        .checked_sub(HEAD)
        .ok_or("a record is shorter than its head")?;
    if kind >= kind::NONE || kind == 0 {
        return Err("bytes that are not a record");
    }
    Ok((kind, misc, rest.take(size).ok_or(ends)?))
}

/// The compressed stream that all compressed records form.
struct Inflate {
    decoder: Decoder<'static>,
    /// Decompressed bytes that are not read yet: a record may continue in the next compressed record.
    bytes: Vec<u8>,
}

impl Inflate {
    fn new() -> Option<Self> {
        Some(Self {
            decoder: Decoder::new().ok()?,
            bytes: Vec::new(),
        })
    }

    fn add(&mut self, compressed: &[u8]) -> Result<(), &'static str> {
        let max_size = self.bytes.len() + (compressed.len() + HEAD) * GROWTH;
        let mut input = InBuffer::around(compressed);
        let mut piece = [0; 1 << 14];
        loop {
            let mut output = OutBuffer::around(&mut piece[..]);
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|_| "a compressed record is damaged")?;
            let written = output.as_slice().len();
            self.bytes.extend_from_slice(&piece[..written]);
            if self.bytes.len() > max_size {
                return Err("a compressed record grows beyond measure");
            }
            if input.pos == compressed.len() && written < piece.len() {
                return Ok(());
            }
        }
    }

    fn drain(&mut self, mut each: impl FnMut(u32, u16, &[u8])) -> Result<(), &'static str> {
        let mut rest = Cursor(&self.bytes);
        loop {
            let whole = rest
                .0
                .get(6..8)
                .is_some_and(|size| rest.0.len() >= usize::from(u16::from_le_bytes([size[0], size[1]])));
            if !whole {
                break;
            }
            let (kind, misc, body) = next(&mut rest)?;
            each(kind, misc, body);
        }
        let left = rest.0.len();
        self.bytes.drain(..self.bytes.len() - left);
        Ok(())
    }
}
