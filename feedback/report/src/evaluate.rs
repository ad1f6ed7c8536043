//! The report of `pleach evaluate`.

use super::table::table;
use super::tables::{grouped, without_padding};
use pleach_analysis::evaluate::Evaluation;
use pleach_analysis::evaluate::figures::{FIGURES, Kind};

/// A table of each figure's median, minimum and maximum, and the number of recordings that have it.
pub fn evaluation_text(evaluation: &Evaluation) -> String {
    let mut rows = table(&["figure", "median", "min", "max", "n"], 1..);
    for (key, meaning, kind) in FIGURES {
        let Some(spread) = evaluation.figures.get(key) else {
            continue;
        };
        let shown = |value| show(kind, value);
        rows.add_row([
            meaning.to_owned(),
            shown(spread.median),
            shown(spread.min),
            shown(spread.max),
            spread.n.to_string(),
        ]);
    }
    let times = match evaluation.repeat {
        1 => "one run".to_owned(),
        many => format!("{many} runs"),
    };
    format!(
        "{} anchor, {times} of the command in each recording\n\n{}",
        evaluation.anchor.name(),
        without_padding(&rows.to_string())
    )
}

/// An object with each figure's median, min, max and n. Figures without a value are left out.
pub fn evaluation_json(evaluation: &Evaluation) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&evaluation.figures)? + "\n")
}

fn show(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Fraction => format!("{value:.4}"),
        Kind::Percent => format!("{:.3} %", value * 100.0),
        Kind::Number if value < 100.0 => format!("{value:.2}"),
        Kind::Number => grouped(value.round()),
    }
}
