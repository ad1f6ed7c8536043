//! The whole analysis: vectors → observations → flow-consistent counts → profile.

use crate::block_counts::{BlockCounts, InstanceCounts, RecordingCounts};
use crate::coverage::breakpoints::Breakpoints;
use crate::coverage::closure::Known;
use crate::coverage::seeds::{Seeding, View};
use crate::credit::{Crediting, EdgeProbabilities, Flows, credit};
use crate::decode::DecodeReport;
use crate::instances::infer_instance;
use crate::partial_paths;
use crate::partial_paths::{FunctionEvidence, PartialPathCollector};
use crate::prediction::{EdgeExecutions, Predictor};
use crate::program::{ModuleProblem, Program};
use crate::replay::Replay;
use crate::time_bias::Weights;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_ball_larus::Path;
use pleach_collector::vector::{Burst, Compressed, Engine, Process, VectorSet};
use pleach_profile::summary::{HOT_CUTOFF, ProfileSummary};
use pleach_profile::{
    Anchor, CallCrossingPath, CallTargets, EstimatedPath, FunctionProfile, PathWindow, Profile, Provenance,
    RecordedModule, ValueCounts, ValueSite,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Profile counts for each sampled block entry. Values below one sample remain for counts that inference splits.
pub const SCALE: f64 = 1000.0;

/// A profile, and how much of the vectors the address maps explained.
#[derive(Debug)]
pub struct Analysis {
    /// The profile.
    pub profile: Profile,
    /// How much of the vectors the address maps explained.
    pub report: DecodeReport,
}

/// Why vectors cannot be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// No sampled module is annotated.
    #[error("none of the sampled files is annotated: compile with $(pleach flags annotate)")]
    NotAnnotated,
    /// Sampled modules are annotated, but none of them can be read.
    #[error("none of the sampled files that are annotated can be used")]
    Unusable,
    /// Sampled modules are nowhere, or changed, and no other is annotated.
    #[error(
        "some of the sampled files are gone or changed, and none of the others is annotated: name copies of the \
         recorded builds with `pleach analyse --binary`, or compile with $(pleach flags annotate) if they were not \
         annotated"
    )]
    Gone,
    /// Modules were annotated at different anchors.
    #[error("the sampled files are annotated at different anchors: compile all of them with the same --anchor")]
    MixedAnchors,
}

/// Analyses a recording. `weights`: the weight of each branch.
///
/// # Errors
/// No module is annotated and can be used, or modules are annotated at different anchors.
pub fn analyse<'p>(
    program: &'p Program,
    vectors: &'p VectorSet,
    weights: &'p Weights,
) -> Result<Analysis, AnalysisError> {
    let mut analyser = Analyser::new(program, &vectors.processes, weights)?;
    for burst in &vectors.bursts {
        analyser.burst(burst);
    }
    if let Some(compressed) = &vectors.compressed {
        analyser.compressed(compressed);
    }
    analyser.vectors = Some(vectors);
    let provenance = Provenance {
        modules: modules(program, vectors),
        ..provenance(vectors)
    };
    Ok(analyser.finish(provenance))
}

/// Analyses bursts one at a time, each decoded once. Memory is bounded by the program, not by the number of bursts.
pub struct Analyser<'p> {
    program: &'p Program,
    /// The set that the bursts are of, for what breakpoints showed.
    vectors: Option<&'p VectorSet>,
    anchor: Anchor,
    replay: Replay<'p>,
    observers: Observers<'p>,
}

/// All observers of the replay.
type Observers<'p> = (
    (BlockCounts<'p>, PartialPathCollector<'p>),
    (Predictor<'p>, Seeding<'p>),
);

