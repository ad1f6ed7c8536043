//! Single decisions, each alone, beside the gain that its cost model predicts.
//!
//! The base takes none: it has branch weights only. One decision more, in one file, makes the variant. Instructions,
//! taken branches and mispredictions (in cachegrind's model) are counted; times are of several random orders of
//! functions, so that the figure does not depend on where code happens to be placed. Many decisions change no code, such
//! as a branch that turns out not to be convertible: they are not measured.

use crate::compare;
use anyhow::{Context, Result};
use pleach_harness::bench::Bench;
use pleach_harness::build::{Binary, BuildConfig, Change};
use pleach_harness::counts::Counts;
use pleach_harness::paired::paired_ratios;
use pleach_harness::pleach_command::plugin_flags;
use pleach_harness::size::code_digest;
use pleach_harness::stats::{Interval, bootstrap_median};
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::{PleachUse, Variant, random_order};
use pleach_harness::workload::Workload;
use pleach_harness::{parallel, progress};
use std::collections::BTreeMap;
use std::fs;
use xxhash_rust::xxh3::xxh3_64;

/// Options of measuring decisions.
#[derive(Clone, Debug)]
pub struct DecisionOptions {
    /// Optimisations whose decisions are measured; all if empty.
    pub optimisations: Vec<String>,
    /// Maximum number of decisions of an optimisation in a program.
    pub max: usize,
    /// Random orders of functions.
    pub orders: u32,
    /// Decisions are timed that change instructions or taken branches by at least this share.
    pub time_above: f64,
    /// Inputs, pairs and counts.
    pub measure: compare::ComparisonOptions,
}

/// A decision, as the plugin lists it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The source file's name.
    pub file: String,
    /// The optimisation.
    pub optimisation: String,
    /// The function's linkage name; empty for a decision about the whole file.
    pub function: String,
    /// Its number among the function's decisions of this optimisation.
    pub number: u32,
    /// The predicted gain as a share of the program's time, if the optimisation has a cost model.
    pub predicted: Option<f64>,
}

impl Decision {
    /// From a line of the list.
    ///
    /// # Errors
    /// The line has another form.
    pub fn parse(line: &str) -> Result<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, optimisation, function, number, predicted] = fields[..] else {
            anyhow::bail!("not a decision: '{line}'");
        };
        let name = file.rsplit('/').next().unwrap_or(file);
        Ok(Self {
            file: name.to_owned(),
            optimisation: optimisation.to_owned(),
            function: function.to_owned(),
            number: number.parse().with_context(|| format!("in '{line}'"))?,
            predicted: predicted.parse().ok(),
        })
    }

    /// The option that takes it alone.
    pub fn option(&self) -> String {
        format!("-pleach-only={}:{}:{}", self.optimisation, self.function, self.number)
    }
}

/// A decision's effect. Ratios are to the program with branch weights only.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The program.
    pub workload: String,
    /// The decision.
    pub decision: Decision,
    /// Instructions executed.
    pub instructions: f64,
    /// Taken branches.
    pub taken_branches: f64,
    /// Mispredictions in the model, as a difference for each thousand instructions of the base.
    pub mispredicts: f64,
    /// CPU time.
    pub cpu: Option<Interval>,
    /// Whether the machine code differs at all.
    pub changes_code: bool,
}

impl Measured {
    /// The larger of the changes of instructions and taken branches, as a share.
    fn change(&self) -> f64 {
        (self.instructions - 1.0).abs().max((self.taken_branches - 1.0).abs())
    }

    /// Whether the time's interval excludes that nothing changed, and if so, whether the program became faster.
    pub fn verdict(&self) -> Option<bool> {
        let cpu = self.cpu?;
        (cpu.low > 1.0 || cpu.high < 1.0).then_some(cpu.value < 1.0)
    }
}

/// Measures the decisions of programs.
///
/// # Errors
/// A build or a run fails.
pub fn decisions(
    bench: &Bench,
    workloads: &[&Workload],
    all: &PleachUse,
    options: &DecisionOptions,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for workload in workloads {
        let none = all.with("none", &["-pleach-only=none".to_owned()]);
        let config = Variant::PleachUse(none.clone()).config(bench, workload)?;
        let base = bench.build(workload, &config)?;
        let found = list(bench, workload, &config)?;
        measured.extend(measure(bench, workload, (&base, &config), &found, options)?);
    }
    Ok(measured)
}

/// The decisions of a program that are to be measured.
fn list(bench: &Bench, workload: &Workload, config: &BuildConfig) -> Result<Vec<Decision>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("decisions");
    let mut listing = config.clone();
    listing.out_dir = folder.path().join("builds");
    listing
        .cflags
        .extend(plugin_flags(&[format!("-pleach-decisions={}", file.display())]));
    bench.build(workload, &listing)?;
    let text = fs::read_to_string(&file).unwrap_or_default();
    text.lines().map(Decision::parse).collect()
}

