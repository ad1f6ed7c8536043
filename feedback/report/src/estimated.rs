//! The report of `pleach paths` on estimated paths: [`EstimatedPaths::to_json`] for scripts,
//! [`EstimatedPaths::to_text`] for people.

use super::names::{Names, meant};
use super::paths::{PathRow, PathsOptions, array, cut, ending, hint};
use super::paths_text::with_unit;
use super::source_paths::{PathContext, SourceNames, distinct};
use super::table::table;
use super::tables::{grouped, percent, percent_range, without_padding};
use pleach_annotate::manifest::Anchor;
use pleach_profile::path_profile::HOT_SHARE;
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use std::fmt::Write;

/// The profile does not have a function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the profile has no function {name}{}", hint(similar))]
pub struct NoSuchFunction {
    /// The requested name.
    pub name: String,
    /// Names that contain it, the most executed first.
    pub similar: Vec<String>,
}

/// Sums over all functions, whichever are shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EstimatedTotals {
    /// Functions of the profile.
    pub functions: u64,
    /// Functions with paths.
    pub seen_functions: u64,
    /// Paths with samples.
    pub paths: u64,
    /// Executions of all of them.
    pub flow: f64,
    /// Number of hot paths: those with at least [`HOT_SHARE`] of the flow.
    pub hot: u64,
    /// Executions of hot paths.
    pub hot_flow: f64,
    /// Blocks of the longest path.
    pub longest: u64,
    /// Functions with executions but without paths: no burst shows a path of theirs as a whole.
    pub without_paths: u64,
}

/// Estimated paths of a profile.
#[derive(Clone, Debug)]
pub struct EstimatedPaths<'p> {
    /// Most executed first.
    pub rows: Vec<(&'p FunctionProfile, &'p EstimatedPath)>,
    /// Number of paths that are not listed, of all functions.
    pub others: u64,
    /// Sums.
    pub totals: EstimatedTotals,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Whether counts are executions. Otherwise, only their shares have a meaning.
    pub is_exact: bool,
}