impl<'p> Analyser<'p> {
    /// Begins the analysis of a recording with these processes.
    ///
    /// # Errors
    /// No module is annotated and can be used, or modules are annotated at different anchors.
    pub fn new(program: &'p Program, processes: &'p [Process], weights: &'p Weights) -> Result<Self, AnalysisError> {
        Ok(Self {
            program,
            vectors: None,
            anchor: common_anchor(program)?,
            replay: Replay::new(program),
            observers: (
                (
                    BlockCounts::new(program, weights),
                    PartialPathCollector::new(program, weights, PathWindow::MAX_PATHS),
                ),
                (
                    Predictor::new(program, weights),
                    Seeding::new(program, processes, View::ALL),
                ),
            ),
        })
    }

    /// Adds a burst. Bursts come before windows, in the order of the weights.
    pub fn burst(&mut self, burst: &Burst) {
        self.replay.burst(burst, &mut self.observers);
    }

    /// Adds the windows of a compressed recording.
    pub fn compressed(&mut self, compressed: &Compressed) {
        self.replay.compressed(compressed, &mut self.observers);
    }

    /// The profile. `provenance`: the origin of the recording.
    pub fn finish(self, provenance: Provenance) -> Analysis {
        let Self {
            program,
            vectors,
            anchor,
            replay,
            observers: ((counts, partial_paths), (mut predictor, seeding)),
        } = self;
        let report = replay.report();
        let observations = counts.finish(report);
        let mut functions = all_functions(program);
        let mut instance_profiles = Vec::new();
        let mut executions = EdgeExecutions::default();
        for (module, map) in program.annotated() {
            if let Some(observed) = observations.modules.get(&module) {
                for (&instance, counts) in &observed.instances {
                    let function = map.function_of(instance);
                    let key = (function.cfg.id, function.hash);
                    let inferred_instance = inferred(&function.cfg, counts);
                    let sum = functions.entry(key).or_insert_with(|| empty(&function.cfg));
                    sum.add(&inferred_instance);
                    let edges = inferred_instance.profile.edges.iter();
                    executions.insert((module, instance), edges.map(|&count| count as f64 / SCALE).collect());
                    instance_profiles.push(inferred_instance.profile);
                }
            }
        }
        let provenance = Provenance {
            hot_instance_count: ProfileSummary::from_functions(&instance_profiles)
                .min_count(HOT_CUTOFF)
                .unwrap_or(0),
            ..provenance
        };
        add_call_targets(program, &observations, &mut functions);
        add_length_predictions(&mut predictor, &mut functions);
        add_switch_predictions(&mut predictor, &mut functions);
        add_values(program, &observations, &mut functions);
        let mut evidence = partial_paths.finish(report);
        evidence.cap_clusters(provenance.bursts);
        let graphs = graphs(program);
        add_paths(&evidence, anchor, &graphs, &mut functions);
        for (key, predictions) in predictor.finish(&executions) {
            if let Some(function) = functions.get_mut(&key) {
                function.profile.predictions = predictions.into_iter().map(|p| p.scaled(SCALE)).collect();
            }
        }
        let mut seeds = seeding.finish();
        let breakpoints = vectors.map(|vectors| Breakpoints::read(program, vectors, &mut seeds));
        let mut coverage = Known::from_program(program).close(&seeds);
        if let Some(breakpoints) = breakpoints {
            breakpoints.complete(&mut coverage);
        }
        for (key, covered) in coverage.functions {
            if let Some(function) = functions.get_mut(&key) {
                function.profile.coverage = covered.blocks;
                function.profile.counted = covered.counted;
            }
        }
        let profile = Profile {
            provenance,
            scale: SCALE,
            anchor,
            functions: functions
                .into_values()
                .map(|function| function.finish(&graphs))
                .collect(),
            events: Vec::new(),
            vectors: None,
        };
        Analysis { profile, report }
    }
}

/// The profile of a recording without annotated modules: its provenance, and no functions.
pub fn without_functions(vectors: &VectorSet) -> Profile {
    Profile {
        provenance: provenance(vectors),
        scale: SCALE,
        ..Profile::default()
    }
}

