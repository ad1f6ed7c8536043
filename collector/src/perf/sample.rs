//! The body of a sample: fields in the kernel's order, each present if its bit in `sample_type` is set.

use super::attr::{Event, branch_type, sample_type};
use super::branches::RawBranch;
use super::cursor::Cursor;
use crate::vector::{BranchFacts, Prediction};

/// Bytes of a branch: from, to, flags.
pub(super) const ENTRY: usize = 24;

/// The fields of a sample that the import uses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample<'a> {
    pub(super) ip: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) time: Option<u64>,
    /// Number of events that the sample represents, if it says so.
    pub(super) period: Option<u64>,
    /// The program's instruction, if the sample has calls of the program.
    pub(super) user_ip: Option<u64>,
    /// Entries of [`ENTRY`] bytes, newest first; `None` if the event has none.
    pub(super) branches: Option<&'a [u8]>,
}

/// Reads a sample up to its branches; `None` if it is too short for its fields.
pub(super) fn read<'a>(event: &Event, body: &'a [u8]) -> Option<Sample<'a>> {
    let mut sample = Sample::default();
    let mut cursor = Cursor(body);
    head(event, &mut cursor, &mut sample)?;
    let has = |bit| event.sample_type & bit != 0;
    for bit in [
        sample_type::ADDR,
        sample_type::ID,
        sample_type::STREAM_ID,
        sample_type::CPU,
        sample_type::PERIOD,
    ] {
        if has(bit) {
            let value = cursor.u64()?;
            if bit == sample_type::PERIOD {
                sample.period = Some(value);
            }
        }
    }
    if has(sample_type::READ) {
        skip_read(event.read_format, &mut cursor)?;
    }
    if has(sample_type::CALLCHAIN) {
        let count = cursor.u64()?;
        sample.user_ip = first_of_program(cursor.take_items(count, 8)?);
    }
    if has(sample_type::RAW) {
        let size = cursor.u32()?;
        cursor.take(size as usize)?;
    }
    if has(sample_type::BRANCH_STACK) {
        let count = cursor.u64()?;
        if event.branch_type & branch_type::HW_INDEX != 0 {
            cursor.u64()?;
        }
        sample.branches = Some(cursor.take_items(count, ENTRY)?);
    }
    Some(sample)
}

/// The first address of the program in a list of calls, in which marks precede those of the kernel and of the program.
fn first_of_program(calls: &[u8]) -> Option<u64> {
    /// `PERF_CONTEXT_USER`.
    const PROGRAM: u64 = -512_i64 as u64;
    let mut calls = calls
        .chunks_exact(8)
        .filter_map(|call| super::cursor::u64_at(call, 0))
        .skip_while(|call| *call != PROGRAM);
    calls.nth(1)
}

/// The time of a sample, read without the other fields.
pub(super) fn time(event: &Event, body: &[u8]) -> Option<u64> {
    let mut sample = Sample::default();
    head(event, &mut Cursor(body), &mut sample)?;
    sample.time
}

/// The period of a sample, read without the other fields.
pub(super) fn period(event: &Event, body: &[u8]) -> Option<u64> {
    let has = |bit| event.sample_type & bit != 0;
    let before = [
        sample_type::IDENTIFIER,
        sample_type::IP,
        sample_type::TID,
        sample_type::TIME,
        sample_type::ADDR,
        sample_type::ID,
        sample_type::STREAM_ID,
        sample_type::CPU,
    ];
    let fields = before.into_iter().filter(|bit| has(*bit)).count();
    has(sample_type::PERIOD).then(|| super::cursor::u64_at(body, fields * 8))?
}

/// The time of any other record that has one: `sample_id` at its end, last field last.
pub(super) fn time_of_other(event: &Event, body: &[u8]) -> Option<u64> {
    if !event.sample_id_all || event.sample_type & sample_type::TIME == 0 {
        return None;
    }
    let behind = [
        sample_type::ID,
        sample_type::STREAM_ID,
        sample_type::CPU,
        sample_type::IDENTIFIER,
    ];
    let fields = 1 + behind.iter().filter(|bit| event.sample_type & **bit != 0).count();
    super::cursor::u64_at(body, body.len().checked_sub(fields * 8)?)
}

fn head<'a>(event: &Event, cursor: &mut Cursor<'a>, sample: &mut Sample<'a>) -> Option<()> {
    let has = |bit| event.sample_type & bit != 0;
    if has(sample_type::IDENTIFIER) {
        cursor.u64()?;
    }
    if has(sample_type::IP) {
        sample.ip = cursor.u64()?;
    }
    if has(sample_type::TID) {
        (sample.pid, sample.tid) = (cursor.u32()?, cursor.u32()?);
    }
    if has(sample_type::TIME) {
        sample.time = Some(cursor.u64()?);
    }
    Some(())
}

/// Position of the event's id in a sample, or, counted from the end, in another record.
pub(super) fn id(event: &Event, body: &[u8], is_sample: bool) -> Option<u64> {
    let has = |bit| event.sample_type & bit != 0;
    let offset = if has(sample_type::IDENTIFIER) {
        if is_sample { 0 } else { body.len().checked_sub(8)? }
    } else if !has(sample_type::ID) {
        return None;
    } else if is_sample {
        let before = [sample_type::IP, sample_type::TID, sample_type::TIME, sample_type::ADDR];
        before.iter().filter(|bit| has(**bit)).count() * 8
    } else {
        let from_end = 1 + [sample_type::STREAM_ID, sample_type::CPU]
            .iter()
            .filter(|bit| has(**bit))
            .count();
        body.len().checked_sub(from_end * 8)?
    };
    super::cursor::u64_at(body, offset)
}

fn skip_read(format: u64, cursor: &mut Cursor) -> Option<()> {
    const ENABLED: u64 = 1;
    const RUNNING: u64 = 2;
    const ID: u64 = 4;
    const GROUP: u64 = 8;
    const LOST: u64 = 16;
    let has = |bit| usize::from(format & bit != 0);
    let (times, each) = (has(ENABLED) + has(RUNNING), 1 + has(ID) + has(LOST));
    if format & GROUP != 0 {
        let count = cursor.u64()?;
        cursor.take(times * 8)?;
        cursor.take_items(count, each * 8)?;
    } else {
        cursor.take((times + each) * 8)?;
    }
    Some(())
}

/// Speculation says `PERF_BR_SPEC_WRONG_PATH`: the branch never happened.
const WRONG_PATH: u64 = 1;

/// Decodes one entry.
pub(super) fn branch(entry: &[u8], branch_type: u64) -> Option<RawBranch> {
    let mut cursor = Cursor(entry);
    let (from, to, flags) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let prediction = match flags & 3 {
        _ if branch_type & branch_type::NO_FLAGS != 0 => Prediction::Unknown,
        0 => Prediction::Unknown,
        2 => Prediction::Predicted,
        _ => Prediction::Mispredicted,
    };
    let cycles = if branch_type & branch_type::NO_CYCLES != 0 {
        0
    } else {
        (flags >> 4) as u16
    };
    Some(RawBranch {
        from,
        to,
        facts: BranchFacts { prediction, cycles },
        // After mispred, predicted, in_tx, abort (one bit each), cycles (16) and type (4).
        wrong_path: flags >> 24 & 3 == WRONG_PATH,
    })
}
