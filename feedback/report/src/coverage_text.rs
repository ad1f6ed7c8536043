//! The text form of `pleach coverage`.

use super::coverage::{CoverageReport, FunctionRow, Tally};
use super::names::Names;
use super::table::table;
use super::tables::{grouped, without_padding};
use std::collections::HashMap;
use std::fmt::Write;

/// The states, as columns.
const STATES: [&str; 6] = [
    "executed",
    "seen",
    "implied",
    "predicted only",
    "not executed",
    "unknown",
];

impl CoverageReport {
    /// For people: the totals, and at most `top` functions, those with executed blocks first.
    pub fn to_text(&self, top: Option<usize>, names: &Names) -> String {
        let mut out = String::new();
        let mut totals = table(&[&["", "all"], &STATES[..]].concat(), 1..).fitting(names);
        let mut total = |what: &str, tally: &Tally| {
            totals.add_row([&[what.to_owned(), grouped(tally.all)], &cells(tally)[..]].concat());
        };
        total("blocks", &self.blocks);
        if let Some(instructions) = &self.instructions {
            total("IR instructions", instructions);
        }
        let _ = writeln!(out, "{totals}\n");
        let _ = write!(
            out,
            "{} of {} functions executed, {} more only predicted, {} proved not executed",
            grouped(self.functions_proved),
            grouped(self.functions_all),
            grouped(self.functions_covered - self.functions_proved),
            grouped(self.functions_not_executed),
        );
        match self.functions_all - self.functions_covered - self.functions_not_executed {
            0 => out += "\n\n",
            unknown => _ = writeln!(out, ", {} unknown\n", grouped(unknown)),
        }
        self.functions_to_text(top, names, &mut out);
        without_padding(&out)
    }

    fn functions_to_text(&self, top: Option<usize>, names: &Names, out: &mut String) {
        let all = self.functions.len() + self.not_executed.len() + self.unknown.len();
        if all == 0 {
            return;
        }
        let shown = all.min(top.unwrap_or(usize::MAX));
        let mut rows = table(&[&["blocks"], &STATES[..], &["function"]].concat(), ..7).fitting(names);
        let functions = || self.functions.iter().chain(&self.not_executed).chain(&self.unknown);
        let mut of_name: HashMap<&str, usize> = HashMap::new();
        functions().for_each(|row| *of_name.entry(&row.function).or_default() += 1);
        for row in functions().take(shown) {
            rows.add_row(function_row(row, names, of_name[row.function.as_str()] > 1));
        }
        let _ = writeln!(out, "{rows}");
        if shown < all {
            let _ = writeln!(out, "and {} more: --top 0 lists them all", grouped(all - shown));
        }
    }
}

/// `shares_name`: whether another function has the same name, so that its file is to be told.
fn function_row(row: &FunctionRow, names: &Names, shares_name: bool) -> Vec<String> {
    let mut cells = cells(&row.blocks).to_vec();
    cells.insert(0, grouped(row.blocks.all));
    let name = names.shown(&row.function);
    cells.push(match row.source_file.as_ref().filter(|_| shares_name) {
        Some(file) => format!("{name} ({file})"),
        None => name,
    });
    cells
}

/// The numbers of each state.
fn cells(tally: &Tally) -> [String; 6] {
    let percent = |part: u64| format!("{:.1} %", 100.0 * part as f64 / tally.all.max(1) as f64);
    [
        percent(tally.proved()),
        grouped(tally.seen),
        grouped(tally.by_dominance),
        grouped(tally.only_predicted()),
        grouped(tally.not_executed),
        grouped(tally.unknown),
    ]
}
