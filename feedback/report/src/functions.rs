//! The report of `pleach report`: the functions with the most executions, and the hottest path of each.

use super::compare::JSON_VERSION;
use super::estimated::{NoSuchFunction, chosen};
use super::names::Names;
use super::paths::{cut, ending};
use super::paths_text::with_unit;
use super::show::Graphs;
use super::source_paths::{PathContext, SourceNames, distinct};
use super::table::table;
use super::tables::{grouped, percent, percent_range, without_padding};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Start;
use pleach_profile::{Covered, FunctionProfile, Profile};
use serde::Serialize;
use std::fmt::Write;

/// Options of the report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReportOptions {
    /// Number of functions to list; `None` for all.
    pub top: Option<usize>,
    /// Functions with a smaller share than this are not listed, 0…1.
    pub least: f64,
    /// The only function to report: its linkage name or its identifier.
    pub function: Option<String>,
}

/// Functions by share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report<'p> {
    /// The version of the JSON form.
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Executions of all blocks of all functions.
    pub block_executions: u64,
    /// Executions of all paths of all functions.
    pub path_executions: f64,
    /// Functions by descending share: of instructions if graphs are known, else of blocks.
    pub functions: Vec<FunctionRow<'p>>,
    /// Number of executed functions that are not listed.
    pub hidden: u64,
    /// Whether counts are executions. Otherwise, only their shares have a meaning.
    pub is_exact: bool,
}

/// A function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionRow<'p> {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the counts are of.
    pub cfg_hash: String,
    /// Share of the executions of all blocks.
    pub block_share: f64,
    /// Share of the executions of all IR instructions of functions whose graphs are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_share: Option<f64>,
    /// Executions of its entry, in the profile's counts.
    pub calls: u64,
    /// Their share of the calls of all functions.
    pub call_share: f64,
    /// Number of blocks that are proved to have been executed, and of all blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered_blocks: Option<[u64; 2]>,
    /// Number of blocks that are proved not to have been executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_executed_blocks: Option<u64>,
    /// Number of paths with samples.
    pub paths: u64,
    /// The most executed path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hottest: Option<HottestPath>,
    #[serde(skip)]
    profile: &'p FunctionProfile,
}

/// A function's hottest path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HottestPath {
    /// Its share of the executions of the function's paths.
    pub share: f64,
    /// The 90 % interval of that.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// Blocks in order.
    pub blocks: Vec<BlockIndex>,
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
}

