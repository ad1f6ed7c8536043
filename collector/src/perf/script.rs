//! The text of `perf script`: samples with branch stacks, on one line or below a call chain, and the lines of
//! `--show-mmap-events` and `--show-task-events`.

use super::PerfError;
use super::branches::RawBranch;
use super::mapping::RawMapping;
use super::replacement::Replacement;
use super::report::{Format, Report};
use super::session::{SampleHead, Session};
use crate::convert::modules::FileIdentity;
use crate::vector::{BranchFacts, BuildId, EventId, Prediction};
use std::collections::HashSet;
use std::path::Path;

/// Name of the event if the layout has none.
const NO_EVENT: &str = "unknown";

/// Reads a text.
pub(super) fn import(
    path: &Path,
    text: &[u8],
    replacement: Option<&Replacement>,
    session: Session,
) -> Result<Report, PerfError> {
    let mut script = Script {
        session,
        replacement,
        line: 0,
        recognised: false,
        head: Head::default(),
        mapped: Vec::new(),
        without_process: false,
        seen: HashSet::new(),
    };
    let mut at = 0;
    for line in text.split(|byte| *byte == b'\n') {
        script.line += 1;
        script.session.reached(at);
        at += line.len() as u64 + 1;
        script.read(&String::from_utf8_lossy(line));
    }
    if script.recognised {
        return Ok(script.session.finish());
    }
    Err(PerfError::Foreign { path: path.to_owned() })
}

/// The head of a sample, which precedes its branches.
#[derive(Clone, Debug, Default)]
struct Head {
    pid: Option<u32>,
    thread: u32,
    time_ns: u64,
    event: Option<EventId>,
    ip: Option<u64>,
}

struct Script<'a> {
    session: Session<'a>,
    replacement: Option<&'a Replacement>,
    line: u64,
    /// A line was read that only `perf script` prints.
    recognised: bool,
    head: Head,
    mapped: Vec<(u32, RawMapping)>,
    /// Some samples have no process: one process then has all mappings.
    without_process: bool,
    /// Processes with samples.
    seen: HashSet<u32>,
}

impl Script<'_> {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            self.head = Head::default();
        } else if let Some((_, record)) = line.split_once("PERF_RECORD_") {
            self.recognised = true;
            if self.record(record).is_none() {
                self.malformed("a PERF_RECORD_ line that makes no sense");
            }
        } else if self.sample(line).is_none() {
            self.malformed("a line that is not a sample");
        }
    }

    fn malformed(&mut self, what: &str) {
        self.session.report.malformed(self.line, Format::PerfScript, what);
    }

    fn record(&mut self, record: &str) -> Option<()> {
        if let Some(rest) = record.strip_prefix("MMAP2 ").or(record.strip_prefix("MMAP ")) {
            if let Some((pid, mapping)) = mapping(rest)? {
                let process = if self.without_process {
                    self.mapped.first().map_or(pid, |(first, _)| *first)
                } else {
                    pid
                };
                self.session.map(process, mapping.clone());
                self.mapped.push((pid, mapping));
            }
        } else if let Some(rest) = record.strip_prefix("COMM") {
            let (exec, rest) = match rest.strip_prefix(" exec: ") {
                Some(rest) => (true, rest),
                None => (false, rest.trim_start_matches([':', ' '])),
            };
            let (name, ids) = rest.rsplit_once(':')?;
            let (pid, tid) = ids.split_once('/')?;
            let (pid, tid): (u32, u32) = (pid.trim().parse().ok()?, tid.trim().parse().ok()?);
            if pid == tid {
                self.session.name(pid, name.to_owned(), exec);
            }
        } else if let Some(rest) = record.strip_prefix("FORK(") {
            let (child, parent) = rest.split_once("):(")?;
            let pid = |ids: &str| ids.split(':').next()?.parse::<u32>().ok();
            self.session.fork(pid(parent)?, pid(child)?, true);
        }
        Some(())
    }

    /// A line of a sample: its head, an address of its call chain, its branches, or several of these.
    fn sample(&mut self, line: &str) -> Option<()> {
        let tokens: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_entry = |token: &&str| token.starts_with("0x") && token.contains('/');
        let entries = tokens.iter().position(is_entry).unwrap_or(tokens.len());
        let (leading, entries) = tokens.split_at(entries);
        if let Some(at) = leading.iter().position(|token| time_ns(token).is_some()) {
            self.head(leading, at)?;
        } else {
            match leading {
                [] => {}
                [ids, ip] if !entries.is_empty() && process_and_thread(ids).is_some() => {
                    let (pid, thread) = process_and_thread(ids)?;
                    self.head = Head {
                        pid: Some(pid),
                        thread,
                        ip: Some(hexadecimal(ip)?),
                        ..Head::default()
                    };
                }
                [ip, ..] => {
                    let ip = hexadecimal(ip)?;
                    self.head.ip.get_or_insert(ip);
                }
            }
        }
        if !entries.is_empty() {
            self.branches(entries);
        }
        Some(())
    }

    /// `comm pid/tid [cpu] time: period event: ip`.
    fn head(&mut self, leading: &[&str], time: usize) -> Option<()> {
        let mut head = Head {
            time_ns: time_ns(leading[time])?,
            ..Head::default()
        };
        let before = leading[..time].iter().rev();
        if let Some((pid, thread)) = before
            .copied()
            .find(|token| !token.starts_with('['))
            .and_then(process_and_thread)
        {
            (head.pid, head.thread) = (Some(pid), thread);
        }
        for token in &leading[time + 1..] {
            if let Some(name) = token.strip_suffix(':').filter(|_| head.event.is_none()) {
                head.event = Some(self.session.event(name.trim_end_matches(':')));
            } else if head.event.is_some() {
                head.ip = hexadecimal(token);
                break;
            }
        }
        self.head = head;
        Some(())
    }

    fn branches(&mut self, entries: &[&str]) {
        let mut branches = Vec::with_capacity(entries.len());
        for entry in entries {
            match branch(entry) {
                Some(Some(branch)) => branches.push(branch),
                Some(None) => {}
                None => self.malformed("an entry that is not a branch"),
            }
        }
        if branches.is_empty() {
            return;
        }
        self.recognised = true;
        let head = std::mem::take(&mut self.head);
        let pid = head.pid.unwrap_or_else(|| self.only_process());
        if self.seen.insert(pid)
            && self.mapped.is_empty()
            && let Some(replacement) = self.replacement
        {
            for segment in &replacement.segments {
                self.session.map(pid, segment.clone());
            }
        }
        let event = head.event.unwrap_or_else(|| self.session.event(NO_EVENT));
        let sample = SampleHead {
            pid,
            thread: head.thread,
            time_ns: head.time_ns,
            user_ip: None,
            period: 1,
            ip: head.ip.unwrap_or(branches[0].to),
            event,
        };
        self.session.sample(sample, branches.into_iter());
    }

    /// The process for samples without one. It has the mappings of all processes.
    fn only_process(&mut self) -> u32 {
        let pid = self.mapped.first().map_or(0, |(pid, _)| *pid);
        if !std::mem::replace(&mut self.without_process, true) {
            for (_, mapping) in self.mapped.iter().filter(|(other, _)| *other != pid) {
                self.session.map(pid, mapping.clone());
            }
        }
        pid
    }
}

