//! Cells of tables, as people read them.

use std::fmt::Display;

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

/// Three digits and the unit of a thousand, a million, …, as `llvm-cov` prints counts.
pub(super) fn abbreviated(value: u64) -> String {
    let digits = value.to_string();
    let units = ['k', 'M', 'G', 'T', 'P', 'E'];
    let whole = (digits.len() - 1) % 3 + 1;
    match (digits.len() - 1) / 3 {
        0 => digits,
        thousands if whole == 3 => format!("{}{}", &digits[..3], units[thousands - 1]),
        thousands => format!("{}.{}{}", &digits[..whole], &digits[whole..3], units[thousands - 1]),
    }
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// An interval of shares as percentages.
pub(super) fn percent_range(low: f64, high: f64) -> String {
    format!("{:.2}–{:.2} %", low * 100.0, high * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{abbreviated, grouped};

    #[test]
    fn digits() {
        let values = [0, 7, 999, 1000, 12_345, 123_456, 4_315_000, u64::MAX];
        assert_eq!(
            values.map(abbreviated).join(" "),
            "0 7 999 1.00k 12.3k 123k 4.31M 18.4E"
        );
        assert_eq!(values.map(grouped)[6], "4 315 000");
    }
}
