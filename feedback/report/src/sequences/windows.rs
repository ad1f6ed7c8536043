//! The report of `pleach paths --iterations`.

use super::{PathView, by_path, flow, interval_of_part};
use crate::estimated::{NoSuchFunction, chosen};
use crate::names::Names;
use crate::paths::array;
use crate::paths_text::with_unit;
use crate::source_paths::{PathContext, SourceNames, distinct};
use crate::table::table;
use crate::tables::{percent, percent_range, without_padding};
use pleach_analysis::credit::interval::Interval;
use pleach_profile::{FunctionProfile, PathWindow, Profile};
use serde::Serialize;
use std::fmt::Write;

/// Windows of a number of consecutive paths.
#[derive(Clone, PartialEq, Debug)]
pub struct Windows<'p> {
    /// Most executed first.
    pub rows: Vec<WindowRow<'p>>,
    /// Number of paths in a window.
    pub length: usize,
    /// Number of windows that are not listed, of all functions, and their executions.
    pub others: (u64, f64),
    /// Executions of paths that begin no window of the profile: the activation ends before, or the window is rare.
    pub without_window: f64,
    /// Executions of all paths.
    pub flow: f64,
}

/// A window.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowRow<'p> {
    /// Its function.
    pub function: &'p FunctionProfile,
    /// The window.
    pub window: &'p PathWindow,
    /// The interval of its executions.
    pub interval: Interval,
    /// Executions of its first path.
    pub first: f64,
}

#[derive(Serialize)]
struct WindowView<'p> {
    function: &'p str,
    function_id: String,
    cfg_hash: String,
    paths: Vec<PathView<'p>>,
    count: f32,
    low: f32,
    high: f32,
    first_count: f32,
}

impl<'p> Windows<'p> {
    /// Windows of `length` paths. `top`: number of rows.
    ///
    /// # Errors
    /// Fails if the profile does not have the function.
    pub fn new(
        profile: &'p Profile,
        length: usize,
        function: Option<&str>,
        top: Option<usize>,
    ) -> Result<Self, NoSuchFunction> {
        let windows = |f: &'p FunctionProfile| f.windows.iter().filter(move |w| w.paths.len() == length);
        let mut rows = Vec::new();
        for function in chosen(profile, function)? {
            let paths = by_path(function);
            rows.extend(windows(function).map(|window| WindowRow {
                function,
                window,
                interval: interval_of_part(&paths, &window.paths[0], window.count),
                first: paths.get(&window.paths[0]).map_or(0.0, |p| p.count),
            }));
        }
        rows.sort_by(|a, b| {
            let by_name = || (&a.function.name, &a.window.paths).cmp(&(&b.function.name, &b.window.paths));
            b.window.count.total_cmp(&a.window.count).then_with(by_name)
        });
        rows.truncate(top.unwrap_or(usize::MAX));
        let all = profile.functions.iter().flat_map(windows);
        let (number, count) = all.fold((0, 0.0), |(number, sum), window| (number + 1, sum + window.count));
        let listed: f64 = rows.iter().map(|row| row.window.count).sum();
        let flow = flow(profile, |_| true);
        Ok(Self {
            length,
            others: (number - rows.len() as u64, (count - listed).max(0.0)),
            without_window: (flow - count).max(0.0),
            flow,
            rows,
        })
    }

    /// For scripts: an array.
    pub fn to_json(&self) -> serde_json::Result<String> {
        array(self.rows.iter().map(|row| WindowView {
            function: &row.function.name,
            function_id: row.function.id.to_string(),
            cfg_hash: row.function.cfg_hash.to_string(),
            paths: row.window.paths.iter().map(PathView::from).collect(),
            count: row.window.count as f32,
            low: row.interval.low as f32,
            high: row.interval.high as f32,
            first_count: row.first as f32,
        }))
    }

    /// For people; with source lines if `sources` are given.
    pub fn to_text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let share = |count: f64| if self.flow > 0.0 { count / self.flow } else { 0.0 };
        let mut rows = table(&["share", "90 % interval", "given the first", "function", "paths"], ..3)
            .fitting(names)
            .with_texts(&["paths"]);
        let paths = self.rows.iter().map(|row| {
            let paths = row.window.paths.iter().collect();
            (PathContext::from_profile(row.function), paths)
        });
        let (paths, legend) = distinct(paths, sources, names);
        for (row, paths) in self.rows.iter().zip(paths) {
            let after = match row.first > 0.0 {
                true => percent((row.window.count / row.first).min(1.0)),
                false => String::new(),
            };
            let Interval { low, high, .. } = row.interval;
            rows.add_row([
                percent(share(row.window.count)),
                percent_range(share(low), share(high).min(1.0)),
                after,
                names.shown(&row.function.name),
                paths,
            ]);
        }
        let (number, count) = self.others;
        let rest = [
            (number > 0, count, with_unit(number, "other window")),
            (
                self.without_window > 0.0,
                self.without_window,
                "last paths of an activation, and first paths of rare windows".to_owned(),
            ),
        ];
        for (_, count, what) in rest.into_iter().filter(|(is_shown, _, _)| *is_shown) {
            let blank = String::new;
            rows.add_row([percent(share(count)), blank(), blank(), blank(), what]);
        }
        let mut out = format!("{rows}\n\n{legend}\n");
        let _ = writeln!(
            out,
            "{} consecutive paths of an activation; “given the first”: how often the first of them is followed by the \
             others",
            self.length
        );
        without_padding(&out)
    }
}