/// `123.456789:`.
fn time_ns(token: &str) -> Option<u64> {
    let (seconds, fraction) = token.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(fraction)
}

/// `pid/tid`, or one number for both.
fn process_and_thread(token: &str) -> Option<(u32, u32)> {
    let (pid, thread) = token.split_once('/').unwrap_or((token, token));
    Some((pid.parse().ok()?, thread.parse().ok()?))
}

fn hexadecimal(token: &str) -> Option<u64> {
    u64::from_str_radix(token.strip_prefix("0x").unwrap_or(token), 16).ok()
}

/// `0xFROM/0xTO/M|P|-/X|-/A|-/CYCLES` and, from newer versions of perf, `/TYPE/SPECULATION`. `Some(None)` is a branch
/// that was not taken.
fn branch(entry: &str) -> Option<Option<RawBranch>> {
    let mut parts = entry.split('/');
    let (from, to) = (parts.next()?.strip_prefix("0x")?, parts.next()?.strip_prefix("0x")?);
    let (from, to) = (hexadecimal(from)?, hexadecimal(to)?);
    let flags = parts.next().unwrap_or("-");
    let prediction = match flags.bytes().next()? {
        b'M' => Prediction::Mispredicted,
        b'P' => Prediction::Predicted,
        b'-' | b'N' => Prediction::Unknown,
        _ => return None,
    };
    if prediction != Prediction::Unknown && flags.ends_with('N') {
        return Some(None);
    }
    let cycles = match parts.nth(2) {
        None | Some("-" | "") => 0,
        Some(cycles) => u16::try_from(cycles.parse::<u64>().ok()?).unwrap_or(u16::MAX),
    };
    Some(Some(RawBranch {
        from,
        to,
        facts: BranchFacts { prediction, cycles },
        wrong_path: parts.any(|part| part == "SPEC_WRONG_PATH"),
    }))
}

/// `pid/tid: [0xSTART(0xLENGTH) @ OFFSET DEVICE INODE GENERATION]: r-xp PATH`, or with a build-id in the place of
/// device, inode and generation. `Some(None)` is a mapping of the kernel, or of data.
fn mapping(text: &str) -> Option<Option<(u32, RawMapping)>> {
    let (ids, rest) = text.split_once(": [")?;
    let pid = ids.split('/').next()?.trim().parse::<i64>().ok()?;
    let (range, rest) = rest.split_once(" @ ")?;
    let (file, rest) = rest.split_once("]: ")?;
    let (start, length) = range.strip_suffix(')')?.split_once('(')?;
    let (start, length) = (hexadecimal(start)?, hexadecimal(length)?);
    let mut file = file.split_ascii_whitespace();
    let offset = hexadecimal(file.next()?)?;
    let identity = match (file.next(), file.next()) {
        (Some(id), None) => build_id(id.trim_matches(['<', '>'])).map_or(FileIdentity::Unknown, FileIdentity::Build),
        (Some(_device), Some(inode)) => inode.parse().map_or(FileIdentity::Unknown, FileIdentity::Inode),
        _ => FileIdentity::Unknown,
    };
    let (permissions, path) = rest.split_once(' ')?;
    let Some(pid) = u32::try_from(pid).ok().filter(|_| permissions.contains('x')) else {
        return Some(None);
    };
    let mapping = RawMapping {
        path: path.trim().as_bytes().to_vec(),
        addresses: start..start.saturating_add(length),
        offset,
        identity,
    };
    Some(Some((pid, mapping)))
}

fn build_id(text: &str) -> Option<BuildId> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(pair).collect();
    bytes.filter(|bytes| !bytes.is_empty()).map(BuildId)
}