/// Why no module can be used.
fn without_annotated(problems: &[ModuleProblem]) -> AnalysisError {
    match problems {
        [] => AnalysisError::NotAnnotated,
        _ if problems.iter().any(|problem| matches!(problem, ModuleProblem::Map(_))) => AnalysisError::Unusable,
        _ => AnalysisError::Gone,
    }
}

fn common_anchor(program: &Program) -> Result<Anchor, AnalysisError> {
    let mut anchors = program.annotated().map(|(_, map)| map.anchor);
    let anchor = anchors.next().ok_or_else(|| without_annotated(&program.problems))?;
    if anchors.any(|other| other != anchor) {
        return Err(AnalysisError::MixedAnchors);
    }
    Ok(anchor)
}

/// The sums of a function's counts.
struct Accumulator {
    profile: FunctionProfile,
    /// Weighted block entries.
    samples: f64,
    targets: BTreeMap<u32, FxHashMap<FunctionGuid, f64>>,
}

type Functions = BTreeMap<(FunctionId, CfgHash), Accumulator>;
type Graphs<'p> = FxHashMap<(FunctionId, CfgHash), &'p Cfg>;

fn empty(cfg: &Cfg) -> Accumulator {
    Accumulator {
        profile: FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name.clone(),
            samples: 0,
            blocks: vec![0; cfg.blocks.len()],
            edges: vec![0; cfg.edge_count()],
            ..FunctionProfile::default()
        },
        samples: 0.0,
        targets: BTreeMap::new(),
    }
}

/// The inferred counts of one inline instance.
fn inferred(cfg: &Cfg, observed: &InstanceCounts) -> Accumulator {
    let counts = infer_instance(cfg, observed);
    let mut inferred_instance = empty(cfg);
    (inferred_instance.profile.blocks, inferred_instance.profile.edges) = (counts.blocks, counts.edges);
    inferred_instance.samples = observed.blocks.iter().flatten().sum();
    inferred_instance
}

impl Accumulator {
    /// Adds an inline instance's counts.
    fn add(&mut self, inferred_instance: &Self) {
        let sums = self.profile.blocks.iter_mut().chain(&mut self.profile.edges);
        for (sum, count) in sums.zip(
            inferred_instance
                .profile
                .blocks
                .iter()
                .chain(&inferred_instance.profile.edges),
        ) {
            *sum = sum.saturating_add(*count);
        }
        self.samples += inferred_instance.samples;
    }

    fn finish(mut self, graphs: &Graphs<'_>) -> FunctionProfile {
        self.profile.samples = self.samples.round() as u64;
        if self.profile.samples > 0 {
            let graph = graphs.get(&(self.profile.id, self.profile.cfg_hash));
            self.profile.graph = graph.map(|&cfg| Box::new(cfg.clone()));
        }
        self.profile.call_targets = self
            .targets
            .into_iter()
            .map(|(call, targets)| {
                let mut targets: Vec<_> = targets
                    .into_iter()
                    .map(|(guid, samples)| (guid, (samples * SCALE) as u64))
                    .collect();
                targets.sort_by_key(|&(guid, count)| (std::cmp::Reverse(count), guid));
                CallTargets { call, targets }
            })
            .collect();
        self.profile
    }
}

/// The graphs of the manifests.
fn graphs(program: &Program) -> Graphs<'_> {
    program
        .annotated()
        .flat_map(|(_, map): (_, &AddressMap)| &map.functions)
        .map(|f| ((f.cfg.id, f.hash), &f.cfg))
        .collect()
}

/// Every function of the manifests, so that the compiler distinguishes "never sampled" from "unknown".
fn all_functions(program: &Program) -> Functions {
    program
        .annotated()
        .flat_map(|(_, map): (_, &AddressMap)| &map.functions)
        .map(|f| ((f.cfg.id, f.hash), empty(&f.cfg)))
        .collect()
}

