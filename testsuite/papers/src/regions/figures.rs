//! What equal crediting makes of region paths, beside exact counts: accuracy, overlap, matching ratios and false hot
//! paths, for vectors of several lengths, with and without cold-edge elimination and obvious paths.

use super::cold::Cold;
use super::credit::{EqualOptions, Portions, equal};
use super::extension::split_partial_path;
use super::lengths::{Lengths, Visit};
use super::overmatching::{OverMatching, RegionReport, compare};
use super::unique::{BRANCHES, unique_by_runs};
use anyhow::Result;
use pleach_analysis::decode::{Decoder, Event};
use pleach_analysis::partial_paths::{FunctionEvidence, PartialPathOptions, collect_partial_paths};
use pleach_analysis::program::Program;
use pleach_analysis::regions::profile::RegionProfile;
use pleach_analysis::regions::{DEFAULT_THRESHOLD, Regions};
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_ball_larus::Mode;
use pleach_collector::vector::{Burst, VectorSet};
use pleach_harness::bench::Bench;
use pleach_harness::exact_counts::count;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::recorder::record_vectors;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// From this flow on, paths are hot.
const HOT: f64 = 0.00125;

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct RegionOptions {
    /// The input that is recorded, and counted exactly.
    pub on: InputKind,
    /// Budget, as `pleach record` takes it.
    pub overhead: String,
    /// Runs that go into the recording.
    pub repeat: u32,
}

/// How partial paths become region paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// Branches of a vector; `None`: whole bursts.
    pub window: Option<usize>,
    /// Whether partial paths are extended.
    pub extend: bool,
    /// Whether cold edges are eliminated.
    pub cold: bool,
    /// Whether obvious paths are credited first.
    pub obvious: bool,
}

impl How {
    /// The papers' vectors, without any improvement.
    const PLAIN: Self = Self {
        window: Some(BRANCHES),
        extend: false,
        cold: false,
        obvious: false,
    };
}

/// The figures of a workload.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The workload's name.
    pub workload: String,
    /// The papers' tables 2 and 3.
    pub lengths: Lengths,
    /// Different vectors of the first runs, by their number.
    pub unique: Vec<u64>,
    /// The result of crediting its vectors.
    pub credited: Vec<(How, Credited)>,
}

