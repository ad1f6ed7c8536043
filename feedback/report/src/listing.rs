//! Source text beside executions and coverage: the views of `pleach source` and of `pleach coverage --text`.

use super::lines::{Line, SourceFile};
use super::tables::{abbreviated, grouped};
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
                 * not all of its blocks\n"
            }
            Self::Counts => {
                "line|count|source; 0: not executed (proved), ?: unknown, 9?: predicted only, blank: no block begins here\n"
            }
        }
    }

    fn row(self, number: u32, line: Option<&Line>, text: &str) -> String {
        match self {
            Self::Marks => {
                let count = line.filter(|line| line.covered.is_executed());
                let count = count.map_or_else(String::new, |line| grouped(line.count));
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
        Covered::PredictedByDominance | Covered::Predicted => abbreviated(line.count) + "?",
        Covered::ByDominance | Covered::Hit | Covered::Proved => abbreviated(line.count),
    }
}

impl SourceFile {
    /// A listing. `text` is the source; without it, only lines with blocks are listed. `around` limits the number of
    /// lines before the first and after the last line with blocks.
    pub fn listing(&self, style: Style, text: Option<&str>, around: Option<u32>) -> String {
        let mut out = String::new();
        let mut print = |number: u32, text: &str| {
            out += style.row(number, self.lines.get(&number), text).trim_end();
            out.push('\n');
        };
        let Some(text) = text else {
            self.lines.keys().for_each(|number| print(*number, ""));
            return out;
        };
        let (first, last) = match (around, self.lines.keys().next(), self.lines.keys().next_back()) {
            (Some(around), Some(first), Some(last)) => (first.saturating_sub(around), last.saturating_add(around)),
            _ => (0, u32::MAX),
        };
        for (number, text) in (1..).zip(text.lines()) {
            if (first..=last).contains(&number) {
                print(number, text);
            }
        }
        out
    }
}