fn add_switch_predictions(predictor: &mut Predictor<'_>, functions: &mut Functions) {
    for (key, switches) in predictor.switches() {
        let Some(accumulator) = functions.get_mut(&key) else {
            continue;
        };
        for (block, outcomes) in switches {
            let site = ValueSite::SwitchPrediction(block);
            accumulator.profile.values.push(prediction(site, outcomes));
        }
    }
}

fn add_length_predictions(predictor: &mut Predictor<'_>, functions: &mut Functions) {
    for (key, calls) in predictor.lengths() {
        let Some(accumulator) = functions.get_mut(&key) else {
            continue;
        };
        for (call, outcomes) in calls {
            let site = ValueSite::LengthPrediction(call);
            accumulator.profile.values.push(prediction(site, outcomes));
        }
    }
}

/// Bursts, and weighted executions that were mispredicted and predicted, as a profile has them.
fn prediction(site: ValueSite, (bursts, [mispredicted, predicted]): (u64, [f64; 2])) -> ValueCounts {
    let mut prediction = ValueCounts {
        site,
        bursts,
        values: vec![(0, (mispredicted * SCALE) as u64), (1, (predicted * SCALE) as u64)],
        others: 0,
    };
    prediction.values.retain(|&(_, count)| count > 0);
    prediction.keep_most_frequent();
    prediction
}

fn add_values(program: &Program, observations: &RecordingCounts, functions: &mut Functions) {
    for (module, map) in program.annotated() {
        let Some(observed) = observations.modules.get(&module) else {
            continue;
        };
        for (&(function, site), counts) in &observed.values {
            let function = &map.functions[function.0 as usize];
            if let Some(accumulator) = functions.get_mut(&(function.cfg.id, function.hash)) {
                let values = counts.values.iter();
                let mut operand = ValueCounts {
                    site,
                    bursts: counts.bursts,
                    values: values
                        .map(|(&value, samples)| (value, (samples * SCALE) as u64))
                        .collect(),
                    others: 0,
                };
                operand.keep_most_frequent();
                accumulator.profile.values.push(operand);
            }
        }
    }
    for accumulator in functions.values_mut() {
        accumulator.profile.values.sort_by_key(|operand| operand.site);
    }
}

fn add_call_targets(program: &Program, observations: &RecordingCounts, functions: &mut Functions) {
    for (module, map) in program.annotated() {
        let Some(observed) = observations.modules.get(&module) else {
            continue;
        };
        for (&(instance, call, target), &count) in &observed.targets {
            let function = map.function_of(instance);
            if let Some(accumulator) = functions.get_mut(&(function.cfg.id, function.hash)) {
                *accumulator
                    .targets
                    .entry(call)
                    .or_default()
                    .entry(target.guid)
                    .or_default() += count;
            }
        }
    }
}

/// Adds estimated paths, in the unit of the profile's counts.
fn add_paths(evidence: &partial_paths::Evidence, anchor: Anchor, graphs: &Graphs<'_>, functions: &mut Functions) {
    let flow = |key: &(FunctionId, CfgHash)| {
        let (graph, known) = (graphs.get(key)?, functions.get(key)?);
        Some((*key, EdgeProbabilities::from_counts(graph, &known.profile.edges)))
    };
    let flows: Flows = evidence.functions.keys().filter_map(flow).collect();
    for function in credit(evidence, anchor, Crediting::Em, &flows).functions {
        if let Some(accumulator) = functions.get_mut(&(function.id, function.cfg_hash)) {
            let scaled = function.paths.into_iter().map(|path| EstimatedPath {
                count: path.count * SCALE,
                low: path.low * SCALE,
                high: path.high * SCALE,
                ..path
            });
            accumulator.profile.paths = scaled.collect();
            if let Some(observed) = evidence.functions.get(&(function.id, function.cfg_hash)) {
                accumulator.profile.windows = windows(observed, &accumulator.profile.paths);
                accumulator.profile.called = called(observed, &accumulator.profile.paths);
            }
        }
    }
}

