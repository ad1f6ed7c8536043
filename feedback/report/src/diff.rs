//! The report of `pleach diff`: paths and functions whose share of the flow changed by a statistically significant
//! amount.
//!
//! Shares refer to the flow of all paths of the program, so recordings of different lengths are comparable. A change
//! counts if the two 90 % intervals are disjoint. Two estimates of the same share are disjoint in about 2 % of cases.
//! If only one side lists a path, its interval on the other side goes from 0 to the share that the recording may have
//! missed.

use super::compare::{DifferentAnchors, JSON_VERSION, one_anchor};
use super::flows::{Flows, FunctionFlow, FunctionKey, Interval, changed_functions};
use super::names::Names;
use super::paths::{cut, ending};
use super::paths_text::with_unit;
use super::source_paths::{Graphs, SourceNames, distinct};
use super::table::table;
use super::tables::{grouped, percent, percent_range, without_padding};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::{Path, Start};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A share of the flow with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// The share.
    pub share: f64,
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

/// Significant changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diff {
    /// The version of the JSON form.
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Functions whose share changed, by descending change.
    pub functions: Vec<FunctionChange>,
    /// Paths whose share changed, by descending change.
    pub paths: Vec<PathChange>,
    /// Numbers of functions and paths that changed but are not listed.
    pub hidden: [u64; 2],
    /// Numbers of functions and paths that either side executed.
    pub compared: [u64; 2],
    /// Number of functions with different graphs in the two: all of their paths count as removed or new.
    pub changed_functions: u64,
}

/// A function whose share changed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionChange {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the counts are of.
    pub cfg_hash: String,
    /// Its share in the first.
    pub before: Share,
    /// Its share in the second.
    pub after: Share,
    /// After − before.
    pub change: f64,
}

/// A path whose share changed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathChange {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Blocks in order.
    pub blocks: Vec<BlockIndex>,
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
    /// Its share in the first.
    pub before: Share,
    /// Its share in the second.
    pub after: Share,
    /// After − before.
    pub change: f64,
    #[serde(skip)]
    key: FunctionKey,
    #[serde(skip)]
    path: Path,
}

impl Diff {
    /// Compares two profiles. Lists at most `top` functions and as many paths.
    ///
    /// # Errors
    /// Fails if the anchors differ.
    pub fn new(first: &Flows, second: &Flows, top: Option<usize>) -> Result<Self, DifferentAnchors> {
        let anchor = one_anchor(first.anchor, second.anchor)?;
        let sides = [first, second].map(|flows| Side {
            total: flows.path_flow(),
            unseen: flows.unseen_share(),
        });
        let keys: BTreeSet<&FunctionKey> = first.functions.keys().chain(second.functions.keys()).collect();
        let (mut functions, mut paths, mut compared) = (Vec::new(), Vec::new(), [0; 2]);
        let none = FunctionFlow::default();
        for key in keys {
            let [a, b] = [first, second].map(|flows| flows.functions.get(key).unwrap_or(&none));
            let all: BTreeSet<&Path> = a.paths.keys().chain(b.paths.keys()).collect();
            if all.is_empty() {
                continue;
            }
            compared[0] += 1;
            compared[1] += all.len() as u64;
            let flow = |f: &FunctionFlow| (!f.paths.is_empty()).then(|| f.flow());
            let name = if a.name.is_empty() { &b.name } else { &a.name };
            let (function_id, cfg_hash) = (key.0.to_string(), key.1.to_string());
            if let Some((before, after)) = changed(sides[0].share(flow(a)), sides[1].share(flow(b))) {
                functions.push(FunctionChange {
                    function: name.clone(),
                    function_id: function_id.clone(),
                    cfg_hash: cfg_hash.clone(),
                    before,
                    after,
                    change: after.share - before.share,
                });
            }
            for path in all {
                let [before, after] = [(0, a), (1, b)].map(|(at, f)| sides[at].share(f.paths.get(path).copied()));
                let Some((before, after)) = changed(before, after) else {
                    continue;
                };
                let (end, to) = ending(path.end);
                paths.push(PathChange {
                    function: name.clone(),
                    function_id: function_id.clone(),
                    cfg_hash: cfg_hash.clone(),
                    blocks: path.blocks.clone(),
                    start: path.start,
                    end,
                    to,
                    before,
                    after,
                    change: after.share - before.share,
                    key: *key,
                    path: path.clone(),
                });
            }
        }
        // Stable: what changed by as much stays in the order of functions and paths.
        functions.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        paths.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        let hidden = [cut(&mut functions, top), cut(&mut paths, top)];
        Ok(Self {
            version: JSON_VERSION,
            anchor,
            functions,
            paths,
            hidden,
            compared,
            changed_functions: changed_functions(first, second),
        })
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        self.text(names, None)
    }

