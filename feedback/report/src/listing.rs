//! Source text beside executions and coverage: the views of `pleach source` and of `pleach coverage --text`.

use super::lines::{Line, SourceFile};
use pleach_profile::Covered;

/// How a listing looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Count, mark of the coverage, number, text.
    Marks,
    /// Number, count, text, as `llvm-cov show` has it.
    Counts,
}

impl Style {
    /// The meaning of the columns.
    pub fn legend(self) -> &'static str {
        match self {
            Self::Marks => {
                "+ executed (seen), = executed (implied), ? predicted, ~ predicted (implied), - not executed (proved), ! unknown; \
                 * not all of its blocks; counts are executions, or of samples: shares of all block executions; ≥n: \
                 proved executions\n"
            }
            Self::Counts => {
                "line|count|source; 0: not executed (proved), ?: unknown, 9?: predicted only, blank: no block begins here; \
                 of samples, counts are shares of all block executions, ≥n proved executions\n"
            }
        }
    }

    fn row(self, number: u32, line: Option<&Line>, text: &str) -> String {
        match self {
            Self::Marks => {
                let count = line.filter(|line| line.covered.is_executed());
                let count = count.map_or_else(String::new, |line| line.frequency.to_text());
                let [state, partly] = line.map_or([' ', ' '], marks);
                format!("{count:>16} {state}{partly} {number:>6} │ {text}")
            }
            Self::Counts => {
                let count = line.map_or_else(String::new, count);
                format!("{number:>5}|{count:>7}|{text}")
            }
        }
    }
}

fn marks(line: &Line) -> [char; 2] {
    let state = match line.covered {
        Covered::NotExecuted => '-',
        Covered::CodeNotExecuted | Covered::Unknown => '!',
        Covered::PredictedByDominance => '~',
        Covered::Predicted => '?',
        Covered::ByDominance => '=',
        Covered::Hit | Covered::Proved => '+',
    };
    let partly = line.covered.is_executed() && line.uncovered > 0;
    [state, if partly { '*' } else { ' ' }]
}

fn count(line: &Line) -> String {
    match line.covered {
        Covered::NotExecuted => "0".into(),
        Covered::CodeNotExecuted => "0?".into(),
        Covered::Unknown => "?".into(),
        Covered::PredictedByDominance | Covered::Predicted => line.frequency.to_short_text() + "?",
        Covered::ByDominance | Covered::Hit | Covered::Proved => line.frequency.to_short_text(),
    }
}

/// Which lines of a file are listed. Lines without blocks are listed only where there is source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// The whole file.
    All,
    /// From the first to the last line with blocks, and this number of lines around them.
    Blocks(u32),
    /// Executed functions, and this number of lines around each.
    ExecutedFunctions(u32),
}

impl SourceFile {
    /// A listing. `text` is the source; without it, only lines with blocks are listed.
    pub fn listing(&self, style: Style, text: Option<&str>, extent: Extent) -> String {
        let ranges = self.ranges(extent);
        let is_shown = |number: &u32| ranges.iter().any(|(first, last)| (first..=last).contains(&number));
        let mut out = String::new();
        let mut last = None;
        let mut print = |number: u32, text: &str| {
            // Between functions that are listed.
            if text_gap(last, number, &ranges) {
                out += "…\n";
            }
            last = Some(number);
            out += style.row(number, self.lines.get(&number), text).trim_end();
            out.push('\n');
        };
        match text {
            None => self
                .lines
                .keys()
                .filter(|number| is_shown(number))
                .for_each(|number| print(*number, "")),
            Some(text) => (1..)
                .zip(text.lines())
                .filter(|(number, _)| is_shown(number))
                .for_each(|(number, text)| print(number, text)),
        }
        out
    }

    /// Listed lines, as ranges with both ends included, in order and apart from each other.
    fn ranges(&self, extent: Extent) -> Vec<(u32, u32)> {
        let around = |(first, last): (u32, u32), lines: u32| (first.saturating_sub(lines), last.saturating_add(lines));
        let mut ranges: Vec<(u32, u32)> = match extent {
            Extent::All => vec![(0, u32::MAX)],
            Extent::Blocks(lines) => match (self.lines.keys().next(), self.lines.keys().next_back()) {
                (Some(first), Some(last)) => vec![around((*first, *last), lines)],
                _ => Vec::new(),
            },
            Extent::ExecutedFunctions(lines) => {
                let executed = self.functions.iter().filter(|function| function.is_executed);
                executed.map(|function| around(function.extent, lines)).collect()
            }
        };
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        merged
    }
}

/// Whether a line is in another range than the one printed before it.
fn text_gap(before: Option<u32>, number: u32, ranges: &[(u32, u32)]) -> bool {
    let range = |line: u32| ranges.iter().position(|(first, last)| (*first..=*last).contains(&line));
    before.is_some_and(|before| range(before) != range(number))
}
