//! The report of `pleach paths --across-calls`.

use super::{PathView, by_path, flow, interval_of_part};
use crate::estimated::{NoSuchFunction, chosen};
use crate::names::Names;
use crate::paths::array;
use crate::paths_text::with_unit;
use crate::source_paths::{PathContext, SourceNames, distinct};
use crate::table::table;
use crate::tables::{percent, percent_range, without_padding};
use pleach_analysis::credit::interval::Interval;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::Start;
use pleach_profile::{CallCrossingPath, Caller, FunctionProfile, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fmt::Write;

/// Paths from functions' entries by the paths that their callers executed before.
#[derive(Clone, PartialEq, Debug)]
pub struct CallCrossingPaths<'p> {
    /// Most executed first.
    pub rows: Vec<CalledRow<'p>>,
    /// Number of called paths that are not listed, of all functions, and their executions.
    pub others: (u64, f64),
    /// Executions of paths from functions' entries of which the caller's path is unknown or rare.
    pub unknown: f64,
    /// Executions of all paths from functions' entries.
    pub flow: f64,
}

/// A call-crossing path.
#[derive(Clone, PartialEq, Debug)]
pub struct CalledRow<'p> {
    /// The called function.
    pub function: &'p FunctionProfile,
    /// The path and its caller's.
    pub called: &'p CallCrossingPath,
    /// The interval of its executions.
    pub interval: Interval,
    /// The calling function, if the profile has it.
    pub caller: Option<&'p FunctionProfile>,
    /// Executions of all paths of the function after that path of the caller.
    pub after_caller: f64,
}

#[derive(Serialize)]
struct CalledView<'p> {
    function: &'p str,
    function_id: String,
    cfg_hash: String,
    caller: Option<&'p str>,
    caller_id: String,
    caller_cfg_hash: String,
    caller_blocks: &'p [BlockIndex],
    path: PathView<'p>,
    count: f32,
    low: f32,
    high: f32,
    after_caller_count: f32,
}

impl<'p> CallCrossingPaths<'p> {
    /// Called paths of a profile. `top`: number of rows.
    ///
    /// # Errors
    /// Fails if the profile does not have the function.
    pub fn new(profile: &'p Profile, function: Option<&str>, top: Option<usize>) -> Result<Self, NoSuchFunction> {
        let functions: FxHashMap<(FunctionId, CfgHash), &FunctionProfile> =
            profile.functions.iter().map(|f| ((f.id, f.cfg_hash), f)).collect();
        let mut rows = Vec::new();
        for function in chosen(profile, function)? {
            let mut after: FxHashMap<&Caller, f64> = FxHashMap::default();
            for called in &function.called {
                *after.entry(&called.caller).or_default() += called.count;
            }
            let paths = by_path(function);
            rows.extend(function.called.iter().map(|called| CalledRow {
                function,
                called,
                interval: interval_of_part(&paths, &called.path, called.count),
                caller: functions.get(&(called.caller.id, called.caller.cfg_hash)).copied(),
                after_caller: after[&called.caller],
            }));
        }
        rows.sort_by(|a, b| {
            let key = |row: &CalledRow<'p>| (&row.function.name, &row.called.caller, &row.called.path);
            let by_count = b.called.count.total_cmp(&a.called.count);
            by_count.then_with(|| key(a).cmp(&key(b)))
        });
        rows.truncate(top.unwrap_or(usize::MAX));
        let all = profile.functions.iter().flat_map(|f| &f.called);
        let (number, count) = all.fold((0, 0.0), |(number, sum), called| (number + 1, sum + called.count));
        let listed: f64 = rows.iter().map(|row| row.called.count).sum();
        // The two estimates differ by what ends of bursts cut off.
        let flow = flow(profile, |path| path.start == Start::Entry).max(count);
        Ok(Self {
            others: (number - rows.len() as u64, (count - listed).max(0.0)),
            unknown: flow - count,
            flow,
            rows,
        })
    }

    /// For scripts: an array.
    pub fn to_json(&self) -> serde_json::Result<String> {
        array(self.rows.iter().map(|row| CalledView {
            function: &row.function.name,
            function_id: row.function.id.to_string(),
            cfg_hash: row.function.cfg_hash.to_string(),
            caller: row.caller.map(|caller| caller.name.as_str()),
            caller_id: row.called.caller.id.to_string(),
            caller_cfg_hash: row.called.caller.cfg_hash.to_string(),
            caller_blocks: &row.called.caller.before,
            path: PathView::from(&row.called.path),
            count: row.called.count as f32,
            low: row.interval.low as f32,
            high: row.interval.high as f32,
            after_caller_count: row.after_caller as f32,
        }))
    }

    /// For people; with source lines if `sources` are given.
    pub fn to_text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let share = |count: f64| if self.flow > 0.0 { count / self.flow } else { 0.0 };
        let header = [
            "share",
            "90 % interval",
            "after caller",
            "caller",
            "its last blocks",
            "function",
            "path",
        ];
        let mut rows = table(&header, ..3)
            .fitting(names)
            .with_texts(&["its last blocks", "path"]);
        let paths = self.rows.iter().map(|row| {
            let context = PathContext::from_profile(row.function);
            (context, vec![&row.called.path])
        });
        let (paths, legend) = distinct(paths, sources, names);
        for (row, path) in self.rows.iter().zip(paths) {
            rows.add_row([
                percent(share(row.called.count)),
                percent_range(share(row.interval.low), share(row.interval.high).min(1.0)),
                percent(row.called.count / row.after_caller.max(f64::MIN_POSITIVE)),
                caller_name(row, names),
                caller_blocks(row, names, sources),
                names.shown(&row.function.name),
                path,
            ]);
        }
        let (number, count) = self.others;
        let rest = [
            (number > 0, count, with_unit(number, "other called path")),
            (
                self.unknown > 0.0,
                self.unknown,
                "calls whose caller's path is unknown or rare".to_owned(),
            ),
        ];
        for (_, count, what) in rest.into_iter().filter(|(is_shown, _, _)| *is_shown) {
            let blank = String::new;
            rows.add_row([percent(share(count)), blank(), blank(), blank(), blank(), blank(), what]);
        }
        let mut out = format!("{rows}\n\n{legend}\n");
        let _ = writeln!(
            out,
            "shares are of the paths that begin at functions' entries; “after caller”: how often this path follows \
             those blocks of the caller"
        );
        without_padding(&out)
    }
}

fn caller_name(row: &CalledRow<'_>, names: &Names) -> String {
    row.caller
        .map_or_else(|| row.called.caller.id.to_string(), |caller| names.shown(&caller.name))
}

fn caller_blocks(row: &CalledRow<'_>, names: &Names, sources: Option<&SourceNames>) -> String {
    let before = &row.called.caller.before;
    let lines = || sources?.blocks(&PathContext::from_profile(row.caller?)?, before, names);
    lines().unwrap_or_else(|| {
        let blocks: Vec<_> = before.iter().map(|block| block.0.to_string()).collect();
        blocks.join("→")
    })
}