/// Records and counts each workload.
///
/// # Errors
/// A build or a run fails.
pub fn figures(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    options: &RegionOptions,
) -> Result<Vec<Figures>> {
    let bar = progress::bar(workloads.len(), "regions");
    let mut all = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        all.push(of_workload(bench, workload, pleach, options)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(all)
}

fn of_workload(bench: &Bench, workload: &Workload, pleach: &Pleach, options: &RegionOptions) -> Result<Figures> {
    let counting = Variant::Counted(pleach.clone(), Mode::Paths).produce(bench, workload)?;
    let counted = count(bench, &counting, options.on)?;
    let annotated = Variant::Annotated(pleach.clone()).produce(bench, workload)?;
    let invocation = bench.invocation(workload, options.on)?;
    let vectors = record_vectors(&annotated, &invocation, pleach, &options.overhead, options.repeat)?;
    let exact = RegionProfile::exact(&counted.exact.functions, DEFAULT_THRESHOLD);
    let program = Program::read(&vectors.modules, &Finder::default());
    let mut credited = Vec::new();
    for window in [Some(BRANCHES), Some(16), None] {
        for extend in [false, true] {
            let partial = Partial::from_vectors(&program, &vectors, window, extend);
            for (cold, obvious) in [(false, false), (true, false), (false, true), (true, true)] {
                let options = EqualOptions {
                    cold: cold.then(Cold::default),
                    obvious,
                };
                let how = How {
                    window,
                    extend,
                    cold,
                    obvious,
                };
                credited.push((how, partial.credit(&options, &exact)));
            }
        }
    }
    Ok(Figures {
        workload: workload.name.clone(),
        lengths: lengths(&program, &vectors),
        unique: unique_by_runs(&vectors),
        credited,
    })
}

/// The papers' tables 2 and 3, for vectors of four branches.
fn lengths(program: &Program, vectors: &VectorSet) -> Lengths {
    let mut regions: BTreeMap<(FunctionId, CfgHash), Regions> = BTreeMap::new();
    for function in program.annotated().flat_map(|(_, map)| &map.functions) {
        let key = (function.cfg.id, function.hash);
        regions.insert(key, Regions::new(&function.cfg, DEFAULT_THRESHOLD));
    }
    let maps: BTreeMap<u32, _> = program.annotated().map(|(module, map)| (module.0, map)).collect();
    let mut decoder = Decoder::new(program);
    let mut lengths = Lengths::default();
    let mut seen = HashSet::new();
    for burst in &vectors.bursts {
        for branches in burst.branches.chunks_exact(BRANCHES) {
            let vector = Burst {
                branches: branches.to_vec(),
                end: None,
                ..burst.clone()
            };
            let mut visits = Vec::new();
            decoder.burst(&vector, &mut |_, event| {
                if let Event::Block {
                    module,
                    frame,
                    instance,
                    block,
                    ..
                } = event
                {
                    let function = maps[&module.0].function_of(instance);
                    visits.push(Visit {
                        function: &regions[&(function.cfg.id, function.hash)],
                        activation: frame.0 << 32 | u64::from(instance.0),
                        block,
                    });
                }
            });
            lengths.add(&visits, burst.count as f64, seen.insert(branches));
        }
    }
    lengths
}

/// The partial paths of each function.
struct Partial(Vec<(Regions, Portions)>);

impl Partial {
    fn from_vectors(program: &Program, vectors: &VectorSet, window: Option<usize>, extend: bool) -> Self {
        let graphs: BTreeMap<_, _> = program
            .annotated()
            .flat_map(|(_, map)| &map.functions)
            .map(|function| ((function.cfg.id, function.hash), &function.cfg))
            .collect();
        let evidence = collect_partial_paths(
            program,
            vectors,
            &Weights::equal(),
            &PartialPathOptions {
                vector_length: window,
                ..PartialPathOptions::default()
            },
        );
        let of_function = |(key, function): (_, &FunctionEvidence)| {
            let regions = Regions::new(graphs.get(key)?, DEFAULT_THRESHOLD);
            let mut portions = Portions::new();
            for observation in &function.observations {
                let weight = f64::from(observation.times[0]) / observation.alternatives.len() as f64;
                for piece in observation.alternatives.iter().flatten() {
                    for portion in split_partial_path(&regions, piece, extend) {
                        *portions.entry(portion).or_default() += weight;
                    }
                }
            }
            Some((regions, portions))
        };
        Self(evidence.functions.iter().filter_map(of_function).collect())
    }

    fn credit(&self, options: &EqualOptions, exact: &RegionProfile) -> Credited {
        let mut estimate = RegionProfile::default();
        let mut matching = BTreeMap::new();
        for (regions, portions) in &self.0 {
            for found in equal(regions, portions, options, &mut estimate) {
                let entry = regions.all()[found.region.index()].entry();
                matching.insert((regions.id, regions.cfg_hash, entry), found);
            }
        }
        let hot = exact.hot(HOT);
        let flow: f64 = hot.iter().map(|(_, flow)| flow).sum();
        let hottest: BTreeSet<_> = estimate.by_flow().into_iter().map(|p| p.0).take(hot.len()).collect();
        let found: f64 = hot.iter().filter(|(path, _)| hottest.contains(path)).map(|p| p.1).sum();
        let shares: BTreeMap<_, f64> = exact.shares().collect();
        let common = |(path, flow): (_, f64)| shares.get(path).map_or(0.0, |exact| flow.min(*exact));
        let overlap = estimate.shares().map(common).sum();
        let all: f64 = matching.values().map(|m| m.weight).sum();
        let unique: f64 = matching.values().map(|m| m.unique).sum();
        Credited {
            wall_accuracy: found / flow,
            overlap,
            unique: unique / all,
            over_matching: compare(&estimate, exact, &matching, HOT),
        }
    }
}

/// A profile by equal crediting, beside the exact one.
#[derive(Clone, Debug)]
pub struct Credited {
    /// Flow of the hot paths that are among as many of the hottest estimated ones, as a share of all hot flow.
    pub wall_accuracy: f64,
    /// Common flow.
    pub overlap: f64,
    /// Share of the partial paths that match one region path.
    pub unique: f64,
    /// The effect of over-matching.
    pub over_matching: OverMatching,
}

impl Credited {
    /// Mean number of paths that a partial path matches, by flow.
    fn matching_ratio(&self) -> f64 {
        let known = self
            .over_matching
            .regions
            .iter()
            .filter_map(|r| Some((r.flow, r.ratio?)));
        let (flow, sum) = known.fold((0.0, 0.0), |(all, sum), (flow, ratio)| (all + flow, sum + flow * ratio));
        sum / flow
    }
}

/// The sections: lengths, then crediting, then over-matching by ratio.
pub fn sections(figures: &[Figures]) -> Vec<Section> {
    vec![
        Section::new(
            "lengths",
            "IR instructions of vectors of four branches, after each step",
            lengths_table(figures),
        ),
        Section::new(
            "spans",
            "Different vectors of four branches, by the function boundaries that they span",
            spans_table(figures),
        ),
        Section::new(
            "unique",
            "Different vectors of four branches, by the number of runs",
            unique_table(figures),
        ),
        Section::new(
            "crediting",
            "Equal crediting beside exact counts",
            crediting_table(figures),
        ),
        Section::new(
            "over_matching",
            "Regions by matching ratio, vectors of four branches",
            by_ratio_table(figures),
        ),
    ]
}

fn lengths_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("initial", "initial"),
        ("extended", "extended"),
        ("functions", "split at functions"),
        ("loops", "at loops"),
        ("regions", "at regions"),
    ]);
    for Figures { workload, lengths, .. } in figures {
        let mut row = vec![workload.as_str().into()];
        row.extend(
            [
                lengths.initial,
                lengths.extended,
                lengths.functions,
                lengths.loops,
                lengths.regions,
            ]
            .map(|mean| Cell::Number(mean.get(), 1)),
        );
        table.push(row);
    }
    table
}

