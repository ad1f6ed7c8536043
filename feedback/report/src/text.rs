//! The text form of `pleach show`.

use super::names::Names;
use super::paths_text::with_unit;
use super::show::{FunctionDetail, FunctionLine, Show, commands};
use super::table::{Table, table};
use super::tables::{grouped, percent, without_padding};
use std::fmt::Write;

/// The cutoffs in the overview. The JSON form has all of them.
const SHOWN_CUTOFFS: [u32; 4] = [500_000, 900_000, 990_000, 999_999];

/// Fewer samples of a function's entry support no number of executions per call.
const MIN_ENTRY_SAMPLES: f64 = 10.0;

const NO_COUNTS: &str = "a sampled profile has shares, not execution counts; “per call” is blank with few samples of \
                         the function's entry";

impl Show {
    /// For people: the details if a function was requested, else the overview.
    pub fn to_text(&self, names: &Names) -> String {
        let mut out = String::new();
        if self.details.is_empty() {
            overview(self, names, &mut out);
        }
        for detail in &self.details {
            function(self, detail, names, &mut out);
        }
        without_padding(&out)
    }
}

fn overview(show: &Show, names: &Names, out: &mut String) {
    let (p, t) = (&show.provenance, &show.totals);
    let runs = commands(p).into_iter().map(|(command, runs)| match runs {
        1 => command,
        _ => format!("{command} (× {runs})"),
    });
    let runs: Vec<String> = runs.collect();
    // Samples do not show all that was executed: `coverage` knows more.
    let known = if show.is_exact { "executed" } else { "have counts" };
    let mut rows = vec![
        ("commands", runs.join("\n")),
        ("engines", p.engines.join(", ")),
        ("anchor", show.anchor.to_owned()),
    ];
    // Of exact counts, the number of calls is in the place of bursts.
    let (samples, seen) = match show.is_exact {
        true => {
            rows.push(("calls", grouped(p.bursts)));
            ("block executions", "executed")
        }
        false => {
            rows.extend([
                ("program CPU time", format!("{:.2} s", p.program_cpu_seconds)),
                (
                    "sampler CPU time",
                    format!("{:.3} s{}", p.own_cpu_seconds, overhead(show)),
                ),
                ("bursts", grouped(p.bursts)),
                ("taken branches", grouped(p.taken_branches)),
            ]);
            ("sampled block entries", "sampled")
        }
    };
    rows.extend([
        (samples, grouped(t.samples)),
        (
            "functions",
            format!("{} {seen} of {}", grouped(t.sampled_functions), grouped(t.functions)),
        ),
        (
            "blocks",
            format!("{} of {} {known}", grouped(t.executed_blocks), grouped(t.blocks)),
        ),
        (
            "edges",
            format!("{} of {} {known}", grouped(t.executed_edges), grouped(t.edges)),
        ),
        ("indirect calls with targets", grouped(t.indirect_calls)),
        ("memory operations", grouped(t.memory_operations)),
        ("divisions", grouped(t.divisions)),
        (
            "raw vectors",
            if show.has_vectors { "kept" } else { "not kept" }.to_owned(),
        ),
    ]);
    let mut facts = table(&["profile", ""], 2..).fitting(names).with_texts(&[""]);
    rows.into_iter().for_each(|(name, value)| {
        facts.add_row([name.to_owned(), value]);
    });
    let _ = writeln!(out, "{facts}\n");
    let least = if show.is_exact {
        "smallest count"
    } else {
        "smallest share"
    };
    let mut cutoffs = table(&["share of executions", "blocks", least], 0..).fitting(names);
    for cutoff in show.summary.cutoffs.iter().filter(|c| SHOWN_CUTOFFS.contains(&c.ppm)) {
        let share = format!("{} %", number(f64::from(cutoff.ppm) / 1e4));
        let least = match show.is_exact {
            true => grouped(cutoff.min_count),
            false => percent(cutoff.min_count as f64 / show.summary.total_count.max(1) as f64),
        };
        cutoffs.add_row([share, grouped(cutoff.num_counts), least]);
    }
    let _ = writeln!(out, "{cutoffs}\n");
    let header = match show.is_exact {
        true => ["function", "share", "calls", "hottest block", "block samples"],
        false => ["function", "share", "calls", "hottest block per call", "block samples"],
    };
    let mut functions = table(&header, 1..).fitting(names);
    for line in &show.functions {
        let [entries, hottest] = match show.is_exact {
            true => [line.entry_count, line.max_count].map(grouped),
            false => [percent(line.entry_share), per_call(show, line, line.max_count)],
        };
        functions.add_row([
            names.shown(&line.name),
            percent(line.share),
            entries,
            hottest,
            grouped(line.samples),
        ]);
    }
    let _ = writeln!(out, "{functions}");
    if !show.is_exact && !show.functions.is_empty() {
        let _ = writeln!(out, "{NO_COUNTS}");
    }
    let hidden = t.sampled_functions.saturating_sub(show.functions.len() as u64);
    if hidden > 0 {
        let _ = writeln!(out, "and {}", with_unit(hidden, "more sampled function"));
    }
}