impl<'p> EstimatedPaths<'p> {
    /// Computes the report.
    ///
    /// # Errors
    /// Fails if the profile does not have the requested function.
    pub fn new(profile: &'p Profile, options: &PathsOptions) -> Result<Self, NoSuchFunction> {
        let functions = chosen(profile, options.function.as_deref())?;
        let rows = functions
            .into_iter()
            .flat_map(|f| f.paths.iter().map(move |path| (f, path)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|(f, a), (g, b)| {
            let order = b.count.total_cmp(&a.count).then_with(|| f.name.cmp(&g.name));
            order.then_with(|| a.path.cmp(&b.path))
        });
        cut(&mut rows, options.top);
        let totals = totals(profile);
        Ok(Self {
            others: totals.paths - rows.len() as u64,
            rows,
            totals,
            anchor: profile.anchor,
            is_exact: profile.provenance.is_exact(),
        })
    }

    /// For scripts: an array of [`PathRow`]s as for exact counts. Counts have the profile's precision of 24 bits.
    pub fn to_json(&self) -> serde_json::Result<String> {
        array(self.rows.iter().map(|(function, estimated)| {
            let (end, to) = ending(estimated.path.end);
            PathRow {
                function: &function.name,
                function_id: function.id.to_string(),
                cfg_hash: function.cfg_hash.to_string(),
                blocks: estimated.path.blocks.clone(),
                count: estimated.count as f32,
                low: estimated.low as f32,
                high: estimated.high as f32,
                start: estimated.path.start,
                end,
                to,
                anchor: self.anchor,
                iterations: None,
            }
        }))
    }

    /// For people, with block numbers.
    pub fn to_text(&self, names: &Names) -> String {
        self.text(names, None)
    }

    /// For people, with source lines where the profile has them.
    pub fn to_source_text(&self, names: &Names, sources: &SourceNames) -> String {
        self.text(names, Some(sources))
    }

    fn text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let totals = &self.totals;
        let mut out = String::new();
        if !self.rows.is_empty() {
            let mut header = vec!["share", "90 % interval", "cumulative", "function", "path"];
            if self.is_exact {
                header.insert(3, "count");
            }
            let mut rows = table(&header, ..header.len() - 2).fitting(names).with_texts(&["path"]);
            let mut add = |mut row: Vec<String>, count: f64| {
                if self.is_exact {
                    row.insert(3, grouped(count.round()));
                }
                rows.add_row(row);
            };
            let share = |count: f64| count / totals.flow;
            let mut so_far = 0.0;
            let paths = self
                .rows
                .iter()
                .map(|(f, p)| (PathContext::from_profile(f), vec![&p.path]));
            let (paths, legend) = distinct(paths, sources, names);
            for ((function, estimated), path) in self.rows.iter().zip(paths) {
                so_far += estimated.count;
                let row = vec![
                    percent(share(estimated.count)),
                    percent_range(share(estimated.low), share(estimated.high).min(1.0)),
                    percent(share(so_far)),
                    names.shown(&function.name),
                    path,
                ];
                add(row, estimated.count);
            }
            if self.others > 0 {
                let count = (totals.flow - so_far).max(0.0);
                let row = vec![
                    percent(share(count)),
                    String::new(),
                    percent(share(so_far + count)),
                    String::new(),
                    with_unit(self.others, "other path"),
                ];
                add(row, count);
            }
            let _ = writeln!(out, "{rows}");
            let _ = writeln!(out, "\n{legend}");
        }
        let _ = writeln!(
            out,
            "{} of {} seen on a path, {}{}, the longest of {}",
            grouped(totals.seen_functions),
            with_unit(totals.functions, "function"),
            with_unit(totals.paths, "path"),
            match self.is_exact {
                true => format!(", {}", with_unit(totals.flow.round() as u64, "execution")),
                false => String::new(),
            },
            with_unit(totals.longest, "block"),
        );
        if totals.flow > 0.0 {
            let hot = percent(totals.hot_flow / totals.flow);
            let _ = writeln!(
                out,
                "hot paths (at least {} % of all executions): {}, together {hot}",
                HOT_SHARE * 100.0,
                grouped(totals.hot)
            );
        }
        if totals.without_paths > 0 {
            let functions = with_unit(totals.without_paths, "function");
            let _ = writeln!(out, "{functions} sampled without a path: not part of these shares");
        }
        without_padding(&out)
    }
}

fn totals(profile: &Profile) -> EstimatedTotals {
    let paths = || profile.functions.iter().flat_map(|f| &f.paths);
    let flow = paths().fold(0.0, |sum, p| sum + p.count);
    let hot = || paths().filter(|p| p.count > 0.0 && p.count >= flow * HOT_SHARE);
    EstimatedTotals {
        functions: profile.functions.len() as u64,
        seen_functions: profile.functions.iter().filter(|f| !f.paths.is_empty()).count() as u64,
        paths: paths().count() as u64,
        flow,
        hot: hot().count() as u64,
        hot_flow: hot().fold(0.0, |sum, p| sum + p.count),
        longest: paths().map(|p| p.path.blocks.len() as u64).max().unwrap_or(0),
        without_paths: profile
            .functions
            .iter()
            .filter(|f| f.samples > 0 && f.paths.is_empty())
            .count() as u64,
    }
}

/// The functions to show: all, or those that a name means ([`meant`]).
pub(super) fn chosen<'p>(profile: &'p Profile, name: Option<&str>) -> Result<Vec<&'p FunctionProfile>, NoSuchFunction> {
    let all = profile.functions.iter();
    let Some(name) = name else { return Ok(all.collect()) };
    let mut by_count: Vec<&FunctionProfile> = all.collect();
    by_count.sort_by_key(|f| std::cmp::Reverse(f.blocks.iter().copied().max()));
    meant(by_count.into_iter(), |f| (&f.name, f.id.to_string()), name).map_err(|similar| NoSuchFunction {
        name: name.into(),
        similar,
    })
}
