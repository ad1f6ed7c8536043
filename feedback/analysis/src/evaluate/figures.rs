//! Figures of one recording against exact counts.

use crate::accuracy::decoded::decoded;
use crate::accuracy::regions::RegionFlow;
use crate::accuracy::shares::{calibration, wall};
use crate::accuracy::truth::{Estimated, FunctionKey, Unmatched};
use crate::accuracy::{HOT, PathKey, Shares, Spread, Truth};
use crate::coverage;
use crate::coverage::measure::Executed;
use crate::coverage::seeds::View;
use crate::program::Program;
use pleach_annotate::id::BlockIndex;
use pleach_collector::record::Recording;
use pleach_profile::Covered;
use pleach_profile::path_profile::PathProfile;
use std::collections::{BTreeMap, BTreeSet};

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A share of a whole, to four decimals.
    Fraction,
    /// A small share of a whole, in per cent.
    Percent,
    /// A number of things or seconds.
    Number,
}

/// Every figure: key, meaning, kind.
pub const FIGURES: [(&str, &str, Kind); 25] = [
    ("wall_accuracy", "Wall accuracy", Kind::Fraction),
    ("wall_accuracy_regions", "Wall accuracy, region paths", Kind::Fraction),
    ("overlap", "overlap", Kind::Fraction),
    ("overlap_regions", "overlap, region paths", Kind::Fraction),
    (
        "wall_accuracy_classes",
        "Wall accuracy, classes of paths",
        Kind::Fraction,
    ),
    ("overlap_classes", "overlap, classes of paths", Kind::Fraction),
    ("overlap_ceiling", "overlap of two recordings", Kind::Fraction),
    ("calibration", "calibration of 90 % intervals", Kind::Fraction),
    ("overhead", "overhead", Kind::Percent),
    (
        "taken_branches_per_cpu_second",
        "taken branches per CPU-second",
        Kind::Number,
    ),
    ("coverage_recall", "coverage recall", Kind::Fraction),
    ("coverage_recall_proved", "coverage recall, proved", Kind::Fraction),
    (
        "coverage_recall_hottest_30",
        "coverage recall, hottest 30 %",
        Kind::Fraction,
    ),
    (
        "coverage_recall_executions",
        "coverage recall, by executions",
        Kind::Fraction,
    ),
    ("coverage_false_positives", "false positives, proved", Kind::Percent),
    (
        "coverage_false_positives_predicted",
        "false positives, predicted",
        Kind::Percent,
    ),
    ("decode_yield", "decode yield", Kind::Fraction),
    ("program_cpu_seconds", "CPU-seconds of the program", Kind::Number),
    ("bursts", "bursts", Kind::Number),
    ("taken_branches", "taken branches", Kind::Number),
    ("executed_paths", "executed paths", Kind::Number),
    ("hot_paths", "hot paths", Kind::Number),
    ("hot_flow", "share of hot paths", Kind::Fraction),
    ("excluded_exact", "executions of functions not annotated", Kind::Percent),
    ("excluded_estimated", "estimate of functions not counted", Kind::Percent),
];

/// Values by the keys of [`FIGURES`]; undefined ones are omitted.
pub type Values = BTreeMap<&'static str, f64>;

/// Figures of one estimate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Figures {
    /// Values by key.
    pub values: Values,
    /// Estimated flow, for the ceiling.
    pub shares: Shares<PathKey>,
    /// Functions that were estimated but not counted.
    pub unmatched: Unmatched,
}

/// Exact counts, prepared for comparison with estimates.
#[derive(Debug)]
pub struct Comparison {
    truth: Truth,
    flow: Shares<PathKey>,
    regions: RegionFlow,
    unmatched: Unmatched,
}

impl Comparison {
    /// Counts of a program's annotated functions.
    pub fn new(mut truth: Truth, program: &Program) -> Self {
        let functions = program.annotated().flat_map(|(_, map)| &map.functions);
        let annotated: BTreeSet<FunctionKey> = functions.map(|f| (f.cfg.id, f.hash)).collect();
        let unmatched = truth.restrict(&annotated);
        Self {
            flow: truth.flow(),
            regions: RegionFlow::new(&truth),
            truth,
            unmatched,
        }
    }

