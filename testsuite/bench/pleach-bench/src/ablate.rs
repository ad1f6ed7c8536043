//! The contribution of each optimisation: all against all but one, from one recording.

use crate::compare::{self, ComparisonOptions, Row};
use crate::matrix;
use anyhow::{Context, Result};
use pleach_harness::bench::Bench;
use pleach_harness::table::Section;
use pleach_harness::variant::{PleachUse, Variant};
use pleach_harness::workload::Workload;

/// An optimisation of `pleach flags use`, and the options that turn it off or replace it with a control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optimisation {
    /// Short name of the build.
    pub name: String,
    /// Options of the plugin.
    pub options: Vec<String>,
}

/// The plugin's optimisations by name. `random-paths` is a control: superblocks of paths with random weights.
const OPTIMISATIONS: [(&str, &[&str]); 14] = [
    ("superblocks=0", &["-pleach-superblocks=0"]),
    ("placement=0", &["-pleach-placement=0"]),
    (
        "superblocks=0,placement=0",
        &["-pleach-superblocks=0", "-pleach-placement=0"],
    ),
    ("if-conversion=0", &["-pleach-if-conversion=0"]),
    ("select-to-branch=0", &["-pleach-select-to-branch=0"]),
    ("switches=0", &["-pleach-switches=0"]),
    ("align-entries=0", &["-pleach-align-entries=0"]),
    ("align-loops=0", &["-pleach-align-loops=0"]),
    ("small-callees-first=0", &["-pleach-small-callees-first=0"]),
    ("memory-lengths=0", &["-pleach-memory-lengths=0"]),
    ("divisors=0", &["-pleach-divisors=0"]),
    ("keep-recursive-calls=0", &["-pleach-keep-recursive-calls=0"]),
    ("icall-promotion=0", &["-pleach-icall-promotion=0"]),
    ("random-paths", &["-pleach-random-paths=1"]),
];

impl Optimisation {
    /// All that are known.
    pub fn all() -> Vec<Self> {
        let optimisation = |(name, options): &(&str, &[&str])| Self {
            name: (*name).to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        OPTIMISATIONS.iter().map(optimisation).collect()
    }

    /// The known optimisation of that name, or a new one from `NAME=OPTION,OPTION…`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(known) = Self::all().into_iter().find(|optimisation| optimisation.name == text) {
            return Ok(known);
        }
        let options = text
            .split_once("=-")
            .map(|(name, options)| (name, format!("-{options}")));
        let (name, options) = options.filter(|(name, _)| !name.is_empty()).with_context(|| {
            let names: Vec<&str> = OPTIMISATIONS.iter().map(|(name, _)| *name).collect();
            format!(
                "no optimisation is called '{text}' (there are {}; or NAME=-OPTION,-OPTION…)",
                names.join(", ")
            )
        })?;
        Ok(Self {
            name: name.to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
        })
    }

    /// The build without it.
    pub fn without(&self, all: &PleachUse) -> PleachUse {
        all.with(&self.name, &self.options)
    }
}

/// Measures everything on (a row's variant) against all but one (its base).
///
/// # Errors
/// The plugin does not know an option, or as [`compare::compare`].
pub fn ablate(
    bench: &Bench,
    workloads: &[&Workload],
    all: &PleachUse,
    optimisations: &[Optimisation],
    options: &ComparisonOptions,
) -> Result<Vec<Row>> {
    let variants = without(all, optimisations)?;
    let untimed = ComparisonOptions {
        pairs: 0,
        ..options.clone()
    };
    let base = Variant::PleachUse(all.clone());
    let mut rows = compare::compare(bench, workloads, &base, &variants, &untimed)?;
    for row in &mut rows {
        std::mem::swap(&mut row.base, &mut row.variant);
    }
    compare::time(bench, &mut rows, options)?;
    Ok(rows)
}

/// The builds without each optimisation, whose options the plugin must know.
///
/// # Errors
/// It does not.
pub fn without(all: &PleachUse, optimisations: &[Optimisation]) -> Result<Vec<Variant>> {
    let build = |optimisation: &Optimisation| {
        let without = optimisation.without(all);
        without.check_options()?;
        Ok(Variant::PleachUse(without))
    };
    optimisations.iter().map(build).collect()
}

/// A table for each measure: everything on ÷ all but the column's optimisation.
pub fn sections(rows: &[Row]) -> Vec<Section> {
    matrix::sections(rows, |row| row.base.binary.label.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimisations_are_known_or_given() {
        let known = Optimisation::parse("superblocks=0").unwrap();
        assert_eq!(known.options, ["-pleach-superblocks=0"]);
        let given = Optimisation::parse("both=-pleach-a=0,-pleach-b=1").unwrap();
        assert_eq!((given.name.as_str(), given.options.len()), ("both", 2));
        assert_eq!(given.options, ["-pleach-a=0", "-pleach-b=1"]);
        let error = Optimisation::parse("superblock").unwrap_err().to_string();
        assert!(error.contains("placement=0"), "{error}");
        assert!(Optimisation::parse("=-x").is_err());
    }
}