/// Paths from the entry with the last blocks of their callers, and their estimated executions.
fn called(observed: &FunctionEvidence, paths: &[EstimatedPath]) -> Vec<CallCrossingPath> {
    let known: FxHashSet<&Path> = paths.iter().map(|p| &p.path).collect();
    let least = paths.iter().map(|p| p.count).sum::<f64>() * PathWindow::MIN_SHARE;
    let all = observed
        .called
        .sorted()
        .into_iter()
        .map(|(caller, path, times)| CallCrossingPath {
            caller: caller.clone(),
            path: path.clone(),
            count: times * SCALE,
        });
    all.filter(|c| c.count > least && known.contains(&c.path)).collect()
}

/// Windows of consecutive paths with their estimated executions, given those of each path. Sorted by their paths.
fn windows(observed: &FunctionEvidence, paths: &[EstimatedPath]) -> Vec<PathWindow> {
    let graph = &observed.graph.paths;
    let numbered = paths.iter().filter_map(|p| Some((graph.number_of(&p.path)?, p)));
    let known: FxHashMap<u64, &EstimatedPath> = numbered.collect();
    let least = paths.iter().map(|p| p.count).sum::<f64>() * PathWindow::MIN_SHARE;
    let mut all = Vec::new();
    for length in 2..=PathWindow::MAX_PATHS {
        let estimated = observed
            .windows
            .estimated(length, |first| Some(known.get(&first)?.count));
        for window in estimated.into_iter().filter(|w| w.count > least) {
            let of = window.paths.iter().map(|number| Some(known.get(number)?.path.clone()));
            if let Some(paths) = of.collect() {
                all.push(PathWindow {
                    paths,
                    count: window.count,
                });
            }
        }
    }
    all.sort_unstable_by(|a, b| a.paths.cmp(&b.paths));
    all
}

fn provenance(vectors: &VectorSet) -> Provenance {
    let epochs = || vectors.compressed.iter().flat_map(|compressed| &compressed.epochs);
    let compressed = epochs().flat_map(|epoch| epoch.engines.keys().copied());
    let all = vectors.bursts.iter().map(|b| b.engine).chain(compressed);
    let mut engines: Vec<&str> = all.map(engine_name).collect();
    engines.sort_unstable();
    engines.dedup();
    Provenance {
        commands: vectors
            .processes
            .iter()
            .filter(|p| p.parent.is_none())
            .map(|p| p.command.clone())
            .collect(),
        engines: engines.into_iter().map(str::to_owned).collect(),
        program_cpu_seconds: vectors.processes.iter().map(|p| p.program_cpu_seconds).sum(),
        own_cpu_seconds: vectors.processes.iter().map(|p| p.own_cpu_seconds).sum(),
        bursts: vectors.burst_count(),
        taken_branches: vectors
            .bursts
            .iter()
            .map(|b| b.count.saturating_mul(b.branches.len() as u64))
            .chain(epochs().map(|e| e.branches))
            .fold(0, u64::saturating_add),
        hot_instance_count: 0,
        sums: None,
        modules: Vec::new(),
    }
}

/// The annotated files of a recording.
fn modules(program: &Program, vectors: &VectorSet) -> Vec<RecordedModule> {
    let modules = program.annotated().filter_map(|(id, map)| {
        let module = vectors.modules.get(id.0 as usize)?;
        // Where it was read, if another file was named in its place.
        let path = match map.binary.build_id.is_some() && map.binary.path.is_absolute() {
            true => &map.binary.path,
            false => &module.path,
        };
        Some(RecordedModule {
            path: path.display().to_string(),
            build_id: module.build_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        })
    });
    let mut modules: Vec<_> = modules.collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Step => "step",
        Engine::RunAhead => "run-ahead",
        Engine::Lbr => "lbr",
        Engine::Perf => "perf.data",
    }
}
