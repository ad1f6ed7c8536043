//! Tables of what `flags use` did, for people.

use super::{BuildSummary, FunctionSummary, OptimisationCounts, Totals};
use crate::names::{Names, demangled_within, meant};
use crate::paths::cut;
use crate::paths_text::with_unit;
use crate::table::table;
use crate::tables::{grouped, without_padding};
use std::fmt::Write;

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SummaryOptions {
    /// Number of functions to list; `None` for all.
    pub top: Option<usize>,
    /// The only function to show, with all remarks: its name or linkage name.
    pub function: Option<String>,
}

/// The build does not have a function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the build has no remarks on function {name}{}", hint(similar))]
pub struct NotInBuild {
    /// The requested name.
    pub name: String,
    /// Names that contain it.
    pub similar: Vec<String>,
}

fn hint(similar: &[String]) -> String {
    match similar {
        [] => ": `pleach summary --top 0` lists all".into(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

impl BuildSummary {
    /// The part that options choose. Totals stay those of the build.
    ///
    /// # Errors
    /// The build does not have the requested function.
    pub fn chosen(mut self, options: &SummaryOptions) -> Result<Self, NotInBuild> {
        self.detailed = options.function.is_some();
        if let Some(name) = &options.function {
            let found = meant(self.functions.iter(), |f| (&f.function, String::new()), name);
            let found = found.map_err(|similar| NotInBuild {
                name: name.clone(),
                similar,
            })?;
            self.functions = found.into_iter().cloned().collect();
        }
        self.hidden = cut(&mut self.functions, options.top);
        Ok(self)
    }

    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        let mut out = String::new();
        if self.detailed {
            for function in &self.functions {
                function.to_text(names, &mut out);
            }
            return without_padding(&out);
        }
        self.totals.to_text(self.records, &mut out);
        if !self.functions.is_empty() {
            let header = [
                "superblocks",
                "copied",
                "if-converted",
                "to branches",
                "split off",
                "inlined",
            ];
            let mut rows = table(&[&header[..], &["profile", "function"]].concat(), ..header.len()).fitting(names);
            for function in &self.functions {
                let d = &function.done;
                let numbers = [
                    d.superblocks,
                    d.copied,
                    d.if_converted,
                    d.selects_to_branches,
                    d.split,
                    d.inlined,
                ];
                let mut row: Vec<String> = numbers.map(number).to_vec();
                row.push(function.treatment.map_or("", super::Treatment::short).into());
                row.push(function.shown(names));
                rows.add_row(row);
            }
            let _ = writeln!(out, "\n{rows}");
            if self.hidden > 0 {
                let _ = writeln!(out, "and {} more: --top 0 lists them all", grouped(self.hidden));
            }
        }
        without_padding(&out)
    }
}

/// Nothing is not a number that people look for.
fn number(value: u64) -> String {
    if value == 0 { String::new() } else { grouped(value) }
}

impl Totals {
    fn to_text(&self, records: usize, out: &mut String) {
        let _ = writeln!(
            out,
            "{} in {}",
            with_unit(self.functions, "function"),
            with_unit(records as u64, "optimisation record")
        );
        let mut rows = table(&["", ""], ..1);
        for (&treatment, &functions) in &self.treatments {
            rows.add_row([grouped(functions), treatment.text().into()]);
        }
        for (value, what) in self.done.lines().into_iter().filter(|&(value, _)| value > 0) {
            rows.add_row([grouped(value), what.into()]);
        }
        for line in rows.to_string().lines().skip(2) {
            let _ = writeln!(out, "{line}");
        }
    }
}

impl OptimisationCounts {
    fn lines(&self) -> [(u64, &'static str); 8] {
        let of =
            |number: u64, one: &'static str, several: &'static str| (number, if number == 1 { one } else { several });
        [
            of(self.superblocks, "superblock formed", "superblocks formed"),
            of(
                self.copied,
                "IR instruction copied for them",
                "IR instructions copied for them",
            ),
            of(
                self.not_profitable,
                "join not copied: less gain than its code costs",
                "superblocks declined: less gain than their code costs",
            ),
            of(
                self.too_large,
                "join not copied: beyond the limits on code size",
                "superblocks declined: beyond the limits on code size",
            ),
            of(self.if_converted, "branch if-converted", "branches if-converted"),
            of(
                self.selects_to_branches,
                "select turned into a branch",
                "selects turned into branches",
            ),
            of(self.split, "block split off", "blocks split off"),
            of(
                self.inlined,
                "call inlined into a function with a remark of pleach",
                "calls inlined into functions with a remark of pleach",
            ),
        ]
    }
}

impl FunctionSummary {
    fn shown(&self, names: &Names) -> String {
        let name = names.shown(&self.function);
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{name}  {file}:{line}"),
            _ => name,
        }
    }

    fn to_text(&self, names: &Names, out: &mut String) {
        let _ = writeln!(out, "{}", self.shown(names));
        for remark in &self.remarks {
            let sign = if remark.done { '+' } else { '-' };
            let text = if names.mangled {
                remark.text.as_str().into()
            } else {
                demangled_within(&remark.text)
            };
            let _ = writeln!(out, "  {sign} {text}");
        }
        if self.done.inlined > 0 {
            let _ = writeln!(out, "  + {} inlined into it", with_unit(self.done.inlined, "call"));
        }
    }
}
