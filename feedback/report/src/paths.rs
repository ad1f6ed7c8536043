//! The report of `pleach paths` on exact counts: [`Paths::to_json`] and [`Edges::to_json`] for scripts,
//! [`Paths::to_text`] and [`Edges::to_text`] for people.

use super::names::meant;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::counts::exact::{ExactFunction, ExactPath, ExactProfile};
use pleach_ball_larus::{End, Mode, Start};
use serde::Serialize;

/// Options of the list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathsOptions {
    /// Number of paths or edges to list, most executed first; `None` for all.
    pub top: Option<usize>,
    /// The only function to show: its linkage name or its identifier.
    pub function: Option<String>,
}

/// Why there is nothing to report.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathsError {
    /// Only edges were counted.
    #[error("edges were counted, not paths: `pleach paths --edges` shows them")]
    OnlyEdges,
    /// No such function was counted.
    #[error("no function {name} was counted{}", hint(similar))]
    UnknownFunction {
        /// The requested name.
        name: String,
        /// Names that contain it, the most executed first.
        similar: Vec<String>,
    },
}

pub(super) fn hint(similar: &[String]) -> String {
    match similar {
        [] => ": `pleach paths` without --function lists all".into(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Sums over all functions, whichever are shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Functions that were counted.
    pub functions: u64,
    /// Functions that were executed.
    pub executed_functions: u64,
    /// Number of different executed paths, or windows of paths.
    pub paths: u64,
    /// Executions of paths, or of windows.
    pub executions: u128,
    /// Blocks of the longest one.
    pub longest: u64,
    /// Number of functions whose edges were counted instead.
    pub edge_functions: u64,
}

/// Executed paths.
#[derive(Clone, Debug)]
pub struct Paths<'e> {
    /// Most executed first.
    pub rows: Vec<(&'e ExactFunction, &'e ExactPath)>,
    /// Number of paths that are not listed, of all functions.
    pub others: u64,
    /// Sums.
    pub totals: Totals,
}

impl<'e> Paths<'e> {
    /// Computes the report.
    ///
    /// # Errors
    /// Fails if the requested function is not there, or if no paths were counted.
    pub fn new(exact: &'e ExactProfile, options: &PathsOptions) -> Result<Self, PathsError> {
        let totals = totals(exact);
        if totals.functions > 0 && totals.edge_functions == totals.functions {
            return Err(PathsError::OnlyEdges);
        }
        let functions = chosen(exact, options)?;
        let rows = functions
            .into_iter()
            .flat_map(|f| f.paths.iter().map(move |path| (f, path)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|(f, a), (g, b)| {
            let order = b.count.cmp(&a.count).then_with(|| f.cfg.name.cmp(&g.cfg.name));
            order.then_with(|| a.path.cmp(&b.path))
        });
        cut(&mut rows, options.top);
        let others = totals.paths - rows.len() as u64;
        Ok(Self { rows, others, totals })
    }

    /// For scripts: an array of [`PathRow`].
    pub fn to_json(&self) -> serde_json::Result<String> {
        let rows = self.rows.iter().map(|(function, path)| PathRow::new(function, path));
        array(rows)
    }
}

/// A path for scripts. Exact counts are integers; estimates are not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PathRow<'e, N = u64> {
    /// Linkage name.
    pub function: &'e str,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Blocks in order; for a window, those of its paths one after the other.
    pub blocks: Vec<BlockIndex>,
    /// Executions.
    pub count: N,
    /// Lower end of the 90 % interval of an estimate; the count itself if it is exact.
    pub low: N,
    /// Upper end of that interval.
    pub high: N,
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
    /// The anchor of the graph.
    pub anchor: Anchor,
    /// For a window: its number of paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
}

impl<'e> PathRow<'e> {
    fn new(function: &'e ExactFunction, exact: &ExactPath) -> Self {
        let ends = exact.path.last().map_or(End::Exit, |path| path.end);
        let (end, to) = ending(ends);
        Self {
            function: &function.cfg.name,
            function_id: function.cfg.id.to_string(),
            cfg_hash: function.cfg.hash().to_string(),
            blocks: exact.path.iter().flat_map(|path| &path.blocks).copied().collect(),
            count: exact.count,
            low: exact.count,
            high: exact.count,
            start: exact.path.first().map_or(Start::Entry, |path| path.start),
            end,
            to,
            anchor: function.anchor,
            iterations: (function.window > 1).then_some(exact.path.len()),
        }
    }
}

/// How a path ends, and the target of its last edge, in the form for scripts.
pub(super) fn ending(end: End) -> (&'static str, Option<BlockIndex>) {
    match end {
        End::Exit => ("exit", None),
        End::Back(to) => ("back", Some(to)),
        End::Cut(to) => ("cut", Some(to)),
        End::Call => ("call", None),
    }
}

/// Executed edges, whether paths or edges were counted.
#[derive(Clone, Debug)]
pub struct Edges<'e> {
    /// Executed functions, by identifier.
    pub functions: Vec<&'e ExactFunction>,
    /// Limit on the number of edges in the text form.
    pub top: Option<usize>,
    /// Sums.
    pub totals: Totals,
}