/// The decisions of each optimisation with the largest predicted gains; of those without a prediction, some that do
/// not depend on where they are in the program.
fn choose(found: &[Decision], options: &DecisionOptions) -> Vec<Decision> {
    let mut by_optimisation: BTreeMap<&str, Vec<&Decision>> = BTreeMap::new();
    for decision in found {
        let wanted = options.optimisations.is_empty() || options.optimisations.contains(&decision.optimisation);
        if wanted {
            by_optimisation
                .entry(&decision.optimisation)
                .or_default()
                .push(decision);
        }
    }
    let mut chosen = Vec::new();
    for (_, mut decisions) in by_optimisation {
        let gain = |decision: &Decision| decision.predicted.unwrap_or(0.0);
        let chance = |decision: &Decision| xxh3_64(decision.option().as_bytes());
        decisions.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then_with(|| chance(a).cmp(&chance(b))));
        chosen.extend(decisions.into_iter().take(options.max).cloned());
    }
    chosen
}

fn measure(
    bench: &Bench,
    workload: &Workload,
    base: (&Binary, &BuildConfig),
    found: &[Decision],
    options: &DecisionOptions,
) -> Result<Vec<Measured>> {
    let chosen = choose(found, options);
    let bar = progress::bar(chosen.len(), "decisions");
    let measured = parallel::map(&chosen, options.measure.jobs, |decision| {
        bar.set_message(format!("{} {}", workload.name, decision.option()));
        let measured = counts(bench, workload, base, decision, options)?;
        bar.inc(1);
        Ok(measured)
    });
    bar.finish_and_clear();
    let mut measured = measured?;
    if options.measure.pairs > 0 {
        let bar = progress::bar(measured.len(), "timing");
        for one in measured
            .iter_mut()
            .filter(|one| one.changes_code && one.change() >= options.time_above)
        {
            bar.set_message(format!("{} {}", workload.name, one.decision.option()));
            one.cpu = Some(time(bench, workload, base, &one.decision, options)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
    Ok(measured)
}

/// The program with one decision, or with none.
fn built(
    bench: &Bench,
    workload: &Workload,
    base: (&Binary, &BuildConfig),
    decision: Option<&Decision>,
    ldflags: &[String],
) -> Result<Binary> {
    let cflags = decision.map_or_else(Vec::new, |decision| plugin_flags(&[decision.option()]));
    let change = Change {
        label: decision.map_or("decision:none", |_| "decision"),
        source: decision.map_or("", |decision| &decision.file),
        cflags: &cflags,
        ldflags,
    };
    bench.rebuild(workload, base, &change)
}

fn counts(
    bench: &Bench,
    workload: &Workload,
    base: (&Binary, &BuildConfig),
    decision: &Decision,
    options: &DecisionOptions,
) -> Result<Measured> {
    let kind = options.measure.count_on.context("decisions are counted")?;
    let count = |binary: &Binary| -> Result<Counts> {
        let mut counts = bench.counts(binary, kind, options.measure.simulation)?;
        counts.taken_branches = Some(bench.taken_branches(binary, kind)?);
        Ok(counts)
    };
    let none = built(bench, workload, base, None, &[])?;
    let one = built(bench, workload, base, Some(decision), &[])?;
    if code_digest(&none.path)? == code_digest(&one.path)? {
        return Ok(Measured {
            workload: workload.name.clone(),
            decision: decision.clone(),
            instructions: 1.0,
            taken_branches: 1.0,
            mispredicts: 0.0,
            cpu: None,
            changes_code: false,
        });
    }
    let (before, after) = (count(&none)?, count(&one)?);
    let ratio = |of: fn(&Counts) -> Option<u64>| match (of(&before), of(&after)) {
        (Some(before), Some(after)) => after as f64 / before as f64,
        _ => f64::NAN,
    };
    let mispredicts = |counts: &Counts| counts.mispredicts().map_or(f64::NAN, |n| n as f64);
    Ok(Measured {
        workload: workload.name.clone(),
        decision: decision.clone(),
        instructions: ratio(|counts| Some(counts.instructions)),
        taken_branches: ratio(|counts| counts.taken_branches),
        mispredicts: (mispredicts(&after) - mispredicts(&before)) / before.instructions as f64 * 1e3,
        cpu: None,
        changes_code: true,
    })
}

/// The ratio of times, over all pairs of all orders of functions.
fn time(
    bench: &Bench,
    workload: &Workload,
    base: (&Binary, &BuildConfig),
    decision: &Decision,
    options: &DecisionOptions,
) -> Result<Interval> {
    let invocation = bench.invocation(workload, options.measure.time_on)?;
    let pairs = options.measure.pairs.div_ceil(options.orders as usize);
    let mut ratios = Vec::new();
    for order in 1..=options.orders {
        let ldflags = random_order(order);
        let none = built(bench, workload, base, None, &ldflags)?;
        let one = built(bench, workload, base, Some(decision), &ldflags)?;
        ratios.extend(paired_ratios(&none, &one, &invocation, pairs)?);
    }
    Ok(bootstrap_median(&ratios))
}

/// A table of all decisions, and one of the optimisations.
pub fn sections(measured: &[Measured]) -> Vec<Section> {
    let mut table = Table::new([
        ("workload", "workload"),
        ("optimisation", "optimisation"),
        ("function", "function"),
        ("number", "no."),
        ("predicted", "predicted gain %"),
        ("instructions", "instructions ×"),
        ("taken_branches", "taken ×"),
        ("mispredicts", "mispredicts ‰"),
        ("cpu", "CPU time × [95 %]"),
    ]);
    for one in measured {
        let decision = &one.decision;
        table.push([
            one.workload.as_str().into(),
            decision.optimisation.as_str().into(),
            decision.function.as_str().into(),
            Cell::Count(u64::from(decision.number)),
            decision
                .predicted
                .map_or(Cell::Missing, |gain| Cell::Number(gain * 100.0, 4)),
            Cell::Number(one.instructions, 4),
            Cell::Number(one.taken_branches, 4),
            Cell::Number(one.mispredicts, 4),
            one.cpu.map_or(Cell::Missing, Cell::Ratio),
        ]);
    }
    vec![
        Section::new("decisions", "Single decisions, against branch weights only", table),
        Section::new(
            "optimisations",
            "By optimisation: significant differences in time",
            optimisations(measured),
        ),
    ]
}

fn optimisations(measured: &[Measured]) -> Table {
    let mut table = Table::new([
        ("optimisation", "optimisation"),
        ("decisions", "decisions"),
        ("changing", "of these changing code"),
        ("significant", "significant"),
        ("faster", "of these faster"),
        ("worst", "slowest ×"),
        ("more_instructions", "with > .1 % more instructions"),
        ("most_instructions", "most instructions ×"),
    ]);
    let mut by_optimisation: BTreeMap<&str, Vec<&Measured>> = BTreeMap::new();
    for one in measured {
        by_optimisation.entry(&one.decision.optimisation).or_default().push(one);
    }
    for (optimisation, own) in by_optimisation {
        let resolved: Vec<bool> = own.iter().filter_map(|one| one.verdict()).collect();
        let times = own.iter().filter_map(|one| one.cpu).map(|cpu| cpu.value);
        let worst = times.fold(f64::NAN, f64::max);
        let more = own.iter().filter(|one| one.instructions > 1.001).count();
        let most = own.iter().map(|one| one.instructions).fold(0.0, f64::max);
        let faster = resolved.iter().filter(|&&faster| faster).count();
        table.push([
            optimisation.into(),
            Cell::Count(own.len() as u64),
            Cell::Count(own.iter().filter(|one| one.changes_code).count() as u64),
            Cell::Count(resolved.len() as u64),
            Cell::Count(faster as u64),
            if worst.is_nan() {
                Cell::Missing
            } else {
                Cell::Number(worst, 3)
            },
            Cell::Count(more as u64),
            Cell::Number(most, 4),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(optimisation: &str, number: u32, predicted: Option<f64>) -> Decision {
        Decision {
            file: "a.c".into(),
            optimisation: optimisation.into(),
            function: "f".into(),
            number,
            predicted,
        }
    }

    #[test]
    fn lines_are_parsed() {
        let parsed = Decision::parse("src/a.c\tsuperblock\tf\t2\t0.001500").unwrap();
        assert_eq!(parsed, decision("superblock", 2, Some(0.0015)));
        assert_eq!(parsed.option(), "-pleach-only=superblock:f:2");
        assert_eq!(
            Decision::parse("a.c\tsize\tf\t0\t-").unwrap(),
            decision("size", 0, None)
        );
        assert!(Decision::parse("a.c superblock").is_err());
    }

    #[test]
    fn the_largest_predictions_of_each_optimisation_are_chosen() {
        let found = [
            decision("a", 0, Some(0.1)),
            decision("a", 1, Some(0.3)),
            decision("a", 2, Some(0.2)),
            decision("b", 0, None),
        ];
        let options = DecisionOptions {
            optimisations: Vec::new(),
            max: 2,
            orders: 1,
            time_above: 0.0,
            measure: compare::ComparisonOptions::default(),
        };
        let chosen = choose(&found, &options);
        let numbers: Vec<(&str, u32)> = chosen.iter().map(|d| (d.optimisation.as_str(), d.number)).collect();
        assert_eq!(numbers, [("a", 1), ("a", 2), ("b", 0)]);
    }

    #[test]
    fn optimisations_are_summed_up() {
        let one = |optimisation: &str, instructions, low, value, high| Measured {
            workload: "w".into(),
            decision: decision(optimisation, 0, Some(0.01)),
            instructions,
            taken_branches: 1.0,
            mispredicts: 0.0,
            cpu: Some(Interval { value, low, high }),
            changes_code: instructions != 1.0,
        };
        let measured = [
            one("superblock", 0.99, 0.97, 0.98, 0.99),
            one("superblock", 1.02, 1.01, 1.02, 1.03),
            one("superblock", 1.0, 0.99, 1.0, 1.01),
        ];
        insta::assert_snapshot!(optimisations(&measured));
    }
}
