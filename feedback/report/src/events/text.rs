//! Events for people: one table each.

use super::rows::PathRow;
use super::{EventReport, Events, FunctionNames, PlaceRow};
use crate::names::Names;
use crate::paths_text::with_unit;
use crate::source_paths::SourceNames;
use crate::table::table;
use crate::tables::{grouped, percent, percent_range, without_padding};
use pleach_profile::events::{EventProfile, EventSource, Place, Step};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Paths of each place that are listed.
const MAX_PATHS: usize = 6;
/// Paths with a smaller share of their place have no rows.
const MIN_PATH_SHARE: f64 = 0.01;
/// Steps of a path that are shown: the first ones, and the last ones before the event.
const SHOWN_STEPS: (usize, usize) = (2, 7);

/// Places with less have no rows.
const MIN_SHARE: f64 = 0.001;

const LEGEND: &str =
    "└ a path to the place above, with its share of the paths there; numbers are source lines (b: blocks); ▸ a call;
  … what was before differs, or the burst began there; blocks of functions that returned, and of earlier iterations,
  are left out";

impl Events<'_> {
    /// For people; with block numbers only if there are no `sources`.
    pub fn to_text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let words = Words {
            functions: &self.names,
            names,
            sources,
        };
        let mut out = String::new();
        for report in &self.reports {
            let _ = write!(out, "{}\n{}\n\n", head(report), words.table(report));
            for note in notes(report) {
                let _ = writeln!(out, "{note}");
            }
            out.push('\n');
        }
        let _ = writeln!(out, "{LEGEND}");
        without_padding(&out)
    }
}

fn count(weight: u64) -> u64 {
    (weight as f64 / EventProfile::SCALE).round() as u64
}

fn head(report: &EventReport<'_>) -> String {
    let event = report.event;
    let events = with_unit(count(event.weight), "event");
    match event.source {
        EventSource::Bursts => format!(
            "{}: {events} in {}, on sampled paths",
            event.name,
            with_unit(event.observations, "burst")
        ),
        EventSource::Kernel => {
            let about = if event.observations < count(event.weight) {
                "about "
            } else {
                ""
            };
            format!(
                "{}: {about}{events}, {} of them sampled by the kernel",
                event.name,
                grouped(event.observations)
            )
        }
        EventSource::Breakpoints => format!(
            "{}: at least {events} in blocks that no burst passed, counted by breakpoints",
            event.name
        ),
        EventSource::BranchRecords => format!("{}: {events} sampled with branch records", event.name),
    }
}

fn notes(report: &EventReport<'_>) -> Vec<String> {
    let (event, mut notes) = (report.event, Vec::new());
    if event.source == EventSource::Kernel {
        notes.push(format!(
            "{} of the events are at places that no burst passed; the paths of the others are those of bursts that passed their \
             places",
            percent(report.unmatched)
        ));
    }
    if event.left_out > 0 && event.source != EventSource::BranchRecords {
        let (from, to) = event.distances;
        let what = match event.source {
            EventSource::Kernel => "passes of the places",
            _ => "events",
        };
        notes.push(format!(
            "{} more {what} are not counted: only in the window of {from} to {to} taken branches after a burst's start are all equally likely to be seen",
            grouped(count(event.left_out))
        ));
    }
    notes
}

/// What turns numbers into words.
struct Words<'a> {
    functions: &'a FunctionNames<'a>,
    names: &'a Names,
    sources: Option<&'a SourceNames>,
}

