//! Tables for people. Where there is room, each row is a line. On a terminal without that room, headers break between
//! words, long names are cut in the middle, and texts (paths, reasons) break between words: within their columns, or on
//! lines of their own below their rows where columns would be too narrow for them. Names stand there as the last resort.

use super::names::{Names, cut};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};
use std::fmt::{self, Display, Formatter};
use std::iter;
use std::ops::RangeBounds;

/// Only a line below the header, so that rows are easy to search with `grep`.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// Blank columns on both sides of a cell together, between two cells beside that, and on each side of the table.
const PADDING: usize = 2;
const SEPARATOR: usize = 1;
const BORDER: usize = 1;

/// Fewest columns of a name while texts can make room instead, and in any case.
const SHORT_NAME: usize = 24;
const MIN_NAME: usize = 12;

/// Fewest columns of a text within its column, and on lines of its own.
const MIN_TEXT: usize = 40;
const MIN_TEXT_BELOW: usize = 16;

/// Cells whose layout depends on the room that there is.
pub(super) struct Table {
    header: Vec<String>,
    kinds: Vec<Kind>,
    rows: Vec<Vec<String>>,
    room: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// To the right, and never cut.
    Number,
    /// Cut in the middle where it has to be.
    Name,
    /// Broken between words where it has to be.
    Text,
}

/// The columns that are in the lines of rows, and how wide they are. The others stand below.
type Layout = Vec<(usize, usize)>;

/// A table with numbers in these columns, and with names in the others.
pub(super) fn table(header: &[&str], numbers: impl RangeBounds<usize>) -> Table {
    let kind = |column| match numbers.contains(&column) {
        true => Kind::Number,
        false => Kind::Name,
    };
    Table {
        header: header.iter().map(|&name| name.to_owned()).collect(),
        kinds: (0..header.len()).map(kind).collect(),
        rows: Vec::new(),
        room: None,
    }
}

impl Table {
    /// Fits the terminal, if that is where these names are shown.
    pub(super) fn fitting(mut self, names: &Names) -> Self {
        self.room = names.terminal_columns;
        self
    }

    /// With texts in the columns of these headers.
    pub(super) fn with_texts(self, texts: &[&str]) -> Self {
        self.with(Kind::Text, texts)
    }

    fn with(mut self, kind: Kind, headers: &[&str]) -> Self {
        for (name, of_column) in iter::zip(&self.header, &mut self.kinds) {
            if headers.contains(&name.as_str()) {
                *of_column = kind;
            }
        }
        self
    }

    /// With names in the columns of these headers.
    pub(super) fn with_names(self, names: &[&str]) -> Self {
        self.with(Kind::Name, names)
    }

    /// Adds a row. Cells that it lacks at its end are empty.
    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    fn layout(&self) -> Layout {
        let mut all: Vec<usize> = (0..self.header.len()).collect();
        let whole = |&column: &usize| (column, self.cell_width(column).max(columns(&self.header[column])));
        let narrow = |&column: &usize| {
            let words = self.header[column].split(' ').map(columns).max();
            (column, self.cell_width(column).max(words.unwrap_or(0)))
        };
        let mut widths: Vec<_> = all.iter().map(whole).collect();
        let Some(room) = self.room else { return widths };
        if total(&widths) <= room {
            return widths;
        }
        widths = all.iter().map(narrow).collect();
        if self.shrink(&mut widths, SHORT_NAME, room) {
            return widths;
        }
        // Texts below, unless nothing else would be left.
        let is_beside = |column: &usize| self.kinds[*column] != Kind::Text;
        if all.iter().any(is_beside) {
            all.retain(is_beside);
        }
        widths = all.iter().map(narrow).collect();
        if self.shrink(&mut widths, SHORT_NAME, room) || self.shrink(&mut widths, MIN_NAME, room) {
            return widths;
        }
        // Names below as well.
        let is_number = |column: &usize| self.kinds[*column] == Kind::Number;
        if all.iter().any(is_number) {
            all.retain(is_number);
        }
        all.iter().map(narrow).collect()
    }

    /// Makes the widest names and texts narrower until they fit, and says whether they do.
    fn shrink(&self, widths: &mut Layout, least_name: usize, room: usize) -> bool {
        let least = |column: usize| match self.kinds[column] {
            Kind::Number => usize::MAX,
            Kind::Name => least_name,
            Kind::Text => MIN_TEXT,
        };
        while total(widths) > room {
            let wide = widths.iter_mut().filter(|(column, width)| *width > least(*column));
            let Some((_, width)) = wide.max_by_key(|(_, width)| *width) else {
                return false;
            };
            *width -= 1;
        }
        true
    }

    /// Columns of the widest line of a column's cells.
    fn cell_width(&self, column: usize) -> usize {
        let lines = self.rows.iter().flat_map(|row| row[column].lines());
        lines.map(columns).max().unwrap_or(0)
    }