fn overhead(show: &Show) -> String {
    let p = &show.provenance;
    if p.program_cpu_seconds > 0.0 {
        return format!(" ({:.2} %)", p.own_cpu_seconds / p.program_cpu_seconds * 100.0);
    }
    String::new()
}

fn function(show: &Show, detail: &FunctionDetail, names: &Names, out: &mut String) {
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
    let header: &[_] = match show.is_exact {
        true => &["block", "line", "count"],
        false => &["block", "line", "share", "per call"],
    };
    let mut blocks = table(header, 0..);
    for block in &detail.blocks {
        let source = block.line.map_or_else(String::new, |l| l.to_string());
        let mut row = vec![block.block.to_string(), source];
        match show.is_exact {
            true => row.push(grouped(block.count)),
            false => row.extend([
                share_of(block.count, line.total_count),
                per_call(show, line, block.count),
            ]),
        }
        blocks.add_row(row);
    }
    let _ = writeln!(out, "{blocks}\n");
    if !detail.edges.is_empty() {
        edges(show, detail, out);
    }
    if !detail.calls.is_empty() {
        calls(show, detail, names, out);
    }
    if !detail.memory_operations.is_empty() {
        memory_operations(show, detail, out);
    }
    if !detail.divisions.is_empty() {
        divisions(show, detail, out);
    }
    if !detail.mispredictions.is_empty() {
        mispredictions(show, detail, out);
    }
    if !show.is_exact {
        let _ = writeln!(out, "{NO_COUNTS}");
    }
}

fn mispredictions(show: &Show, detail: &FunctionDetail, out: &mut String) {
    let all: f64 = detail.mispredictions.iter().map(|branch| branch.count).sum();
    let mispredicted = if show.is_exact { "mispredicted" } else { "share of all" };
    let mut rows = table(&["branch of block", "line", mispredicted, "rate", "lower bound"], 0..);
    for branch in &detail.mispredictions {
        rows.add_row([
            branch.block.to_string(),
            branch.line.map_or_else(String::new, |l| l.to_string()),
            match show.is_exact {
                true => grouped(branch.count.round()),
                false => percent(branch.count / all),
            },
            percent(branch.rate),
            percent(branch.low),
        ]);
    }
    let _ = writeln!(out, "{rows}\n");
}

