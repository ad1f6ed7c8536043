//! The layout of tables for people.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::fmt::Display;
use std::ops::RangeBounds;

/// Only a line below the header, so that rows are easy to search with `grep`.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// A table with right-aligned columns at these positions.
pub(super) fn table(header: &[&str], right: impl RangeBounds<usize>) -> Table {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.to_vec());
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if right.contains(&at) {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        });
    }
    table
}

/// Removes the padding of cells at the ends of lines.
pub(super) fn without_padding(text: &str) -> String {
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Digits in groups of three.
pub(super) fn grouped(value: impl Display) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// An interval of shares as percentages.
pub(super) fn percent_range(low: f64, high: f64) -> String {
    format!("{:.2}–{:.2} %", low * 100.0, high * 100.0)
}