    /// The columns of a layout.
    fn in_lines(&self, layout: &[(usize, usize)]) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Dynamic)
            // The constraints below say how wide it is.
            .set_width(u16::MAX)
            .set_header(layout.iter().map(|&(column, _)| &self.header[column]));
        for (&(column, width), drawn) in iter::zip(layout, table.column_iter_mut()) {
            drawn.set_cell_alignment(match self.kinds[column] {
                Kind::Number => CellAlignment::Right,
                Kind::Name | Kind::Text => CellAlignment::Left,
            });
            let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
            drawn.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        for row in &self.rows {
            table.add_row(layout.iter().map(|&(column, width)| match self.kinds[column] {
                Kind::Name => cut(&row[column], width.max(1)),
                Kind::Number | Kind::Text => row[column].clone(),
            }));
        }
        table
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let layout = self.layout();
        let drawn = self.in_lines(&layout).to_string();
        if layout.len() == self.header.len() {
            return out.write_str(&drawn);
        }
        // Below their rows, to the right of the first cell.
        let indent = layout
            .first()
            .map_or(0, |(_, width)| BORDER + width + PADDING + SEPARATOR + 1);
        let room = self
            .room
            .unwrap_or(usize::MAX)
            .saturating_sub(indent)
            .max(MIN_TEXT_BELOW);
        let below = |row: &[String]| {
            let is_below = |column: &usize| layout.iter().all(|(beside, _)| beside != column);
            let cells = (0..row.len()).filter(is_below);
            let lines = cells.flat_map(|column| match self.kinds[column] {
                Kind::Text => broken(&row[column], room),
                Kind::Name | Kind::Number => vec![cut(&row[column], room)],
            });
            let lines = lines.filter(|line| !line.is_empty());
            lines.map(|line| format!("\n{:indent$}{line}", "")).collect::<String>()
        };
        let is_rule = |line: &str| line.starts_with('─');
        let header: Vec<&str> = drawn.lines().take_while(|line| !is_rule(line)).collect();
        write!(out, "{}{}", header.join("\n"), below(&self.header))?;
        let mut lines = drawn.lines().skip(header.len());
        write!(out, "\n{}", lines.next().unwrap_or_default())?;
        iter::zip(lines, &self.rows).try_for_each(|(line, row)| write!(out, "\n{line}{}", below(row)))
    }
}

/// Columns of a whole line.
fn total(widths: &[(usize, usize)]) -> usize {
    let separators = widths.len().saturating_sub(1) * SEPARATOR;
    widths.iter().map(|(_, width)| width + PADDING).sum::<usize>() + separators + 2 * BORDER
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A text in lines of so many columns. A word that is longer has a line to itself.
fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::without_padding;

    fn shown(columns: Option<usize>) -> String {
        let names = Names {
            mangled: false,
            terminal_columns: columns,
        };
        let header = ["block share", "90 % interval", "function", "hottest path"];
        let mut rows = table(&header, ..2).fitting(&names).with_texts(&["hottest path"]);
        let path = "grammar.cpp:120 → 131 → parser::next_token() → 140 → 152 ↺120";
        rows.add_row([
            "24.77 %",
            "19.10–31.03 %",
            "grammar::parser<char>::expression(int)",
            path,
        ]);
        rows.add_row(["1.20 %", "0.90–1.63 %", "main", "main.cpp:8 ■"]);
        without_padding(&rows.to_string())
    }

    #[test]
    fn without_a_terminal_a_row_is_a_line() {
        assert!(shown(None).lines().nth(2).is_some_and(|line| line.ends_with("↺120")));
        assert_eq!(shown(None), shown(Some(200)));
    }

    #[test]
    fn texts_break_within_wide_columns() {
        insta::assert_snapshot!(shown(Some(110)), @"
            block   90 % interval   function                                hottest path
            share
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
          24.77 %   19.10–31.03 %   grammar::parser<ch…>::expression(int)   grammar.cpp:120 → 131 →
                                                                            parser::next_token() → 140 → 152 ↺120
           1.20 %     0.90–1.63 %   main                                    main.cpp:8 ■
        ");
    }

    #[test]
    fn texts_stand_below_where_columns_are_narrow() {
        insta::assert_snapshot!(shown(Some(72)), @"
            block   90 % interval   function
            share
                    hottest path
        ────────────────────────────────────────────────────────────────────
          24.77 %   19.10–31.03 %   grammar::parser<char>::expression(int)
                    grammar.cpp:120 → 131 → parser::next_token() → 140 → 152
                    ↺120
           1.20 %     0.90–1.63 %   main
                    main.cpp:8 ■
        ");
    }

    #[test]
    fn every_line_fits() {
        for room in 40..160 {
            let widest = shown(Some(room)).lines().map(columns).max();
            assert!(widest <= Some(room), "{room}: {widest:?}");
        }
    }
}