fn edges(show: &Show, detail: &FunctionDetail, out: &mut String) {
    let known = detail.edges.iter().all(|e| e.from.is_some());
    let all = detail.edges.iter().fold(0, |sum: u64, e| sum.saturating_add(e.count));
    let count = if show.is_exact { "count" } else { "share" };
    let header = ["edge", count, "probability"];
    let mut edges = table(if known { &header } else { &header[..2] }, 1..);
    for edge in &detail.edges {
        let count = match show.is_exact {
            true => grouped(edge.count),
            false => share_of(edge.count, all),
        };
        match (edge.from, edge.to) {
            (Some(from), Some(to)) if known => {
                let probability = edge.probability.map_or_else(String::new, percent);
                edges.add_row([format!("{from} → {to}"), count, probability])
            }
            _ => edges.add_row([format!("#{}", edge.slot), count]),
        };
    }
    let _ = writeln!(out, "{edges}");
    if !known {
        let _ = writeln!(out, "give --binary to see which blocks the edges connect");
    }
    let _ = writeln!(out);
}

/// A table whose third column is left out unless counts are executions.
fn counted_table(show: &Show, header: [&str; 4], right: usize) -> Table {
    let header: Vec<&str> = header
        .into_iter()
        .filter(|name| show.is_exact || *name != "count")
        .collect();
    table(&header, right..)
}

fn share_of(count: u64, all: u64) -> String {
    percent(count as f64 / all.max(1) as f64)
}

/// Executions for each call of a function; blank if too few samples are of its entry.
fn per_call(show: &Show, line: &FunctionLine, count: u64) -> String {
    let entries = line.entry_count as f64;
    match entries >= MIN_ENTRY_SAMPLES * show.scale {
        true => format!("{:.2}", count as f64 / entries),
        false => String::new(),
    }
}

/// Where a call is, in the first of its rows only.
fn place(row: usize, call: u32, block: Option<u32>) -> String {
    match block {
        _ if row > 0 => String::new(),
        Some(block) => format!("#{call} in block {block}"),
        None => format!("#{call}"),
    }
}

fn memory_operations(show: &Show, detail: &FunctionDetail, out: &mut String) {
    let mut rows = counted_table(show, ["memory operation", "bytes", "count", "probability"], 1);
    for operation in &detail.memory_operations {
        for (row, length) in operation.lengths.iter().enumerate() {
            let mut cells = vec![place(row, operation.call, operation.block), grouped(length.length)];
            cells.extend(show.is_exact.then(|| grouped(length.count)));
            cells.push(percent(length.probability));
            rows.add_row(cells);
        }
    }
    let _ = writeln!(out, "{rows}\n");
}

fn divisions(show: &Show, detail: &FunctionDetail, out: &mut String) {
    let mut rows = counted_table(show, ["divisions", "by", "count", "probability"], 1);
    for division in &detail.divisions {
        for (row, divisor) in division.divisors.iter().enumerate() {
            let place = match row {
                0 => format!("block {}", division.block),
                _ => String::new(),
            };
            // Negative ones are more frequent than those that have 64 bits.
            let shown = match divisor.divisor.cast_signed() {
                negative @ ..0 => format!("−{}", grouped(negative.unsigned_abs())),
                positive => grouped(positive.cast_unsigned()),
            };
            let mut cells = vec![place, shown];
            cells.extend(show.is_exact.then(|| grouped(divisor.count)));
            cells.push(percent(divisor.probability));
            rows.add_row(cells);
        }
    }
    let _ = writeln!(out, "{rows}\n");
}

fn calls(show: &Show, detail: &FunctionDetail, names: &Names, out: &mut String) {
    let mut calls = counted_table(show, ["indirect call", "target", "count", "probability"], 2).fitting(names);
    for call in &detail.calls {
        for (row, target) in call.targets.iter().enumerate() {
            let name = target.name.as_deref().map(|name| names.shown(name));
            let mut cells = vec![place(row, call.call, call.block)];
            cells.push(name.unwrap_or_else(|| target.guid.clone()));
            cells.extend(show.is_exact.then(|| grouped(target.count)));
            cells.push(percent(target.probability));
            calls.add_row(cells);
        }
    }
    let _ = writeln!(out, "{calls}\n");
}

/// A number, without decimals if it is an integer.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