impl<'e> Edges<'e> {
    /// Computes the report.
    ///
    /// # Errors
    /// Fails if the requested function is not there.
    pub fn new(exact: &'e ExactProfile, options: &PathsOptions) -> Result<Self, PathsError> {
        Ok(Self {
            functions: chosen(exact, options)?
                .into_iter()
                .filter(|f| f.is_executed())
                .collect(),
            top: options.top,
            totals: totals(exact),
        })
    }

    /// For scripts: an array of [`EdgesRow`], of all executed functions.
    pub fn to_json(&self) -> serde_json::Result<String> {
        array(self.functions.iter().map(|function| EdgesRow::new(function)))
    }
}

/// A function's edges for scripts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EdgesRow<'e> {
    /// Linkage name.
    pub function: &'e str,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Calls of the function.
    pub entries: u64,
    /// By block: how often it was entered.
    pub blocks: &'e [u64],
    /// All edges of the graph.
    pub edges: Vec<EdgeRow>,
    /// By block: how often control left the function there.
    pub exits: &'e [u64],
    /// The anchor of the graph.
    pub anchor: Anchor,
}

/// An edge for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct EdgeRow {
    /// The block it leaves.
    pub from: BlockIndex,
    /// The block it leads to.
    pub to: BlockIndex,
    /// Number of times that it was taken.
    pub count: u64,
}

impl<'e> EdgesRow<'e> {
    fn new(function: &'e ExactFunction) -> Self {
        let flow = &function.flow;
        Self {
            function: &function.cfg.name,
            function_id: function.cfg.id.to_string(),
            cfg_hash: function.cfg.hash().to_string(),
            entries: flow.entries,
            blocks: &flow.blocks,
            edges: flow
                .edges
                .iter()
                .map(|(&(from, to), &count)| EdgeRow { from, to, count })
                .collect(),
            exits: &flow.exits,
            anchor: function.anchor,
        }
    }
}

fn totals(exact: &ExactProfile) -> Totals {
    let mut totals = Totals::default();
    for function in &exact.functions {
        totals.functions += 1;
        totals.executed_functions += u64::from(function.is_executed());
        totals.edge_functions += u64::from(function.options.mode == Mode::Edges);
        totals.paths += function.paths.len() as u64;
        for ExactPath { path, count } in &function.paths {
            totals.executions += u128::from(*count);
            let blocks = path.iter().map(|path| path.blocks.len() as u64).sum();
            totals.longest = totals.longest.max(blocks);
        }
    }
    totals
}

/// The functions to show: all, or those that a name means ([`meant`]).
fn chosen<'e>(exact: &'e ExactProfile, options: &PathsOptions) -> Result<Vec<&'e ExactFunction>, PathsError> {
    let mut all: Vec<&ExactFunction> = exact.functions.iter().collect();
    let Some(name) = &options.function else { return Ok(all) };
    all.sort_by_key(|f| std::cmp::Reverse(f.flow.blocks.iter().copied().max()));
    let found = meant(all.into_iter(), |f| (&f.cfg.name, f.cfg.id.to_string()), name);
    found.map_err(|similar| PathsError::UnknownFunction {
        name: name.clone(),
        similar,
    })
}

/// Keeps the first `top` rows. Returns the number of removed rows.
pub(super) fn cut<T>(rows: &mut Vec<T>, top: Option<usize>) -> u64 {
    let hidden = rows.len().saturating_sub(top.unwrap_or(usize::MAX));
    rows.truncate(rows.len() - hidden);
    hidden as u64
}

/// A JSON array with one element a line, for `grep` and `diff`.
pub(super) fn array(rows: impl Iterator<Item = impl Serialize>) -> serde_json::Result<String> {
    let mut out = String::from("[");
    for (at, row) in rows.enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&serde_json::to_string(&row)?);
    }
    out.push_str("\n]\n");
    Ok(out)
}