fn spans_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("0", "0"),
        ("1", "1"),
        ("2", "2"),
        ("3", "3"),
        ("more", "more"),
        ("crossing_percent", "at least one, %"),
    ]);
    for Figures { workload, lengths, .. } in figures {
        let (few, more) = lengths.spans.split_at(lengths.spans.len().min(4));
        let all: u64 = lengths.spans.iter().sum();
        let mut row: Vec<Cell> = vec![workload.as_str().into()];
        row.extend((0..4).map(|spans| few.get(spans).copied().unwrap_or(0).into()));
        row.push(more.iter().sum::<u64>().into());
        let within = few.first().copied().unwrap_or(0);
        row.push(Cell::Number(100.0 * (all - within) as f64 / all as f64, 1));
        table.push(row);
    }
    table
}

fn unique_table(figures: &[Figures]) -> Table {
    let most = figures.iter().map(|of| of.unique.len()).max().unwrap_or(0);
    let numbers: Vec<usize> = [1, 2, 5, 10, 15, 20].into_iter().filter(|&runs| runs <= most).collect();
    let names = numbers.iter().map(|runs| (runs.to_string(), runs.to_string()));
    let mut table = Table::new(
        [("workload".to_owned(), "workload".to_owned())]
            .into_iter()
            .chain(names),
    );
    for Figures { workload, unique, .. } in figures {
        let of_runs = |&runs: &usize| unique.get(runs - 1).map_or_else(|| "".into(), |&known| known.into());
        table.push(
            [workload.as_str().into()]
                .into_iter()
                .chain(numbers.iter().map(of_runs)),
        );
    }
    table
}

fn crediting_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("branches", "branches"),
        ("extend", "extended"),
        ("cold", "cold edges"),
        ("obvious", "obvious"),
        ("wall_accuracy", "accuracy"),
        ("overlap", "overlap"),
        ("ratio", "matching ratio"),
        ("unique", "unique"),
        ("false_flow", "false flow"),
        ("false_hot", "false hot"),
        ("hot", "of"),
    ]);
    let yes = |is: bool| Cell::from(if is { "yes" } else { "no" });
    for figures in figures {
        for (how, credited) in &figures.credited {
            let found = &credited.over_matching;
            table.push([
                figures.workload.as_str().into(),
                how.window.map_or_else(|| "all".into(), |w| (w as u64).into()),
                yes(how.extend),
                yes(how.cold),
                yes(how.obvious),
                Cell::Number(credited.wall_accuracy, 3),
                Cell::Number(credited.overlap, 3),
                Cell::Number(credited.matching_ratio(), 2),
                Cell::Number(credited.unique, 3),
                Cell::Number(found.false_flow, 3),
                (found.false_hot as u64).into(),
                (found.hot as u64).into(),
            ]);
        }
    }
    table
}

/// How false hot paths lie in regions of low and of high matching ratios.
fn by_ratio_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("from", "ratio from"),
        ("regions", "regions"),
        ("flow", "flow"),
        ("hot", "hot"),
        ("false_hot", "false hot"),
        ("false_flow", "false flow"),
    ]);
    for figures in figures {
        let plain = figures.credited.iter().find(|(how, _)| *how == How::PLAIN);
        let Some((_, credited)) = plain else { continue };
        for (from, to) in [(0.0, 1.5), (1.5, 4.0), (4.0, 16.0), (16.0, f64::INFINITY)] {
            let inside = |r: &&RegionReport| r.ratio.is_some_and(|ratio| (from..to).contains(&ratio));
            let regions: Vec<_> = credited.over_matching.regions.iter().filter(inside).collect();
            table.push([
                figures.workload.as_str().into(),
                Cell::Number(from, 1),
                (regions.len() as u64).into(),
                Cell::Number(regions.iter().map(|r| r.flow).sum(), 3),
                regions.iter().map(|r| r.hot as u64).sum::<u64>().into(),
                regions.iter().map(|r| r.false_hot as u64).sum::<u64>().into(),
                Cell::Number(regions.iter().map(|r| r.false_flow).sum(), 3),
            ]);
        }
    }
    table
}