impl<'p> Report<'p> {
    /// Computes the report. `graphs` has the numbers of instructions of blocks.
    ///
    /// # Errors
    /// Fails if the profile does not have the requested function.
    pub fn new(profile: &'p Profile, options: &ReportOptions, graphs: &Graphs<'_>) -> Result<Self, NoSuchFunction> {
        let blocks = |f: &FunctionProfile| f.blocks.iter().map(|&c| c as f64).sum::<f64>();
        let all_blocks: f64 = profile.functions.iter().map(blocks).sum();
        let all_instructions: f64 = profile.functions.iter().filter_map(|f| instructions(f, graphs)).sum();
        let calls = |f: &FunctionProfile| f.blocks.first().copied().unwrap_or(0);
        let all_calls: f64 = profile.functions.iter().map(|f| calls(f) as f64).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let executed = chosen(profile, options.function.as_deref())?
            .into_iter()
            .filter(|f| f.blocks.iter().any(|&c| c > 0));
        let mut functions: Vec<_> = executed
            .map(|f| FunctionRow {
                function: f.name.clone(),
                function_id: f.id.to_string(),
                cfg_hash: f.cfg_hash.to_string(),
                block_share: share(blocks(f), all_blocks),
                instruction_share: instructions(f, graphs).map(|i| share(i, all_instructions)),
                calls: calls(f),
                call_share: share(calls(f) as f64, all_calls),
                covered_blocks: covered(f),
                not_executed_blocks: not_executed(f),
                paths: f.paths.len() as u64,
                hottest: HottestPath::from_function(f),
                profile: f,
            })
            .collect();
        let shown = |f: &FunctionRow| f.instruction_share.unwrap_or(f.block_share);
        functions.sort_by(|a, b| {
            let by_name = || (&a.function, &a.cfg_hash).cmp(&(&b.function, &b.cfg_hash));
            shown(b).total_cmp(&shown(a)).then_with(by_name)
        });
        let executed = functions.len();
        functions.retain(|f| shown(f) >= options.least);
        cut(&mut functions, options.top);
        Ok(Self {
            version: JSON_VERSION,
            anchor: profile.anchor,
            block_executions: profile
                .functions
                .iter()
                .flat_map(|f| &f.blocks)
                .fold(0, |sum, &c| sum.saturating_add(c)),
            path_executions: profile.path_flow(),
            hidden: (executed - functions.len()) as u64,
            is_exact: profile.provenance.is_exact(),
            functions,
        })
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
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
        let mut out = String::new();
        let has_instructions = self.functions.iter().any(|f| f.instruction_share.is_some());
        let mut header = vec![
            "block share",
            if self.is_exact { "calls" } else { "call share" },
            "function",
            "path's share",
            "90 % interval",
            "hottest path",
        ];
        if has_instructions {
            header.insert(0, "instructions");
        }
        let mut rows = table(&header, ..header.len() - 1)
            .fitting(names)
            .with_names(&["function"])
            .with_texts(&["hottest path"]);
        let name = header.len() - 4;
        let hottest = self.functions.iter().map(|f| {
            let paths = f.hottest.iter().zip(&f.profile.paths).map(|(_, hottest)| &hottest.path);
            (PathContext::from_profile(f.profile), paths.collect())
        });
        let (paths, legend) = distinct(hottest, sources, names);
        for (f, path) in self.functions.iter().zip(paths) {
            let calls = match self.is_exact {
                true => grouped(f.calls),
                false => percent(f.call_share),
            };
            let mut row = vec![percent(f.block_share), calls, names.shown(&f.function)];
            if has_instructions {
                row.insert(0, f.instruction_share.map_or_else(String::new, percent));
            }
            row.extend(match &f.hottest {
                Some(hot) => [percent(hot.share), percent_range(hot.low, hot.high), path],
                None => [const { String::new() }; 3],
            });
            rows.add_row(row);
        }
        if self.hidden > 0 {
            let mut row = vec![String::new(); header.len()];
            let others = |share: fn(&FunctionRow<'_>) -> f64| {
                percent((1.0 - self.functions.iter().map(share).sum::<f64>()).max(0.0))
            };
            row[0] = others(|f| f.instruction_share.unwrap_or(f.block_share));
            row[name - 2] = others(|f| f.block_share);
            row[name] = with_unit(self.hidden, "other function");
            rows.add_row(row);
        }
        if !self.functions.is_empty() {
            let _ = writeln!(out, "{rows}");
            let _ = writeln!(out, "\n{legend}");
        }
        let shown = self.functions.len() as u64 + self.hidden;
        // `coverage` counts the functions that were executed: breakpoints show more of them than bursts.
        let known = match self.is_exact {
            true => format!(
                "executed, {} block executions, {} path executions",
                grouped(self.block_executions),
                grouped(self.path_executions.round())
            ),
            false => "sampled".to_owned(),
        };
        let _ = writeln!(
            out,
            "{} {known}; “block share”: of the executions of all blocks{}",
            with_unit(shown, "function"),
            if self.is_exact {
                ""
            } else {
                "; “call share”: of the calls of all functions"
            },
        );
        without_padding(&out)
    }
}

/// Executed IR instructions.
fn instructions(function: &FunctionProfile, graphs: &Graphs<'_>) -> Option<f64> {
    let cfg = graphs(function.id, function.cfg_hash)?;
    let blocks = cfg.blocks.iter().zip(&function.blocks);
    Some(
        blocks
            .map(|(block, &count)| f64::from(block.instructions) * count as f64)
            .sum(),
    )
}

fn covered(function: &FunctionProfile) -> Option<[u64; 2]> {
    let states = &function.coverage;
    let proved = states.iter().filter(|&&state| state >= Covered::ByDominance);
    (!states.is_empty()).then(|| [proved.count() as u64, states.len() as u64])
}

fn not_executed(function: &FunctionProfile) -> Option<u64> {
    let states = &function.coverage;
    let proved = states.iter().filter(|&&state| state == Covered::NotExecuted);
    (!states.is_empty()).then(|| proved.count() as u64)
}

impl HottestPath {
    fn from_function(function: &FunctionProfile) -> Option<Self> {
        let hottest = function.paths.first().filter(|p| p.count > 0.0)?;
        let all: f64 = function.paths.iter().map(|p| p.count).sum();
        let (end, to) = ending(hottest.path.end);
        Some(Self {
            share: hottest.count / all,
            low: hottest.low / all,
            high: (hottest.high / all).min(1.0),
            blocks: hottest.path.blocks.clone(),
            start: hottest.path.start,
            end,
            to,
        })
    }
}