    /// Compares an estimate.
    pub fn estimate(&self, mut profile: PathProfile) -> Figures {
        let unmatched = self.truth.take_uncounted(&mut profile);
        let estimated = Estimated::new(&profile);
        let regions = self.regions.estimated(&profile);
        // Classes of paths that no branch of the program distinguishes: they differ only in blocks without code.
        let functions = profile.functions.iter();
        let shown: BTreeMap<FunctionKey, &[bool]> =
            functions.map(|f| ((f.id, f.cfg_hash), f.shown.as_slice())).collect();
        let class = |key: &PathKey| {
            let mut class = key.clone();
            if let Some(shown) = shown.get(&key.function) {
                let is_shown = |block: &BlockIndex| shown.get(block.index()).is_none_or(|&shown| shown);
                class.path.blocks.retain(is_shown);
            }
            class
        };
        let (classes, estimated_classes) = (self.flow.grouped(class), estimated.shares.grouped(class));
        let hot = self.flow.hot(HOT);
        let mut values = Values::from([
            ("overlap", self.flow.overlap(&estimated.shares)),
            ("overlap_regions", self.regions.exact.overlap(&regions)),
            ("overlap_classes", classes.overlap(&estimated_classes)),
            ("executed_paths", self.flow.len() as f64),
            ("hot_paths", hot.len() as f64),
            ("hot_flow", hot.iter().map(|key| self.flow.get(key)).sum()),
            ("excluded_exact", self.unmatched.share),
            ("excluded_estimated", unmatched.share),
        ]);
        let more = [
            ("wall_accuracy", wall(&self.flow, &estimated.shares, HOT)),
            ("wall_accuracy_regions", wall(&self.regions.exact, &regions, HOT)),
            ("wall_accuracy_classes", wall(&classes, &estimated_classes, HOT)),
            ("calibration", calibration(&self.flow, &estimated.intervals, HOT)),
        ];
        values.extend(more.into_iter().filter_map(|(key, value)| Some((key, value?))));
        Figures {
            values,
            shares: estimated.shares,
            unmatched,
        }
    }

    /// Reasons why the figures cover less than all functions.
    pub fn warnings(&self, figures: &Figures) -> Vec<String> {
        let sides = [
            (&self.unmatched, "were executed but are not in the annotated program"),
            (
                &figures.unmatched,
                "were sampled but not counted by the instrumented program",
            ),
        ];
        let warning = |(unmatched, what): (&Unmatched, &str)| {
            let first = unmatched.functions.first()?;
            Some(format!(
                "{} functions {what} with the same control flow, and are left out ({first}, …)",
                unmatched.functions.len()
            ))
        };
        sides.into_iter().filter_map(warning).collect()
    }
}

/// The coverage of a recording against exact coverage, with whole bursts and the blocks that they imply. Recall is the
/// covered share of executed instructions; false positives are shares of the covered blocks.
pub fn coverage(program: &Program, recording: &Recording, executed: &Executed) -> Values {
    let coverage = coverage::from_vectors(program, &recording.vectors, View::ALL, true);
    let recall = |least| executed.recall(&coverage, least).share();
    let said = coverage.functions.values().flat_map(|function| &function.blocks);
    let said: Vec<Covered> = said.copied().filter(|&c| c > Covered::Unknown).collect();
    let proved = said.iter().filter(|&&c| c >= Covered::ByDominance).count();
    let wrong = executed.false_positives(&coverage);
    let wrong_proved = wrong.iter().filter(|wrong| wrong.is_proved()).count();
    let share = |wrong: usize, of: usize| wrong as f64 / of.max(1) as f64;
    Values::from([
        ("coverage_recall", recall(Covered::PredictedByDominance)),
        ("coverage_recall_proved", recall(Covered::ByDominance)),
        (
            "coverage_recall_hottest_30",
            executed.recall_of_hottest(&coverage, &[0.3])[0].share(),
        ),
        (
            "coverage_recall_executions",
            executed.recall_of_executions(&coverage, Covered::PredictedByDominance),
        ),
        ("coverage_false_positives", share(wrong_proved, proved)),
        (
            "coverage_false_positives_predicted",
            share(wrong.len() - wrong_proved, said.len() - proved),
        ),
    ])
}

/// The cost and yield of a recording, independent of the estimator.
pub fn recording(program: &Program, recording: &Recording) -> Values {
    let stats = &recording.stats;
    let mut values = Values::from([
        ("overhead", stats.overhead),
        ("program_cpu_seconds", stats.program_cpu_seconds),
        ("bursts", stats.bursts as f64),
        ("taken_branches", stats.taken_branches as f64),
    ]);
    if stats.program_cpu_seconds > 0.0 {
        let rate = stats.taken_branches as f64 / stats.program_cpu_seconds;
        values.insert("taken_branches_per_cpu_second", rate);
    }
    if let Some(share) = decoded(program, &recording.vectors).share() {
        values.insert("decode_yield", share);
    }
    values
}

/// Each figure over all recordings.
pub fn spreads(each: &[Figures]) -> BTreeMap<&'static str, Spread> {
    let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (&key, &value) in each.iter().flat_map(|figures| &figures.values) {
        values.entry(key).or_default().push(value);
    }
    values.insert("overlap_ceiling", ceilings(each));
    let spread = |(key, values): (_, Vec<f64>)| Some((key, Spread::from_values(&values)?));
    values.into_iter().filter_map(spread).collect()
}

/// Overlaps of each recording's estimate with the next one's; empty for a single recording.
fn ceilings(each: &[Figures]) -> Vec<f64> {
    // Of two recordings, the next of the second is the first: the same pair.
    let pairs = match each.len() {
        0 | 1 => 0,
        2 => 1,
        many => many,
    };
    let pair = |at: usize| each[at].shares.overlap(&each[(at + 1) % each.len()].shares);
    (0..pairs).map(pair).collect()
}
