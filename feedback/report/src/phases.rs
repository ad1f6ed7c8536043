//! The report of `pleach phases`: a timeline, each phase's share of the time, its hottest paths and the paths that set
//! it apart from the others.

use super::names::Names;
use super::paths::ending;
use super::paths_text::with_unit;
use super::source_paths::{PathContext, SourceNames, distinct};
use super::table::{Table, table};
use super::tables::{grouped, percent, percent_range, without_padding};
use pleach_analysis::phases::FirstExecution;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::{Path, Start};
use pleach_phases::{Event, PhaseId, Timeline};
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fmt::Write;

/// Spans at each end of a longer timeline that are printed for people.
const SHOWN_SPANS: usize = 20;
/// Phases whose paths are printed for people, those with the most CPU time.
const SHOWN_PHASES: usize = 12;

/// Functions whose code was first executed in a phase that are printed for people.
const SHOWN_FUNCTIONS: usize = 5;

/// The phases of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Phases<'p> {
    /// Bursts of an interval.
    pub interval: usize,
    /// CPU time of the program, in seconds.
    pub cpu_seconds: f64,
    /// In order of time.
    pub spans: Vec<SpanRow>,
    /// In the order in which they were met first.
    pub phases: Vec<PhaseRow<'p>>,
}

/// A span of time in one phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SpanRow {
    /// The phase.
    pub phase: u32,
    /// Its start, in seconds of wall time since the first burst.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// CPU time of the program, in seconds.
    pub cpu_seconds: f64,
    /// Number of bursts.
    pub bursts: u64,
    /// Whether the phase was met before.
    pub is_known: bool,
    /// Whether the phase predicted enough intervals to act on it.
    pub is_stable: bool,
    /// What is different from the span before: `other code`, `direction`, `dominance` or `behaviour`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Share of the time in the branch traces that became more frequent, in the span before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
    /// The same in this span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<f64>,
    /// Breakpoints that were hit for the first time after the last burst of the span before, and before this span's last
    /// burst; in the last span, until the end.
    pub first_executed: u64,
}

/// A function with code that was first executed in a phase.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FirstExecuted<'p> {
    /// Linkage name.
    pub function: &'p str,
    /// Breakpoints that were hit for the first time.
    pub breakpoints: u64,
}

/// A phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseRow<'p> {
    /// The phase.
    pub phase: u32,
    /// CPU time of the program, in seconds.
    pub cpu_seconds: f64,
    /// Its share.
    pub share: f64,
    /// Number of spans.
    pub spans: u64,
    /// Number of bursts.
    pub bursts: u64,
    /// Whether it predicted enough intervals to act on it.
    pub is_stable: bool,
    /// Functions of code that was first executed in it: those with the most breakpoints first.
    pub first_executed: Vec<FirstExecuted<'p>>,
    /// Its hottest paths, then the others that set it apart.
    pub paths: Vec<PhasePath<'p>>,
}

/// A path of a phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhasePath<'p> {
    /// Linkage name.
    pub function: &'p str,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Blocks in order.
    pub blocks: &'p [BlockIndex],
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
    /// Share of the executions of the phase's paths.
    pub share: f64,
    /// Lower end of the 90 % interval of that.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Share of the executions of all paths of the other phases; `None` if there is no other phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<f64>,
    /// Whether it is more frequent than in the other phases: the two 90 % intervals are disjoint.
    pub is_distinctive: bool,
    #[serde(skip)]
    of: (&'p FunctionProfile, &'p EstimatedPath),
}

type Key<'p> = (FunctionId, CfgHash, &'p Path);

/// Sums over several phases: of each path its count and the ends of its interval, and of all paths.
#[derive(Clone, Default)]
struct Sums<'p> {
    paths: FxHashMap<Key<'p>, [f64; 3]>,
    flow: f64,
}

impl<'p> Sums<'p> {
    fn add(&mut self, profile: &'p Profile) {
        for (function, estimated) in rows(profile) {
            let sum = self.paths.entry(key(function, estimated)).or_default();
            for (sum, count) in sum.iter_mut().zip([estimated.low, estimated.count, estimated.high]) {
                *sum += count;
            }
            self.flow += estimated.count;
        }
    }
}

fn rows(profile: &Profile) -> impl Iterator<Item = (&FunctionProfile, &EstimatedPath)> {
    let functions = profile.functions.iter();
    functions.flat_map(|function| function.paths.iter().map(move |path| (function, path)))
}

fn key<'p>(function: &'p FunctionProfile, estimated: &'p EstimatedPath) -> Key<'p> {
    (function.id, function.cfg_hash, &estimated.path)
}

