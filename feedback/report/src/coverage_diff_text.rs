//! The text form of `pleach coverage diff`.

use super::block_state::State;
use super::coverage_diff::{CoverageDiff, Difference, Direction, FunctionDifference};
use super::names::Names;
use super::paths_text::with_unit;
use super::ranges::{ranges, ranges_to_text};
use super::table::table;
use super::tables::{grouped, without_padding};
use std::fmt::Write;

/// Number of ranges of a function's blocks or lines that are printed.
const MAX_RANGES: usize = 8;
/// Number of functions that are named where they cannot be compared.
const MAX_NAMES: usize = 5;

impl CoverageDiff {
    /// For people. `profiles`: what A and B are called.
    pub fn to_text(&self, profiles: [&str; 2], names: &Names) -> String {
        let [a, b] = profiles;
        let mut out = format!("A: {a}\nB: {b}\n\n");
        let states = State::ALL.map(|state| format!("{} in B", state.name()));
        let mut matrix = table(&["blocks", &states[0], &states[1], &states[2]], 1..).fitting(names);
        for (state, row) in State::ALL.into_iter().zip(&self.blocks) {
            let row = row.map(grouped);
            matrix.add_row([&[format!("{} in A", state.name())], &row[..]].concat());
        }
        let _ = writeln!(out, "{matrix}");
        direction(["B", "A"], &self.only_b, names, &mut out);
        direction(["A", "B"], &self.only_a, names, &mut out);
        self.remarks(names, &mut out);
        without_padding(&out)
    }

    fn remarks(&self, names: &Names, out: &mut String) {
        let [only_a, only_b] = self.only_in.map(grouped);
        let _ = writeln!(
            out,
            "\n{} compared; {only_a} more in A only, {only_b} in B only",
            with_unit(self.compared, "function"),
        );
        if !self.not_comparable.is_empty() {
            let some = self.not_comparable.iter().take(MAX_NAMES);
            let some: Vec<String> = some.map(|f| names.shown(&f.function)).collect();
            let _ = writeln!(
                out,
                "{} with other control flow in each, not compared: {}{}",
                with_unit(self.not_comparable.len() as u64, "function"),
                some.join(", "),
                if self.not_comparable.len() > MAX_NAMES {
                    ", …"
                } else {
                    ""
                },
            );
        }
        let [in_a, in_b] = self.predicted;
        if in_a + in_b > 0 {
            let state = match self.predicted_as_executed {
                true => "counted as executed",
                false => "counted as unknown; --predicted counts them as executed",
            };
            let _ = writeln!(
                out,
                "{} of A and {} of B are only predicted: {state}",
                with_unit(in_a, "block"),
                grouped(in_b)
            );
        }
    }
}

/// What one profile executes and the other does not.
fn direction([this, other]: [&str; 2], direction: &Direction, names: &Names, out: &mut String) {
    let lists = [
        (format!("proved not executed in {other}"), &direction.not_executed),
        (format!("unknown in {other}"), &direction.unknown),
    ];
    for (what, difference) in lists {
        let functions = difference.functions.len() as u64 + difference.hidden;
        let _ = writeln!(
            out,
            "\nexecuted in {this}, {what}: {} of {}",
            with_unit(difference.blocks, "block"),
            with_unit(functions, "function"),
        );
        if !difference.functions.is_empty() {
            list([this, other], difference, names, out);
        }
    }
}

fn list([this, other]: [&str; 2], difference: &Difference, names: &Names, out: &mut String) {
    let executions = format!("executions in {this}");
    let whole = format!("function in {other}");
    let has_lines = difference.functions.iter().any(|f| f.lines.is_some());
    let place = if has_lines { "lines" } else { "block numbers" };
    let mut rows = table(&[&executions, "blocks", "of", "function", &whole, place], ..3)
        .fitting(names)
        .with_texts(&[&whole, place]);
    for row in &difference.functions {
        let whole = match row.in_other {
            true => row.other.name(),
            false => "absent",
        };
        rows.add_row([
            row.frequency.to_text(),
            grouped(row.blocks.len()),
            grouped(row.blocks_all),
            names.shown(&row.function),
            whole.to_owned(),
            place_of(row, has_lines),
        ]);
    }
    let _ = writeln!(out, "{rows}");
    if difference.hidden > 0 {
        let _ = writeln!(out, "and {} more: --top 0 lists them all", grouped(difference.hidden));
    }
}

/// The lines of the blocks; without them, their numbers.
fn place_of(row: &FunctionDifference, has_lines: bool) -> String {
    if let Some(lines) = &row.lines {
        return format!("{}:{}", lines.file.display(), ranges_to_text(&lines.ranges, MAX_RANGES));
    }
    let blocks: Vec<u32> = row.blocks.iter().map(|block| block.0).collect();
    let what = if has_lines { "blocks " } else { "" };
    let numbers = ranges(&blocks, 0..row.blocks_all as u32);
    format!("{what}{}", ranges_to_text(&numbers, MAX_RANGES))
}