impl Words<'_> {
    fn table(&self, report: &EventReport<'_>) -> String {
        let mut rows = table(&["share", "90 % interval", "seen", "place, and the paths there"], ..3)
            .fitting(self.names)
            .with_texts(&["place, and the paths there"]);
        let seen = |number: u64, source| match source {
            EventSource::Bursts => with_unit(number, "burst"),
            EventSource::Kernel | EventSource::BranchRecords => with_unit(number, "sample"),
            EventSource::Breakpoints => with_unit(number, "hit"),
        };
        let (mut number, mut share) = report.others;
        for row in &report.places {
            if row.share.share < MIN_SHARE {
                number += 1;
                share += row.share.share;
                continue;
            }
            rows.add_row([
                percent(row.share.share),
                percent_range(row.share.low, row.share.high),
                seen(row.place.observations, report.event.source),
                self.place(row),
            ]);
            let enough = row.paths.iter().take(MAX_PATHS);
            let count = enough.take_while(|path| path.share.share >= MIN_PATH_SHARE).count();
            for (path, text) in row.paths.iter().take(count).zip(self.paths(&row.paths)) {
                rows.add_row([
                    percent(path.share.share),
                    percent_range(path.share.low, path.share.high),
                    with_unit(path.bursts, "burst"),
                    format!("└ {text}"),
                ]);
            }
            if let Some(rest) = row.paths.get(count..).filter(|rest| !rest.is_empty()) {
                let share: f64 = rest.iter().map(|path| path.share.share).sum();
                let what = format!("└ {}", with_unit(rest.len() as u64, "other path"));
                rows.add_row([percent(share), String::new(), String::new(), what]);
            }
        }
        if number > 0 {
            let what = with_unit(number, "other place");
            rows.add_row([percent(share), String::new(), String::new(), what]);
        }
        rows.to_string()
    }

    fn place(&self, row: &PlaceRow<'_>) -> String {
        let at = match &row.place.place {
            Place::Block(step) => format!("{} {}", self.function(step), self.line(step, true)),
            Place::Code(file, symbol) if symbol.is_empty() => format!("in {file}"),
            Place::Code(file, symbol) => format!("{} in {file}", self.names.called(symbol) + "()"),
            Place::Elsewhere => "in code of no file, or before all annotated code".to_owned(),
        };
        match row.place.what.as_str() {
            "" => at,
            // Words, or the name of a function.
            what if what.contains(' ') => format!("{what}: {at}"),
            what => format!("{}: {at}", self.names.called(what)),
        }
    }

    fn function(&self, step: &Step) -> String {
        match self.functions.get(&(step.id, step.cfg_hash)) {
            Some(name) => self.names.called(name) + "()",
            None => step.id.to_string(),
        }
    }

    /// `file.c:12`, `12` or `b3`.
    fn line(&self, step: &Step, with_file: bool) -> String {
        let Some(sources) = self.sources.filter(|_| step.line > 0) else {
            return format!("b{}", step.block.0);
        };
        match sources.files.get(&(step.id, step.cfg_hash)).filter(|_| with_file) {
            Some(file) => format!("{file}:{}", step.line),
            None if with_file => format!("line {}", step.line),
            None => step.line.to_string(),
        }
    }

    /// Paths as text; those that look the same get numbers of blocks.
    fn paths(&self, rows: &[PathRow<'_>]) -> Vec<String> {
        let texts: Vec<_> = rows.iter().map(|row| self.path(row)).collect();
        let mut seen: FxHashMap<&str, u32> = FxHashMap::default();
        for text in &texts {
            *seen.entry(text).or_default() += 1;
        }
        let text = |(row, text): (&PathRow<'_>, &String)| match seen[text.as_str()] {
            1 => text.clone(),
            _ => {
                let blocks: Vec<_> = row.steps.iter().map(|step| step.block.0.to_string()).collect();
                format!("{text}  (blocks {})", blocks.join("→"))
            }
        };
        rows.iter().zip(&texts).map(text).collect()
    }

    /// `main() app.c:30 → 33 ▸ fill() 10 → 12`.
    fn path(&self, row: &PathRow<'_>) -> String {
        let mut steps: Vec<String> = Vec::new();
        let mut last: Option<(&Step, String)> = None;
        for step in &row.steps {
            let is_same = |before: &&Step| before.id == step.id && step.block.0 != 0;
            let before = last.as_ref().map(|(before, _)| *before);
            let line = self.line(step, false);
            if before.as_ref().is_some_and(is_same) {
                // Blocks that begin on the line of the block before add nothing.
                if last.as_ref().is_some_and(|(_, shown)| *shown != line) {
                    steps.push(line.clone());
                }
            } else {
                steps.push(format!("{} {}", self.function(step), self.line(step, true)));
            }
            last = Some((step, line));
        }
        let (first, last) = SHOWN_STEPS;
        if steps.len() > first + last + 1 {
            let (from, to) = (first, steps.len() - last);
            steps.splice(from..to, [format!("… {} more …", to - from)]);
        }
        let mut out = if row.cut { "… ".to_owned() } else { String::new() };
        for (at, step) in steps.iter().enumerate() {
            if at > 0 {
                out += if step.contains("() ") { " ▸ " } else { " → " };
            }
            out += step;
        }
        match out.as_str() {
            "" => "nothing before: the burst began there".to_owned(),
            "… " => "… other paths, or the burst began there".to_owned(),
            _ => out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventOptions;
    use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
    use pleach_profile::events::{EventPlace, PathNode};
    use pleach_profile::{FunctionProfile, Profile};

    fn id(name: &str) -> FunctionId {
        FunctionId {
            guid: FunctionGuid::of_name(name),
            module: ModuleHash(0),
        }
    }

    fn step(name: &str, block: u32, line: u32) -> Step {
        Step {
            id: id(name),
            cfg_hash: CfgHash(1),
            block: BlockIndex(block),
            line,
        }
    }

    fn node(step: Step, weight: u64, before: Vec<PathNode>) -> PathNode {
        PathNode {
            step,
            weight: weight * 1000,
            bursts: weight / 2,
            before,
        }
    }

    fn place(place: Place, what: &str, weight: u64, passes: u64, before: Vec<PathNode>) -> EventPlace {
        EventPlace {
            place,
            what: what.to_owned(),
            weight: weight * 1000,
            observations: weight / 2,
            passes: passes * 1000,
            bursts: passes / 2,
            squares: passes * 4000,
            before,
        }
    }

    fn profile() -> Profile {
        let functions = ["main", "parse", "_ZN3app4fillEPc"].map(|name| FunctionProfile {
            id: id(name),
            cfg_hash: CfgHash(1),
            name: name.to_owned(),
            ..FunctionProfile::default()
        });
        let main = || node(step("main", 3, 30), 60, vec![node(step("main", 0, 28), 60, Vec::new())]);
        let parse = vec![
            node(step("parse", 0, 10), 60, vec![main()]),
            node(step("parse", 2, 12), 30, Vec::new()),
        ];
        let fill = "_ZN3app4fillEPc";
        Profile {
            functions: functions.into(),
            events: vec![
                pleach_profile::events::EventProfile {
                    name: "allocations".to_owned(),
                    source: EventSource::Bursts,
                    weight: 100_000,
                    observations: 50,
                    squares: 400_000,
                    left_out: 7_000,
                    distances: (16, 499),
                    places: vec![
                        place(Place::Block(step("parse", 5, 14)), "malloc", 90, 90, parse.clone()),
                        place(Place::Block(step(fill, 1, 44)), "_Znwm", 10, 10, Vec::new()),
                    ],
                },
                pleach_profile::events::EventProfile {
                    name: "page-faults".to_owned(),
                    source: EventSource::Kernel,
                    weight: 1_000_000,
                    observations: 200,
                    squares: 5_000_000,
                    left_out: 0,
                    distances: (16, 499),
                    places: vec![
                        place(Place::Block(step(fill, 1, 44)), "", 800, 90, parse),
                        place(
                            Place::Code("libc.so.6".to_owned(), "read".to_owned()),
                            "system call",
                            199,
                            0,
                            Vec::new(),
                        ),
                        place(Place::Elsewhere, "", 1, 0, Vec::new()),
                    ],
                },
            ],
            ..Profile::default()
        }
    }

    #[test]
    fn events_and_paths_are_readable() {
        let profile = profile();
        let mut sources = SourceNames::default();
        sources.files.insert((id("main"), CfgHash(1)), "main.c".to_owned());
        sources.files.insert((id("parse"), CfgHash(1)), "parse.c".to_owned());
        let events = Events::new(&profile, &EventOptions::default()).expect("there are some");
        insta::assert_snapshot!("events", events.to_text(&Names::default(), Some(&sources)));
        insta::assert_snapshot!("events_json", events.to_json().expect("numbers"));
        let of_parse = EventOptions {
            event: Some("allocations".to_owned()),
            function: Some("parse".to_owned()),
            top: Some(1),
        };
        let events = Events::new(&profile, &of_parse).expect("there are some");
        insta::assert_snapshot!("events_of_a_function", events.to_text(&Names::default(), None));
    }

    #[test]
    fn events_that_are_not_there_are_told() {
        let error = |profile: &Profile, event: &str, function: Option<&str>| {
            let options = EventOptions {
                event: Some(event.to_owned()),
                function: function.map(str::to_owned),
                top: None,
            };
            Events::new(profile, &options).expect_err("nothing").to_string()
        };
        insta::assert_snapshot!(error(&Profile::default(), "x", None), @"the profile has no events: none occurred, or it was recorded without --event (`pleach record --event page-faults`)");
        insta::assert_snapshot!(error(&profile(), "x", None), @"the profile has no event x, but allocations, page-faults");
        assert!(error(&profile(), "allocations", Some("pars")).contains("did you mean parse?"));
    }
}
