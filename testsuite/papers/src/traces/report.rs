//! The paper's tables, for recorded programs.

use super::Figures;
use super::Outcome;
use super::sample::HOTTEST;
use pleach_harness::table::{Cell, Section, Table};

/// Tables 1 to 4 and 6, figure 2.
pub fn sections(figures: &[Figures]) -> Vec<Section> {
    vec![
        Section::new(
            "paths",
            "Paths (tables 1 and 2): one trace a burst, and all",
            paths(figures),
        ),
        Section::new(
            "hottest",
            "Share of the hottest paths in the samples (figure 2), %: one trace a burst",
            hottest(figures),
        ),
        Section::new(
            "coverage",
            "Coverage of the next interval (tables 3 and 4), %",
            outcomes(figures, |outcome| Cell::Number(outcome.covered * 100.0, 2)),
        ),
        Section::new(
            "stitched",
            "The same with overlapping traces joined, %",
            outcomes(figures, |outcome| Cell::Number(outcome.stitched * 100.0, 2)),
        ),
        Section::new(
            "selections",
            "Intervals after which other traces were selected (table 6)",
            outcomes(figures, |outcome| outcome.selections.into()),
        ),
        Section::new(
            "traces",
            "Selected traces at the end",
            outcomes(figures, |outcome| outcome.traces.into()),
        ),
    ]
}

fn paths(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("program", "program"),
        ("sampling", "sampling"),
        ("samples", "samples"),
        ("starts", "unique starts"),
        ("paths", "unique paths"),
        ("half", "paths of 50 %"),
        ("most", "of 90 %"),
    ]);
    for of in figures {
        for (name, distribution) in [("slow", of.slow), ("fast", of.fast)] {
            table.push([
                of.program.as_str().into(),
                name.into(),
                distribution.samples.into(),
                distribution.starts.into(),
                distribution.traces.into(),
                distribution.half.into(),
                distribution.most.into(),
            ]);
        }
    }
    table
}

fn hottest(figures: &[Figures]) -> Table {
    let numbers = HOTTEST.map(|paths| (paths.to_string(), format!("{paths} hottest")));
    let mut table = Table::new(
        [("program".to_owned(), "program".to_owned())]
            .into_iter()
            .chain(numbers),
    );
    for of in figures {
        let shares = of.slow.hottest.map(|share| Cell::Number(share * 100.0, 1));
        table.push([of.program.as_str().into()].into_iter().chain(shares));
    }
    table
}

/// A row for each program and length of the interval, a column for each model, and a row of means for each length.
fn outcomes(figures: &[Figures], cell: impl Fn(&Outcome) -> Cell) -> Table {
    let mut table = Table::new([
        ("program", "program"),
        ("interval", "interval"),
        ("first_interval", "First Interval"),
        ("first_hot", "First Hot"),
        ("dynamic_interval", "Dynamic Interval"),
        ("full_history", "Full History"),
        ("full_history_whole", "… whole bursts"),
        ("ours", "ours"),
    ]);
    let lengths = figures.first().map_or(0, |of| of.outcomes.len());
    for at in 0..lengths {
        let mut sums = vec![Outcome::default(); super::models().len()];
        for of in figures {
            let (length, outcomes) = &of.outcomes[at];
            let mut row = vec![Cell::from(of.program.as_str()), Cell::Count(*length as u64)];
            for (sum, (_, outcome)) in sums.iter_mut().zip(outcomes) {
                sum.covered += outcome.covered / figures.len() as f64;
                sum.stitched += outcome.stitched / figures.len() as f64;
                sum.selections += outcome.selections;
                sum.traces += outcome.traces;
                row.push(cell(outcome));
            }
            table.push(row);
        }
        if figures.len() > 1 {
            let name = match cell(&Outcome::default()) {
                Cell::Count(_) => "sum",
                _ => "mean",
            };
            let length = figures[0].outcomes[at].0 as u64;
            let row = [Cell::from(name), Cell::Count(length)].into_iter();
            table.push(row.chain(sums.iter().map(&cell)).collect::<Vec<_>>());
        }
    }
    table
}
