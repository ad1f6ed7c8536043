//! Colours and bars in tables, for terminals. It works on the text of a report, so that reports are the same everywhere.

/// Escape sequences.
const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";

/// Shares from here on are red, and green from [`GREEN_SHARE`] on, as in perf.
const RED_SHARE: f64 = 5.0;
const GREEN_SHARE: f64 = 0.5;

/// Columns of a bar for 100 %.
const BAR_COLUMNS: usize = 10;

/// Columns by which [`decorated`] makes a table wider.
pub const BAR_ROOM: usize = BAR_COLUMNS + 1;

/// Headers of tables in bold; the share that a row begins with in colour, and with a bar beside it if they are wanted.
pub fn decorated(text: &str, has_bars: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |at: usize| {
        lines
            .get(at)
            .is_some_and(|line| !line.is_empty() && line.chars().all(|c| c == '─'))
    };
    let mut out = String::with_capacity(text.len() * 2);
    let mut at = 0;
    while at < lines.len() {
        if !is_rule(at + 1) {
            out += lines[at];
            out.push('\n');
            at += 1;
            continue;
        }
        // A table ends with an empty line, or with the text.
        let rows = lines[at..].iter().take_while(|line| !line.is_empty()).count();
        table(&lines[at..at + rows], has_bars, &mut out);
        at += rows;
    }
    out
}

/// A header, a rule, and rows.
fn table(lines: &[&str], has_bars: bool, out: &mut String) {
    let column = lines
        .iter()
        .skip(2)
        .find_map(|line| first_share(line))
        .map(|(_, end, _)| end);
    let room = if has_bars && column.is_some() { BAR_ROOM } else { 0 };
    for (number, line) in lines.iter().enumerate() {
        // The first cells are right-aligned, so they end in the same column.
        let split = column.map_or(line.len(), |column| byte_of_column(line, column));
        let (first, rest) = line.split_at(split);
        *out += &match (number, first_share(line)) {
            (0, _) => format!("{BOLD}{first}{:room$}{rest}{PLAIN}", ""),
            (1, _) => format!("{line}{}", "─".repeat(room)),
            (_, Some((_, end, share))) if Some(end) == column => {
                let colour = colour_of(share);
                let end = if colour.is_empty() { "" } else { PLAIN };
                let bar = if has_bars {
                    format!(" {}", bar(share))
                } else {
                    String::new()
                };
                format!("{colour}{first}{end}{bar}{rest}")
            }
            _ => format!("{first}{:room$}{rest}", ""),
        };
        out.push('\n');
    }
}

/// Where a column begins in a line, in bytes.
fn byte_of_column(line: &str, column: usize) -> usize {
    line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

fn colour_of(share: f64) -> &'static str {
    match share {
        share if share >= RED_SHARE => RED,
        share if share >= GREEN_SHARE => GREEN,
        _ => "",
    }
}

/// The percentage that a row begins with: its place in the line, and its value.
fn first_share(line: &str) -> Option<(usize, usize, f64)> {
    let start = line.len() - line.trim_start().len();
    let number = line[start..].split(' ').next()?;
    let end = start + number.len() + " %".len();
    let is_share = line.get(start + number.len()..end) == Some(" %");
    let share = number.parse().ok().filter(|_| is_share)?;
    Some((start, end, share))
}

/// A bar of eighths of columns, as wide as one of 100 %.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 100.0) / 100.0 * BAR_COLUMNS as f64 * 8.0).round() as usize;
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    format!("{bar:BAR_COLUMNS$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;
    use crate::tables::{percent, without_padding};

    fn plain(text: &str) -> String {
        [BOLD, RED, GREEN, PLAIN]
            .iter()
            .fold(text.to_owned(), |text, code| text.replace(code, ""))
    }

    #[test]
    fn shares_get_bars_and_columns_stay_aligned() {
        let mut rows = table(&["share", "function"], ..1);
        for (share, name) in [(0.625, "main"), (0.01, "é"), (0.0, "rare")] {
            rows.add_row([percent(share), name.to_owned()]);
        }
        rows.add_row(["", "others"]);
        let text = without_padding(&format!("about\n\n{rows}\n\nthe end\n"));
        let decorated = decorated(&text, true);
        insta::assert_snapshot!(plain(&decorated), @r"
        about

            share              function
        ─────────────────────────────────
          62.50 % ██████▎      main
           1.00 % ▏            é
           0.00 %              rare
                               others

        the end
        ");
        assert!(decorated.contains(&format!("{RED}  62.50 %{PLAIN}")) && decorated.contains(BOLD));
        assert!(decorated.contains(&format!("{GREEN}   1.00 %{PLAIN}")));
        let without_bars = super::decorated(&text, false);
        assert_eq!(plain(&without_bars), text);
        assert!(without_bars.contains(&format!("{RED}  62.50 %{PLAIN}")));
    }

    #[test]
    fn tables_without_shares_get_bold_headers_only() {
        let mut rows = table(&["block", "count"], 0..);
        rows.add_row(["0", "12"]);
        let text = without_padding(&format!("{rows}\n"));
        assert_eq!(plain(&decorated(&text, true)), text);
        assert_eq!(decorated("no table\n", true), "no table\n");
    }
}