    /// For people, with source lines where the graphs have them.
    pub fn to_source_text(&self, names: &Names, sources: &SourceNames, graphs: &Graphs<'_>) -> String {
        self.text(names, Some((sources, graphs)))
    }

    fn text(&self, names: &Names, sources: Option<(&SourceNames, &Graphs<'_>)>) -> String {
        let mut out = String::new();
        let header = [
            "change",
            "before",
            "90 % interval",
            "after",
            "90 % interval",
            "function",
        ];
        if !self.functions.is_empty() {
            let mut rows = table(&header, ..5).fitting(names);
            for f in &self.functions {
                let [change, before, ib, after, ia] = cells(f.change, f.before, f.after);
                rows.add_row([change, before, ib, after, ia, names.shown(&f.function)]);
            }
            let _ = writeln!(out, "{rows}");
            more(self.hidden[0], &mut out);
            let _ = writeln!(out);
        }
        if !self.paths.is_empty() {
            let mut rows = table(&[&header[..], &["path"]].concat(), ..5)
                .fitting(names)
                .with_texts(&["path"]);
            let paths = self.paths.iter().map(|p| {
                let context = sources.and_then(|(_, graphs)| graphs.get(&p.key));
                (context, vec![&p.path])
            });
            let (shown, legend) = distinct(paths, sources.map(|(sources, _)| sources), names);
            for (p, path) in self.paths.iter().zip(shown) {
                let [change, before, ib, after, ia] = cells(p.change, p.before, p.after);
                rows.add_row([change, before, ib, after, ia, names.shown(&p.function), path]);
            }
            let _ = writeln!(out, "{rows}");
            more(self.hidden[1], &mut out);
            let _ = writeln!(out, "\n{legend}");
        }
        let listed = |rows: usize, hidden: u64| grouped(rows as u64 + hidden);
        let _ = writeln!(
            out,
            "{} of {} and {} of {} changed their share of the executions by more than both intervals",
            listed(self.functions.len(), self.hidden[0]),
            with_unit(self.compared[0], "function"),
            listed(self.paths.len(), self.hidden[1]),
            with_unit(self.compared[1], "path"),
        );
        if self.changed_functions > 0 {
            let functions = with_unit(self.changed_functions, "function");
            let _ = writeln!(
                out,
                "{functions} with other control flow in each: the two are of different builds"
            );
        }
        without_padding(&out)
    }
}

fn more(hidden: u64, out: &mut String) {
    if hidden > 0 {
        let _ = writeln!(out, "and {} more", grouped(hidden));
    }
}

fn cells(change: f64, before: Share, after: Share) -> [String; 5] {
    [
        format!("{:+.2} %", change * 100.0),
        percent(before.share),
        percent_range(before.low, before.high),
        percent(after.share),
        percent_range(after.low, after.high),
    ]
}

/// The whole that shares of one side refer to.
struct Side {
    total: f64,
    unseen: f64,
}

impl Side {
    /// The share of this many executions, or of something without samples.
    fn share(&self, interval: Option<Interval>) -> Share {
        let Some(Interval { count, low, high }) = interval else {
            return Share {
                share: 0.0,
                low: 0.0,
                high: self.unseen,
            };
        };
        // If nothing was executed, no path has a share.
        let total = if self.total > 0.0 { self.total } else { f64::INFINITY };
        Share {
            share: count / total,
            low: low / total,
            high: (high / total).min(1.0),
        }
    }
}

/// Changes of an estimated share that are not shown, because they round to nothing.
const NOTHING: f64 = 5e-5;

/// Both shares, if their intervals are disjoint, and the change is more than nothing, or between exact counts.
fn changed(before: Share, after: Share) -> Option<(Share, Share)> {
    let is_certain = before.high < after.low || after.high < before.low;
    let are_exact = before.low == before.high && after.low == after.high;
    let is_change = are_exact || (after.share - before.share).abs() >= NOTHING;
    (is_certain && is_change).then_some((before, after))
}
