//! The report of `pleach paths` on estimated paths: [`EstimatedPaths::to_json`] for scripts,
//! [`EstimatedPaths::to_text`] for people.

use super::names::{Names, meant};
use super::paths::{PathRow, PathsOptions, array, cut, ending, hint};
use super::paths_text::{LEGEND, path, with_unit};
use super::tables::{grouped, percent, percent_range, table, without_padding};
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
}

/// Estimated paths of a profile.
#[derive(Clone, Debug)]
pub struct EstimatedPaths<'p> {
    /// Most executed first.
    pub rows: Vec<(&'p FunctionProfile, &'p EstimatedPath)>,
    /// Number of paths that are not listed.
    pub hidden: u64,
    /// Sums.
    pub totals: EstimatedTotals,
    /// The anchor of the graphs.
    pub anchor: Anchor,
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
        let hidden = cut(&mut rows, options.top);
        Ok(Self {
            rows,
            hidden,
            totals: totals(profile),
            anchor: profile.anchor,
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

    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        let totals = &self.totals;
        let mut out = String::new();
        if !self.rows.is_empty() {
            let header = ["share", "90 % interval", "so far", "count", "function", "path"];
            let mut rows = table(&header, ..4);
            let share = |count: f64| count / totals.flow;
            let mut so_far = 0.0;
            for (function, estimated) in &self.rows {
                so_far += estimated.count;
                rows.add_row([
                    percent(share(estimated.count)),
                    percent_range(share(estimated.low), share(estimated.high).min(1.0)),
                    percent(share(so_far)),
                    grouped(estimated.count.round()),
                    names.shown(&function.name),
                    path(&estimated.path),
                ]);
            }
            let _ = writeln!(out, "{rows}");
            if self.hidden > 0 {
                let _ = writeln!(out, "and {} more", grouped(self.hidden));
            }
            let _ = writeln!(out, "\n{LEGEND}");
        }
        let _ = writeln!(
            out,
            "{} of {} seen on a path, {}, {} estimated executions, the longest of {}",
            grouped(totals.seen_functions),
            with_unit(totals.functions, "function"),
            with_unit(totals.paths, "path"),
            grouped(totals.flow.round()),
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
