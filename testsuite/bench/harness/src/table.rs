//! Tables for people, and the same rows as JSON for scripts.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;

/// One cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Text, left-aligned.
    Text(String),
    /// A number with this many decimals.
    Number(f64, usize),
    /// An integer, with thousands set apart.
    Count(u64),
    /// A ratio with its interval.
    Ratio(crate::stats::Interval),
    /// Not measured.
    Missing,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Missing, Into::into)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number, _) if number.is_nan() => f.write_str("–"),
            Self::Number(number, decimals) => write!(f, "{number:.decimals$}"),
            Self::Count(count) => f.write_str(&group_thousands(*count)),
            Self::Ratio(ratio) => write!(f, "{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high),
            Self::Missing => f.write_str("–"),
        }
    }
}

impl Cell {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number, _) => json!(number), // NaN becomes null
            Self::Count(count) => json!(count),
            Self::Ratio(ratio) => json!(ratio),
            Self::Missing => Value::Null,
        }
    }
}

fn group_thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Rows under named columns.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(Cow<'static, str>, String)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A table without rows; each column has a key for JSON and a heading.
    pub fn new<K: Into<Cow<'static, str>>, H: Into<String>>(columns: impl IntoIterator<Item = (K, H)>) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(key, heading)| (key.into(), heading.into()))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Appends a row; absent cells are shown as missing, superfluous ones are dropped.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().collect();
        row.resize(self.columns.len(), Cell::Missing);
        self.rows.push(row);
    }

    /// An array with one object a row.
    pub fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Map<String, Value> {
            self.columns
                .iter()
                .zip(cells)
                .map(|((key, _), cell)| (key.to_string(), cell.to_json()))
                .collect()
        };
        Value::Array(self.rows.iter().map(|cells| Value::Object(row(cells))).collect())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = comfy_table::Table::new();
        // Lines as wide as they come: a table in a file or a log must not be wrapped to some terminal.
        table
            .load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        let align = |text: String, of: Option<&Cell>| {
            let to_left = matches!(of, Some(Cell::Text(_)));
            let alignment = if to_left {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            };
            comfy_table::Cell::new(text).set_alignment(alignment)
        };
        // A heading is aligned as the cells below it.
        let below = |column: usize| self.rows.first().and_then(|row| row.get(column));
        let headings = self.columns.iter().enumerate();
        table.set_header(headings.map(|(column, (_, heading))| align(heading.clone(), below(column))));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| align(cell.to_string(), Some(cell))));
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// A table among several.
#[derive(Clone, Debug)]
pub struct Section {
    /// For JSON.
    pub key: &'static str,
    /// For people; may be empty.
    pub heading: String,
    /// The rows.
    pub table: Table,
}

impl Section {
    /// A table with a name.
    pub fn new(key: &'static str, heading: impl Into<String>, table: Table) -> Self {
        Self {
            key,
            heading: heading.into(),
            table,
        }
    }
}

impl From<Table> for Vec<Section> {
    fn from(table: Table) -> Self {
        vec![Section::new("rows", "", table)]
    }
}

/// One table as the array of its rows, several as an object.
pub fn sections_to_json(sections: &[Section]) -> Value {
    match sections {
        [only] => only.table.to_json(),
        several => several
            .iter()
            .map(|section| (section.key.to_owned(), section.table.to_json()))
            .collect::<Map<_, _>>()
            .into(),
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.heading.is_empty() {
            writeln!(f, "{}", self.heading)?;
        }
        write!(f, "{}", self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    fn sample() -> Table {
        let mut table = Table::new([
            ("workload", "workload"),
            ("instructions", "instructions"),
            ("text", "text ×"),
            ("time", "time × [95 %]"),
        ]);
        let time = Interval {
            value: 0.9312,
            low: 0.92,
            high: 0.9449,
        };
        table.push([
            "lua".into(),
            Cell::Count(1_234_567_890),
            Cell::Number(1.0456, 3),
            Cell::Ratio(time),
        ]);
        table.push(["bzip2".into(), Cell::Count(999), Cell::Number(f64::NAN, 3)]);
        table
    }

    #[test]
    fn rendering() {
        insta::assert_snapshot!(sample());
    }

    #[test]
    fn rows_as_json() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&sample().to_json()).unwrap());
    }
}
