//! The text form of `pleach show`.

use super::names::Names;
use super::show::{FunctionDetail, Show};
use super::tables::{grouped, percent, table, without_padding};
use std::fmt::Write;

/// The cutoffs in the overview. The JSON form has all of them.
const SHOWN_CUTOFFS: [u32; 4] = [500_000, 900_000, 990_000, 999_999];

impl Show {
    /// For people: the details if a function was requested, else the overview.
    pub fn to_text(&self, names: &Names) -> String {
        let mut out = String::new();
        if self.details.is_empty() {
            overview(self, names, &mut out);
        }
        for detail in &self.details {
            function(detail, names, &mut out);
        }
        without_padding(&out)
    }
}

fn overview(show: &Show, names: &Names, out: &mut String) {
    let (p, t) = (&show.provenance, &show.totals);
    let rows = [
        ("commands", p.commands.join("\n")),
        ("engines", p.engines.join(", ")),
        ("anchor", show.anchor.to_owned()),
        ("program CPU time", format!("{:.2} s", p.program_cpu_seconds)),
        (
            "sampler CPU time",
            format!("{:.3} s{}", p.own_cpu_seconds, overhead(show)),
        ),
        ("bursts", grouped(p.bursts)),
        ("taken branches", grouped(p.taken_branches)),
        ("sampled block entries", grouped(t.samples)),
        (
            "functions",
            format!("{} sampled of {}", grouped(t.sampled_functions), grouped(t.functions)),
        ),
        (
            "blocks",
            format!("{} executed of {}", grouped(t.executed_blocks), grouped(t.blocks)),
        ),
        (
            "edges",
            format!("{} executed of {}", grouped(t.executed_edges), grouped(t.edges)),
        ),
        ("indirect calls with targets", grouped(t.indirect_calls)),
        ("memory operations", grouped(t.memory_operations)),
        ("executions per sample", number(show.scale)),
        (
            "raw vectors",
            if show.has_vectors { "kept" } else { "not kept" }.to_owned(),
        ),
    ];
    let mut facts = table(&["profile", ""], 2..);
    rows.into_iter().for_each(|(name, value)| {
        facts.add_row([name.to_owned(), value]);
    });
    let _ = writeln!(out, "{facts}\n");
    let mut cutoffs = table(&["share of executions", "blocks", "least count"], 0..);
    for cutoff in show.summary.cutoffs.iter().filter(|c| SHOWN_CUTOFFS.contains(&c.ppm)) {
        let share = format!("{} %", number(f64::from(cutoff.ppm) / 1e4));
        cutoffs.add_row([share, grouped(cutoff.num_counts), grouped(cutoff.min_count)]);
    }
    let _ = writeln!(out, "{cutoffs}\n");
    let mut functions = table(&["function", "share", "entries", "hottest block", "samples"], 1..);
    for line in &show.functions {
        let share = format!("{:.2} %", line.share * 100.0);
        functions.add_row([
            names.shown(&line.name),
            share,
            grouped(line.entry_count),
            grouped(line.max_count),
            grouped(line.samples),
        ]);
    }
    let _ = writeln!(out, "{functions}");
    let hidden = t.sampled_functions.saturating_sub(show.functions.len() as u64);
    if hidden > 0 {
        let _ = writeln!(out, "and {} more sampled functions", grouped(hidden));
    }
}

fn overhead(show: &Show) -> String {
    let p = &show.provenance;
    if p.program_cpu_seconds > 0.0 {
        return format!(" ({:.2} %)", p.own_cpu_seconds / p.program_cpu_seconds * 100.0);
    }
    String::new()
}

fn function(detail: &FunctionDetail, names: &Names, out: &mut String) {
    let line = &detail.line;
    let _ = writeln!(
        out,
        "{} ({}, graph {}): {:.2} % of all block executions, {} samples\n",
        names.shown(&line.name),
        line.id,
        line.cfg_hash,
        line.share * 100.0,
        grouped(line.samples)
    );
    let mut blocks = table(&["block", "line", "count"], 0..);
    for block in &detail.blocks {
        let line = block.line.map_or_else(String::new, |l| l.to_string());
        blocks.add_row([block.block.to_string(), line, grouped(block.count)]);
    }
    let _ = writeln!(out, "{blocks}\n");
    if !detail.edges.is_empty() {
        edges(detail, out);
    }
    if !detail.calls.is_empty() {
        calls(detail, names, out);
    }
    if !detail.memory_operations.is_empty() {
        memory_operations(detail, out);
    }
    if !detail.mispredictions.is_empty() {
        mispredictions(detail, out);
    }
}

fn mispredictions(detail: &FunctionDetail, out: &mut String) {
    let mut rows = table(&["branch of block", "line", "mispredicted", "share", "at least"], 0..);
    for branch in &detail.mispredictions {
        rows.add_row([
            branch.block.to_string(),
            branch.line.map_or_else(String::new, |l| l.to_string()),
            grouped(branch.count.round()),
            percent(branch.rate),
            percent(branch.low),
        ]);
    }
    let _ = writeln!(out, "{rows}\n");
}

fn edges(detail: &FunctionDetail, out: &mut String) {
    let known = detail.edges.iter().all(|e| e.from.is_some());
    let mut edges = table(
        if known {
            &["edge", "count", "probability"]
        } else {
            &["edge", "count"]
        },
        1..,
    );
    for edge in &detail.edges {
        match (edge.from, edge.to) {
            (Some(from), Some(to)) if known => {
                let probability = edge
                    .probability
                    .map_or_else(String::new, |p| format!("{:.2} %", p * 100.0));
                edges.add_row([format!("{from} → {to}"), grouped(edge.count), probability])
            }
            _ => edges.add_row([format!("#{}", edge.slot), grouped(edge.count)]),
        };
    }
    let _ = writeln!(out, "{edges}");
    if !known {
        let _ = writeln!(out, "give --binary to see which blocks the edges connect");
    }
    let _ = writeln!(out);
}

/// Where a call is, in the first of its rows only.
fn place(row: usize, call: u32, block: Option<u32>) -> String {
    match block {
        _ if row > 0 => String::new(),
        Some(block) => format!("#{call} in block {block}"),
        None => format!("#{call}"),
    }
}

fn memory_operations(detail: &FunctionDetail, out: &mut String) {
    let mut rows = table(&["memory operation", "bytes", "count", "probability"], 1..);
    for operation in &detail.memory_operations {
        for (row, length) in operation.lengths.iter().enumerate() {
            rows.add_row([
                place(row, operation.call, operation.block),
                grouped(length.length),
                grouped(length.count),
                percent(length.probability),
            ]);
        }
    }
    let _ = writeln!(out, "{rows}\n");
}

fn calls(detail: &FunctionDetail, names: &Names, out: &mut String) {
    let mut calls = table(&["indirect call", "target", "count", "probability"], 2..);
    for call in &detail.calls {
        for (row, target) in call.targets.iter().enumerate() {
            let name = target.name.as_deref().map(|name| names.shown(name));
            calls.add_row([
                place(row, call.call, call.block),
                name.unwrap_or_else(|| target.guid.clone()),
                grouped(target.count),
                format!("{:.2} %", target.probability * 100.0),
            ]);
        }
    }
    let _ = writeln!(out, "{calls}\n");
}

/// A number, without decimals if it is an integer.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