impl<'p> Phases<'p> {
    /// The report. `profiles`: those of the phases, as far as their paths are known; `first`: what was executed first, in
    /// order of time; `top`: number of hottest paths of each phase, and of paths that set it apart.
    pub fn new(
        timeline: &Timeline,
        profiles: &'p [(PhaseId, Profile)],
        first: &'p [FirstExecution],
        top: usize,
    ) -> Self {
        let first = first_by_span(timeline, first);
        let mut all = Sums::default();
        profiles.iter().for_each(|(_, profile)| all.add(profile));
        let cpu_seconds = timeline.cpu_seconds();
        let phases = timeline.phases.iter().map(|of| PhaseRow {
            phase: of.phase.0,
            cpu_seconds: of.cpu_seconds,
            // Without CPU times (an imported recording), by bursts.
            share: match cpu_seconds > 0.0 {
                true => of.cpu_seconds / cpu_seconds,
                false => of.bursts as f64 / timeline.phases.iter().map(|of| of.bursts).sum::<u64>() as f64,
            },
            spans: of.spans,
            bursts: of.bursts,
            is_stable: of.is_stable,
            first_executed: by_function(timeline, &first, of.phase),
            paths: profiles
                .iter()
                .find(|(phase, _)| *phase == of.phase)
                .map_or_else(Vec::new, |(_, profile)| paths(profile, &all, profiles.len() > 1, top)),
        });
        let seconds = |ns: u64| ns.saturating_sub(timeline.start_ns()) as f64 * 1e-9;
        let spans = timeline.spans.iter().zip(&first).map(|(span, first)| SpanRow {
            phase: span.phase.0,
            start_seconds: seconds(span.start_ns),
            end_seconds: seconds(span.end_ns),
            cpu_seconds: span.cpu_seconds,
            bursts: span.bursts,
            is_known: span.is_known,
            is_stable: span.is_stable,
            cause: span.change.map(|change| change.cause.name()),
            before: span.change.map(|change| change.before),
            after: span.change.map(|change| change.after),
            first_executed: first.len() as u64,
        });
        Self {
            interval: timeline.interval,
            cpu_seconds,
            spans: spans.collect(),
            phases: phases.collect(),
        }
    }

    /// For scripts.
    ///
    /// # Errors
    /// Never, as far as is known: the report has no maps and no foreign types.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For people: paths as source lines where the profiles have them and `sources` is given, else as block numbers.
    pub fn to_text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.timeline(names));
        let _ = writeln!(out, "\n{}", self.shares(names));
        let has_rows = |phase: &&PhaseRow<'_>| !phase.paths.is_empty() || !phase.first_executed.is_empty();
        let mut by_time: Vec<&PhaseRow<'_>> = self.phases.iter().filter(has_rows).collect();
        by_time.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
        by_time.truncate(SHOWN_PHASES);
        by_time.sort_by_key(|phase| phase.phase);
        let mut legend = None;
        for phase in &by_time {
            let _ = writeln!(out, "\nphase {}", phase.phase);
            if !phase.first_executed.is_empty() {
                let _ = writeln!(out, "first executed: {}", listed(&phase.first_executed, names));
            }
            if !phase.paths.is_empty() {
                let (rows, of_paths) = paths_table(&phase.paths, names, sources);
                let _ = writeln!(out, "{rows}");
                legend = Some(of_paths);
            }
        }
        if let Some(legend) = legend {
            let _ = writeln!(out, "\n{legend}");
            if self.phases.len() > 1 {
                let _ = writeln!(
                    out,
                    "◆ more frequent than in the other phases (90 % intervals are disjoint); “elsewhere”: its share there"
                );
            }
        }
        let _ = writeln!(
            out,
            "{} in {}, {} of CPU time; intervals of {} bursts",
            with_unit(self.phases.len() as u64, "phase"),
            with_unit(self.spans.len() as u64, "span"),
            seconds(self.cpu_seconds),
            grouped(self.interval)
        );
        if self.has_first_executed() {
            let _ = writeln!(
                out,
                "“first executed”: breakpoints that were hit for the first time, after the last burst of the span before"
            );
        }
        if self.spans.iter().any(|span| !span.is_stable) {
            let _ = writeln!(out, "“not stable”: it ended before it had predicted three intervals");
        }
        without_padding(&out)
    }

    fn has_first_executed(&self) -> bool {
        self.spans.iter().any(|span| span.first_executed > 0)
    }

    fn timeline(&self, names: &Names) -> Table {
        let has_first = self.has_first_executed();
        let mut header = vec!["from", "to", "CPU time", "phase", "cause of the change"];
        if has_first {
            header.insert(4, "first executed");
        }
        let mut rows = table(&header, ..header.len() - 1)
            .fitting(names)
            .with_texts(&["cause of the change"]);
        let left_out = SHOWN_SPANS..self.spans.len().saturating_sub(SHOWN_SPANS);
        for (at, span) in self.spans.iter().enumerate() {
            if left_out.contains(&at) {
                if at == left_out.start {
                    let others = with_unit(left_out.len() as u64, "other span");
                    let mut row = vec![String::new(); header.len() - 1];
                    row.push(others);
                    rows.add_row(row);
                }
                continue;
            }
            let mut row = vec![
                seconds(span.start_seconds),
                seconds(span.end_seconds),
                seconds(span.cpu_seconds),
                span.phase.to_string(),
                began_by(span),
            ];
            if has_first {
                row.insert(4, grouped(span.first_executed));
            }
            rows.add_row(row);
        }
        rows
    }

    fn shares(&self, names: &Names) -> Table {
        let mut rows = table(&["phase", "share", "CPU time", "spans", "bursts", ""], ..5)
            .fitting(names)
            .with_texts(&[""]);
        for phase in &self.phases {
            rows.add_row([
                phase.phase.to_string(),
                percent(phase.share),
                seconds(phase.cpu_seconds),
                grouped(phase.spans),
                grouped(phase.bursts),
                match phase.is_stable {
                    true => String::new(),
                    false => "not stable".to_owned(),
                },
            ]);
        }
        rows
    }
}

