//! Sorted numbers as ranges.

use std::fmt::Write;

/// Ranges, both ends included, of the members of `chosen`. A range goes on as long as no member of `all` is left out.
/// Both are sorted and without duplicates.
pub(super) fn ranges(chosen: &[u32], all: impl IntoIterator<Item = u32>) -> Vec<[u32; 2]> {
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    let mut chosen = chosen.iter().copied().peekable();
    let mut is_open = false;
    for number in all {
        if chosen.next_if_eq(&number).is_none() {
            is_open = false;
            continue;
        }
        match ranges.last_mut() {
            Some(range) if is_open => range[1] = number,
            _ => ranges.push([number, number]),
        }
        is_open = true;
    }
    ranges
}

/// At most `top` ranges as text: `3-6, 8`.
pub(super) fn ranges_to_text(ranges: &[[u32; 2]], top: usize) -> String {
    let mut out = String::new();
    for (at, [first, last]) in ranges.iter().take(top).enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let _ = match first == last {
            true => write!(out, "{comma}{first}"),
            false => write!(out, "{comma}{first}-{last}"),
        };
    }
    if ranges.len() > top {
        out += ", …";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{ranges, ranges_to_text};

    #[test]
    fn numbers_between_which_nothing_is_left_out() {
        let found = ranges(&[2, 5, 9, 11, 12], [1, 2, 5, 7, 9, 10, 11, 12]);
        assert_eq!(found, [[2, 5], [9, 9], [11, 12]]);
        assert_eq!(ranges_to_text(&found, 3), "2-5, 9, 11-12");
        assert_eq!(ranges_to_text(&found, 2), "2-5, 9, …");
        assert_eq!(ranges(&[], 0..9), [] as [[u32; 2]; 0]);
    }
}
