//! Tables of many programs and variants, one for each measure: programs are rows, variants columns. Below are geometric
//! means, with intervals over programs.

use crate::compare::Row;
use pleach_harness::stats::bootstrap_geometric_mean;
use pleach_harness::table::{Cell, Section, Table};

/// A measure of a row, as a ratio.
struct Measure {
    key: &'static str,
    heading: &'static str,
    of: fn(&Row) -> f64,
}

const MEASURES: [Measure; 6] = [
    Measure {
        key: "instructions",
        heading: "Instructions",
        of: Row::instructions,
    },
    Measure {
        key: "taken_branches",
        heading: "Taken branches",
        of: Row::taken_branches,
    },
    Measure {
        key: "i1_misses",
        heading: "I1 misses (cachegrind's model)",
        of: Row::i1_misses,
    },
    Measure {
        key: "mispredicts",
        heading: "Mispredicted branches (cachegrind's model)",
        of: Row::mispredicts,
    },
    Measure {
        key: "text",
        heading: "Executable bytes (with the old code that BOLT leaves beside the new)",
        of: Row::text,
    },
    Measure {
        key: "cpu",
        heading: "CPU time, median of pairs [95 %]",
        of: cpu,
    },
];

fn cpu(row: &Row) -> f64 {
    row.times.as_ref().map_or(f64::NAN, |times| times.cpu.ratio.value)
}

/// The tables of all measures that were taken. `column` names the column that a row belongs to.
pub fn sections(rows: &[Row], column: impl Fn(&Row) -> String) -> Vec<Section> {
    let tables = MEASURES.iter().filter_map(|measure| {
        let cell = |row: &Row| match &row.times {
            Some(times) if measure.key == "cpu" => Cell::Ratio(times.cpu.ratio),
            _ => Cell::Number((measure.of)(row), 3),
        };
        let cells: Vec<(String, String, f64, Cell)> = rows
            .iter()
            .map(|row| (row.workload.clone(), column(row), (measure.of)(row), cell(row)))
            .collect();
        let is_measured = cells.iter().any(|(_, _, ratio, _)| ratio.is_finite());
        is_measured.then(|| Section::new(measure.key, measure.heading, table(&cells)))
    });
    tables.collect()
}

/// One table, from each cell's row, column, ratio and what is shown.
pub fn table(cells: &[(String, String, f64, Cell)]) -> Table {
    let mut columns: Vec<&str> = Vec::new();
    let mut programs: Vec<&str> = Vec::new();
    for (program, column, ..) in cells {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
        if !programs.contains(&program.as_str()) {
            programs.push(program);
        }
    }
    let headings = std::iter::once(&"workload").chain(&columns);
    let mut table = Table::new(headings.map(|column| ((*column).to_owned(), *column)));
    for program in programs {
        let of = |column: &&str| {
            let found = cells.iter().find(|(row, name, ..)| row == program && name == column);
            found.map_or(Cell::Missing, |(.., shown)| shown.clone())
        };
        table.push(std::iter::once(program.into()).chain(columns.iter().map(of)));
    }
    let mean = |column: &&str| {
        let own = cells.iter().filter(|(_, name, ..)| name == column);
        let ratios: Vec<f64> = own
            .map(|(.., ratio, _)| *ratio)
            .filter(|ratio| ratio.is_finite())
            .collect();
        if ratios.is_empty() {
            Cell::Missing
        } else {
            Cell::Ratio(bootstrap_geometric_mean(&ratios))
        }
    };
    table.push(std::iter::once("geometric mean".into()).chain(columns.iter().map(mean)));
    table
}

/// The base's absolute numbers for each program.
pub fn base(rows: &[Row]) -> Section {
    let mut table = Table::new([
        ("workload", "workload"),
        ("instructions", "instructions"),
        ("taken_branches", "taken branches"),
        ("i1_misses", "I1 misses"),
        ("mispredicts", "mispredicts"),
        ("text", "executable bytes"),
        ("cpu", "CPU s"),
    ]);
    let mut last = None;
    for row in rows {
        if last.replace(&row.workload) == Some(&row.workload) {
            continue;
        }
        let counts = row.base.counts.as_ref();
        table.push([
            row.workload.as_str().into(),
            counts.map(|counts| counts.instructions).into(),
            counts.and_then(|counts| counts.taken_branches).into(),
            counts.and_then(|counts| counts.i1_misses).into(),
            counts.and_then(|counts| counts.mispredicts()).into(),
            row.base.size.executable.into(),
            row.times
                .as_ref()
                .map_or(Cell::Missing, |times| Cell::Number(times.cpu.a.median, 3)),
        ]);
    }
    let label = rows.first().map_or("", |row| row.base.binary.label.as_str());
    Section::new("base", format!("The base: {label}"), table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_rows_and_variants_columns() {
        let cell = |program: &str, column: &str, ratio: f64| {
            (program.to_owned(), column.to_owned(), ratio, Cell::Number(ratio, 3))
        };
        let table = table(&[
            cell("lua", "ir-pgo", 0.5),
            cell("lua", "bolt", f64::NAN),
            cell("zlib", "ir-pgo", 2.0),
            cell("zlib", "bolt", 0.9),
        ]);
        insta::assert_snapshot!(table);
    }
}
