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
                 proved executions; ^: the count of what begins at this column\n"
            }
            Self::Counts => {
                "line|count|source; 0: not executed (proved), 0?: its code was not, ?: unknown, 9?: predicted only, blank: no block begins here; \
                 of samples, counts are shares of all block executions, ≥n proved executions; ^: what begins at this column\n"
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

    /// What stands before the text of a row without number and count.
    fn blank(self) -> &'static str {
        match self {
            Self::Marks => "                          │ ",
            Self::Counts => "     |       |",
        }
    }
}

/// Rows under a line of text, with the counts of its parts below where they begin, as `llvm-cov show` has them. Parts are
/// by column, in bytes from 1. Each row has what there is room for.
fn column_rows(text: &str, parts: &[(u32, String)]) -> Vec<String> {
    // Each with the number of characters that it covers.
    let mut rows: Vec<(String, usize)> = Vec::new();
    for (column, count) in parts {
        let before = text.char_indices().take_while(|(at, _)| at + 1 < *column as usize);
        // Tabs are kept, so that a row is as wide as the text above it.
        let indent = before.map(|(_, c)| if c == '\t' { c } else { ' ' });
        let indent: Vec<char> = indent.collect();
        let mark = format!("^{count}");
        let end = indent.len() + mark.chars().count();
        match rows.iter_mut().find(|(_, covered)| *covered < indent.len()) {
            Some((row, covered)) => {
                row.extend(&indent[*covered..]);
                *row += &mark;
                *covered = end;
            }
            None => rows.push((indent.into_iter().collect::<String>() + &mark, end)),
        }
    }
    rows.into_iter().map(|(row, _)| row).collect()
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
            for row in self.column_rows(number, text) {
                out += style.blank();
                out += &row;
                out.push('\n');
            }
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

    /// Rows with the counts of a line's parts, if there are several.
    fn column_rows(&self, number: u32, text: &str) -> Vec<String> {
        let parts = self.columns.range((number, 1)..=(number, u32::MAX));
        let parts = parts.filter(|((_, column), _)| *column as usize <= text.len());
        let parts: Vec<_> = parts.map(|((_, column), part)| (*column, count(part))).collect();
        match parts.len() {
            0 | 1 => Vec::new(),
            _ => column_rows(text, &parts),
        }
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

#[cfg(test)]
mod tests {
    use super::column_rows;

    #[test]
    fn counts_stand_below_the_columns() {
        let rows = |text: &str, parts: &[(u32, &str)]| {
            let parts: Vec<_> = parts
                .iter()
                .map(|(column, count)| (*column, (*count).to_owned()))
                .collect();
            column_rows(text, &parts)
        };
        let text = "\tfor (i = 0; i < n; ++i) // n";
        assert_eq!(
            rows(text, &[(7, "1"), (14, "11"), (21, "10")]),
            ["\t     ^1     ^11    ^10"]
        );
        // Without room for a space between them, a second row begins; the next count goes to the first row again.
        assert_eq!(
            rows("a?b:c?d:e;", &[(1, "5"), (3, "4"), (5, "1"), (7, "0")]),
            ["^5  ^1", "  ^4  ^0"]
        );
        // Columns count bytes.
        assert_eq!(rows("ä = b", &[(1, "2"), (6, "1")]), ["^2  ^1"]);
    }
}