/// Lines on the phases of a recording in progress. What is kept does not grow with the recording.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PhaseLines {
    start_ns: Option<u64>,
    phases: u32,
    spans: u64,
}

impl PhaseLines {
    /// The line on an event; ends have none, because the next phase's beginning says it.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        match *event {
            Event::Began {
                phase,
                time_ns,
                is_known,
                change,
                ..
            } => {
                let start = *self.start_ns.get_or_insert(time_ns);
                self.phases = self.phases.max(phase.0);
                self.spans += 1;
                let at = seconds(time_ns.saturating_sub(start) as f64 * 1e-9);
                let again = if is_known { " again" } else { "" };
                let why = change.map(|change| {
                    let cause = change.cause.name();
                    format!(": {}", why(cause, change.before, change.after))
                });
                Some(format!("{at}: phase {}{again}{}", phase.0, why.unwrap_or_default()))
            }
            Event::Stable { phase } => Some(format!("phase {} is stable", phase.0)),
            Event::Ended { .. } => None,
        }
    }

    /// The line at the end.
    pub fn summary(&self) -> String {
        let (phases, spans) = (u64::from(self.phases), self.spans);
        format!("{} in {}", with_unit(phases, "phase"), with_unit(spans, "span"))
    }
}

/// `other code: 98.20 % of the time (0.10 % in the phase before)`.
fn why(cause: &str, before: f64, after: f64) -> String {
    match cause {
        "behaviour" => "behaviour: the same code, at another speed".to_owned(),
        _ => format!(
            "{cause}: {} of the time ({} in the phase before)",
            percent(after),
            percent(before)
        ),
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

/// `other code: 98.20 % of the time (0.10 % in the phase before); seen before as phase 1`.
fn began_by(span: &SpanRow) -> String {
    let mut text = match (span.cause, span.before, span.after) {
        (Some(cause), Some(before), Some(after)) => why(cause, before, after),
        _ => String::new(),
    };
    let notes = [
        (span.is_known, format!("seen before as phase {}", span.phase)),
        (!span.is_stable, "not stable".to_owned()),
    ];
    for note in notes.iter().filter_map(|(applies, note)| applies.then_some(note)) {
        text += if text.is_empty() { "" } else { "; " };
        text += note;
    }
    text
}

/// What was first executed in each span.
fn first_by_span<'p>(timeline: &Timeline, first: &'p [FirstExecution]) -> Vec<&'p [FirstExecution]> {
    let mut rest = first;
    let spans = timeline.spans.iter().enumerate().map(|(at, span)| {
        let is_last = at + 1 == timeline.spans.len();
        let end = rest.partition_point(|of| is_last || of.time_ns <= span.last_burst_ns);
        let (of_span, later) = rest.split_at(end);
        rest = later;
        of_span
    });
    spans.collect()
}

/// The functions of what was first executed in a phase.
fn by_function<'p>(timeline: &Timeline, first: &[&'p [FirstExecution]], phase: PhaseId) -> Vec<FirstExecuted<'p>> {
    let mut breakpoints = FxHashMap::<&str, u64>::default();
    for (span, of_span) in timeline.spans.iter().zip(first) {
        for of in of_span
            .iter()
            .filter(|of| span.phase == phase && !of.function.is_empty())
        {
            *breakpoints.entry(&of.function).or_default() += 1;
        }
    }
    let rows = breakpoints.into_iter();
    let mut rows: Vec<_> = rows
        .map(|(function, breakpoints)| FirstExecuted { function, breakpoints })
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.breakpoints), row.function));
    rows
}

/// `write_output (41), flush (12) and 7 other functions`.
fn listed(functions: &[FirstExecuted<'_>], names: &Names) -> String {
    let (shown, others) = functions.split_at(SHOWN_FUNCTIONS.min(functions.len()));
    let shown: Vec<String> = shown
        .iter()
        .map(|row| format!("{} ({})", names.shown(row.function), grouped(row.breakpoints)))
        .collect();
    let shown = shown.join(", ");
    match others.len() {
        0 => shown,
        number => format!("{shown} and {}", with_unit(number as u64, "other function")),
    }
}

/// The hottest paths, then the others that are more frequent here, by the difference that is certain.
fn paths<'p>(profile: &'p Profile, all: &Sums<'p>, has_others: bool, top: usize) -> Vec<PhasePath<'p>> {
    let mut here = Sums::default();
    here.add(profile);
    let others_flow = all.flow - here.flow;
    let mut found: Vec<(f64, PhasePath<'p>)> = rows(profile)
        .filter(|(_, estimated)| estimated.count > 0.0)
        .map(|(function, estimated)| {
            let (sum, own) = (
                all.paths[&key(function, estimated)],
                [estimated.low, estimated.count, estimated.high],
            );
            let others = |end: usize| match others_flow > 0.0 {
                true => ((sum[end] - own[end]) / others_flow).clamp(0.0, 1.0),
                false => 0.0,
            };
            let [low, share, high] = own.map(|count| (count / here.flow).min(1.0));
            let certain = low - others(2);
            let (end, to) = ending(estimated.path.end);
            let row = PhasePath {
                function: &function.name,
                function_id: function.id.to_string(),
                cfg_hash: function.cfg_hash.to_string(),
                blocks: &estimated.path.blocks,
                start: estimated.path.start,
                end,
                to,
                share,
                low,
                high,
                elsewhere: has_others.then(|| others(1)),
                is_distinctive: has_others && certain > 0.0,
                of: (function, estimated),
            };
            (certain, row)
        })
        .collect();
    found.sort_by(|(_, a), (_, b)| {
        let order = b.share.total_cmp(&a.share).then_with(|| a.function.cmp(b.function));
        order.then_with(|| a.of.1.path.cmp(&b.of.1.path))
    });
    let mut apart = found.split_off(top.min(found.len()));
    apart.retain(|(_, row)| row.is_distinctive);
    apart.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    apart.truncate(top);
    found.into_iter().chain(apart).map(|(_, row)| row).collect()
}

fn paths_table(paths: &[PhasePath<'_>], names: &Names, sources: Option<&SourceNames>) -> (Table, &'static str) {
    let has_others = paths.iter().any(|path| path.elsewhere.is_some());
    let mut header = vec!["share", "90 % interval"];
    if has_others {
        header.extend(["elsewhere", ""]);
    }
    let right = header.len();
    header.extend(["function", "path"]);
    let mut rows = table(&header, ..right).fitting(names).with_texts(&["path"]);
    let shown = paths
        .iter()
        .map(|path| (PathContext::from_profile(path.of.0), vec![&path.of.1.path]));
    let (shown, legend) = distinct(shown, sources, names);
    for (path, text) in paths.iter().zip(shown) {
        let mut row = vec![percent(path.share), percent_range(path.low, path.high)];
        if has_others {
            let mark = if path.is_distinctive { "◆" } else { "" };
            row.extend([path.elsewhere.map_or_else(String::new, percent), mark.to_owned()]);
        }
        row.extend([names.shown(path.function), text]);
        rows.add_row(row);
    }
    (rows, legend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_analysis::phases::FirstExecution;
    use pleach_annotate::id::FunctionGuid;
    use pleach_ball_larus::End;
    use pleach_phases::Change;
    use pleach_phases::compare::Cause;
    use pleach_phases::timeline::{PhaseTime, Span};

    /// A profile with paths of these functions and counts, all of one block.
    fn profile(paths: &[(&str, f64)]) -> Profile {
        let functions = paths.iter().map(|&(name, count)| FunctionProfile {
            id: FunctionId {
                guid: FunctionGuid(name.len() as u64),
                ..FunctionId::default()
            },
            name: name.to_owned(),
            paths: vec![EstimatedPath {
                path: Path {
                    start: Start::Entry,
                    blocks: vec![BlockIndex(0)],
                    end: End::Exit,
                },
                count,
                low: count * 0.9,
                high: count * 1.1,
                effective: count,
            }],
            ..FunctionProfile::default()
        });
        Profile {
            functions: functions.collect(),
            ..Profile::default()
        }
    }

    fn span(phase: u32, start: u64, change: Option<Change>, is_known: bool) -> Span {
        Span {
            phase: PhaseId(phase),
            start_ns: 5_000_000_000 + start * 1_000_000_000,
            end_ns: 5_000_000_000 + (start + 1) * 1_000_000_000,
            last_burst_ns: 5_900_000_000 + start * 1_000_000_000,
            cpu_seconds: 0.5,
            bursts: 500,
            is_known,
            is_stable: start != 1,
            change,
        }
    }

    fn timeline() -> Timeline {
        let change = |cause, before, after| Some(Change { cause, before, after });
        let phase = |phase, spans, is_stable| PhaseTime {
            phase: PhaseId(phase),
            cpu_seconds: 0.5 * spans as f64,
            spans,
            bursts: 500 * spans,
            is_stable,
        };
        Timeline {
            spans: vec![
                span(1, 0, None, false),
                span(2, 1, change(Cause::OtherCode, 0.001, 0.982), false),
                span(1, 2, change(Cause::Behaviour, 0.4, 0.5), true),
            ],
            phases: vec![phase(1, 2, true), phase(2, 1, false)],
            phase_of: Vec::new(),
            interval: 100,
        }
    }

    #[test]
    fn people_read_a_timeline_and_paths() {
        let profiles = [
            (PhaseId(1), profile(&[("a", 60.0), ("bb", 40.0)])),
            (PhaseId(2), profile(&[("bb", 50.0), ("ccc", 40.0), ("dddd", 10.0)])),
        ];
        let first = |seconds: u64, function: &str| FirstExecution {
            time_ns: seconds * 1_000_000_000,
            function: function.to_owned(),
        };
        // Before the first burst; after the last one of a span; after the last one of all.
        let first = [
            first(4, "main"),
            first(5, "a"),
            first(6, "bb"),
            first(99, "main"),
            first(99, ""),
        ];
        let text = Phases::new(&timeline(), &profiles, &first, 1).to_text(&Names::default(), None);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn shares_refer_to_the_phase_and_to_the_others() {
        let profiles = [
            (PhaseId(1), profile(&[("a", 60.0), ("bb", 40.0)])),
            (PhaseId(2), profile(&[("bb", 50.0), ("ccc", 150.0)])),
        ];
        let timeline = timeline();
        let report = Phases::new(&timeline, &profiles, &[], 9);
        let of = |phase: usize, path: usize| {
            let path = &report.phases[phase].paths[path];
            (path.function, path.share, path.elsewhere, path.is_distinctive)
        };
        assert_eq!(of(0, 0), ("a", 0.6, Some(0.0), true));
        // 0.36 at least, and in the other phase at most 0.275.
        assert_eq!(of(0, 1), ("bb", 0.4, Some(0.25), true));
        assert_eq!(of(1, 1), ("bb", 0.25, Some(0.4), false));
        let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("JSON");
        assert_eq!(json["spans"][1]["cause"], "other code");
        assert_eq!(json["spans"][0].get("cause"), None);
        assert_eq!(json["phases"][0]["paths"][0]["end"], "exit");
    }

    #[test]
    fn lines_of_a_recording_in_progress() {
        let mut lines = PhaseLines::default();
        let began = |phase, seconds: u64, is_known, change| Event::Began {
            phase: PhaseId(phase),
            burst: seconds,
            time_ns: seconds * 1_000_000_000,
            is_known,
            change,
        };
        let change = Change {
            cause: Cause::Direction,
            before: 0.1,
            after: 0.9,
        };
        let events = [
            began(1, 7, false, None),
            Event::Stable { phase: PhaseId(1) },
            began(2, 9, false, Some(change)),
            began(1, 12, true, Some(change)),
        ];
        let mut told: Vec<String> = events.iter().filter_map(|event| lines.line(event)).collect();
        told.push(lines.summary());
        insta::assert_snapshot!(told.join("\n"), @r"
        0.00 s: phase 1
        phase 1 is stable
        2.00 s: phase 2: direction: 90.00 % of the time (10.00 % in the phase before)
        5.00 s: phase 1 again: direction: 90.00 % of the time (10.00 % in the phase before)
        2 phases in 3 spans
        ");
    }
}
