//! The tables of Ball & Larus's *Efficient Path Profiling* (MICRO-29), for the workloads: counter
//! increments, properties of paths, how well edges predict them, and how many paths two inputs share.
//!
//! A loop of one block to itself that has a counter of its own counts as a path of one block.

use crate::bit_tracing::BitTracing;
use crate::edge_predictor::Predictor;
use anyhow::{Context, Result, bail};
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_ball_larus::counts::exact::ExactFunction;
use pleach_ball_larus::{Mode, Path, Storage};
use pleach_harness::bench::Bench;
use pleach_harness::build::Binary;
use pleach_harness::counts::Simulation;
use pleach_harness::exact_counts::{Counted, count};
use pleach_harness::pleach_command::Pleach;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use pleach_harness::{parallel, progress};
use std::collections::BTreeMap;

/// Counters of the largest array: pleach's, and the paper's: what an immediate operand of its machine holds (§5).
const ARRAY_LIMITS: [u64; 2] = [1 << 16, 4096];

/// Options of the tables.
#[derive(Clone, Debug)]
pub struct PathTableOptions {
    /// The input whose paths are counted.
    pub on: InputKind,
    /// Whether cachegrind counts the instructions of that input.
    pub instructions: bool,
    /// Whether cachegrind simulates the first-level caches.
    pub caches: bool,
    /// Workloads at a time.
    pub jobs: usize,
}

/// Paths of one input of one workload.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The workload's name.
    pub workload: String,
    /// What paths are like.
    pub paths: PathFigures,
    /// What is counted.
    pub increments: Increments,
    /// Bit tracing beside path numbering, with this project's limit of arrays and with that of the paper's hardware.
    pub tracing: [(u64, BitTracing); 2],
    /// Misses of the program as it is, with counted edges, and with counted paths.
    pub misses: Option<[Misses; 3]>,
    /// What the training input shows of it.
    pub trained: Trained,
}

/// What paths are like.
#[derive(Clone, Debug, Default)]
pub struct PathFigures {
    /// Functions that were executed.
    pub functions: u64,
    /// Different paths that were executed.
    pub paths: u64,
    /// The most that one function has.
    pub most: u64,
    /// Blocks of the longest path.
    pub longest_blocks: u64,
    /// Instructions of the path that has most.
    pub longest_instructions: u64,
    /// Executions of all paths.
    pub executed: Weighted,
    /// Executions of the paths that edges predict entirely.
    pub predicted: Weighted,
    /// Executions of the predicted beginnings of all paths.
    pub prefixes: Weighted,
}

/// Executions, and what was executed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighted {
    /// Different paths.
    pub paths: u64,
    /// Executions.
    pub executions: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Their IR instructions.
    pub instructions: u64,
}

/// First-level cache misses in cachegrind's model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Misses {
    /// Instructions.
    pub instructions: u64,
    /// Of the instruction cache.
    pub i1: u64,
    /// Of the data cache.
    pub d1: u64,
}

/// How often something is counted.
#[derive(Clone, Debug, Default)]
pub struct Increments {
    /// Paths.
    pub paths: u64,
    /// Of these, in hash tables.
    pub hashed: u64,
    /// Edges, where they are counted instead.
    pub edges: u64,
    /// Instructions that the plain program executes.
    pub instructions: Option<u64>,
}

/// What the training input shows of another one's paths.
#[derive(Clone, Debug, Default)]
pub struct Trained {
    /// Paths of the training input.
    pub train: Weighted,
    /// Paths of the other input.
    pub all: Weighted,
    /// Those of the other input that training executed too.
    pub common: Weighted,
    /// Static instructions of all the other input's paths, and of the common ones.
    pub static_instructions: (u64, u64),
}

impl Weighted {
    fn add(&mut self, function: &ExactFunction, path: &Path, count: u64) {
        self.paths += 1;
        self.add_part(function, path, path.blocks.len(), count);
    }

    fn add_part(&mut self, function: &ExactFunction, path: &Path, blocks: usize, count: u64) {
        self.executions += count;
        self.blocks += count * blocks as u64;
        self.instructions += count * instructions(function, path, blocks);
    }
}

/// IR instructions of a path's first blocks.
fn instructions(function: &ExactFunction, path: &Path, blocks: usize) -> u64 {
    let blocks = path.blocks.iter().take(blocks);
    blocks
        .filter_map(|block| function.cfg.blocks.get(block.index()))
        .map(|block| u64::from(block.instructions))
        .sum()
}

/// Builds the workloads, runs them on the training input and another one, and sums up.
pub fn figures(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    options: &PathTableOptions,
) -> Result<Vec<Figures>> {
    let bar = progress::bar(workloads.len(), "counting");
    let side_by_side = bench.with_jobs(1);
    let figures = parallel::map(workloads, options.jobs, |workload| {
        bar.set_message(workload.name.clone());
        let figures = of_workload(&side_by_side, workload, pleach, options)?;
        bar.inc(1);
        Ok(figures)
    });
    bar.finish_and_clear();
    figures
}

fn of_workload(bench: &Bench, workload: &Workload, pleach: &Pleach, options: &PathTableOptions) -> Result<Figures> {
    let paths = Variant::Counted(pleach.clone(), Mode::Paths).produce(bench, workload)?;
    let edges = Variant::Counted(pleach.clone(), Mode::Edges).produce(bench, workload)?;
    let counted = whole(bench, &paths, options.on)?;
    let train = whole(bench, &paths, InputKind::Train)?;
    let instructions = if options.instructions {
        let plain = Variant::O2.produce(bench, workload)?;
        let counts = bench.counts(&plain, options.on, Simulation::InstructionsOnly)?;
        Some(counts.instructions)
    } else {
        None
    };
    let misses = |binary: &Binary| -> Result<Misses> {
        let counts = bench.counts(binary, options.on, Simulation::CachesAndBranches)?;
        Ok(Misses {
            instructions: counts.instructions,
            i1: counts.i1_misses.context("cachegrind counted no I1 misses")?,
            d1: counts.d1_misses.context("cachegrind counted no D1 misses")?,
        })
    };
    let misses = if options.caches {
        let plain = Variant::O2.produce(bench, workload)?;
        Some([misses(&plain)?, misses(&edges)?, misses(&paths)?])
    } else {
        None
    };
    let tracing = ARRAY_LIMITS.map(|limit| {
        let mut tracing = BitTracing::default();
        for function in counted.exact.functions.iter().filter(|f| f.is_executed()) {
            tracing.add(function, limit);
        }
        (limit, tracing)
    });
    Ok(Figures {
        workload: workload.name.clone(),
        tracing,
        misses,
        paths: PathFigures::from_counted(&counted),
        increments: Increments {
            instructions,
            edges: increments(&whole(bench, &edges, options.on)?, |_| true),
            hashed: increments(&counted, |storage| storage == Storage::Hash),
            paths: increments(&counted, |_| true),
        },
        trained: Trained::from_training(&train, &counted),
    })
}

/// What a run counted, if nothing of it is lost.
fn whole(bench: &Bench, binary: &Binary, kind: InputKind) -> Result<Counted> {
    let counted = count(bench, binary, kind)?;
    if let Some(problem) = counted.problems().next() {
        bail!("{} ({}) on '{kind}': {problem}", binary.workload, binary.label);
    }
    Ok(counted)
}

/// The sum of all counters of some storage.
fn increments(counted: &Counted, wanted: impl Fn(Storage) -> bool) -> u64 {
    let units = counted.counts.units.values();
    let functions = units.flat_map(|(unit, counts)| unit.functions.iter().zip(&counts.functions));
    functions
        .filter(|(function, _)| wanted(function.storage))
        .flat_map(|(_, counts)| counts.iter().map(|(_, count)| count))
        .sum()
}

impl PathFigures {
    fn from_counted(counted: &Counted) -> Self {
        let mut this = Self::default();
        for function in counted.exact.functions.iter().filter(|f| f.is_executed()) {
            let predictor = Predictor::new(function);
            let paths = function.acyclic();
            this.functions += 1;
            this.paths += paths.len() as u64;
            this.most = this.most.max(paths.len() as u64);
            for (path, count) in paths.iter().filter_map(|p| Some((p.path.first()?, p.count))) {
                let (right, whole) = predictor.predicted(path);
                let blocks = path.blocks.len();
                this.longest_blocks = this.longest_blocks.max(blocks as u64);
                this.longest_instructions = this.longest_instructions.max(instructions(function, path, blocks));
                this.executed.add(function, path, count);
                this.prefixes.add_part(function, path, right, count);
                if whole {
                    this.predicted.add(function, path, count);
                }
            }
        }
        this
    }
}

impl Trained {
    fn from_training(train: &Counted, other: &Counted) -> Self {
        let mut this = Self::default();
        let mut trained: BTreeMap<(FunctionId, CfgHash), Vec<Path>> = BTreeMap::new();
        let key = |function: &ExactFunction| (function.cfg.id, function.cfg.hash());
        for function in &train.exact.functions {
            let paths = trained.entry(key(function)).or_default();
            for exact in function.acyclic() {
                for path in exact.path {
                    this.train.add(function, &path, exact.count);
                    paths.push(path);
                }
            }
            paths.sort_unstable();
        }
        for function in &other.exact.functions {
            let trained = trained.get(&key(function)).map_or(&[][..], Vec::as_slice);
            for (path, count) in (function.acyclic().iter()).filter_map(|p| Some((p.path.first()?, p.count))) {
                let length = instructions(function, path, path.blocks.len());
                this.all.add(function, path, count);
                this.static_instructions.0 += length;
                if trained.binary_search(path).is_ok() {
                    this.common.add(function, path, count);
                    this.static_instructions.1 += length;
                }
            }
        }
        this
    }
}

fn ratio(of: u64, all: u64) -> f64 {
    if all == 0 { f64::NAN } else { of as f64 / all as f64 }
}

fn percent(of: u64, all: u64) -> Cell {
    Cell::Number(100.0 * ratio(of, all), 1)
}

/// The tables.
pub fn sections(figures: &[Figures], options: &PathTableOptions) -> Vec<Section> {
    let on = options.on;
    vec![
        Section::new("paths", format!("Paths executed on '{on}'"), paths_table(figures)),
        Section::new("increments", format!("Counted on '{on}'"), increments_table(figures)),
        Section::new(
            "tracing",
            format!("Bit tracing beside path numbering, on '{on}': operations for each executed path"),
            tracing_table(figures),
        ),
        Section::new(
            "tables",
            format!("Counter tables of the functions executed on '{on}'"),
            tables_table(figures),
        ),
        Section::new(
            "caches",
            format!("Misses for 1000 instructions of the plain program on '{on}', in cachegrind's model"),
            caches_table(figures),
        ),
        Section::new(
            "trained",
            format!("Paths of '{on}' that 'train' executes too"),
            trained_table(figures),
        ),
    ]
}

fn paths_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("functions", "functions"),
        ("paths", "paths"),
        ("most_paths", "most of one"),
        ("mean_paths", "per function"),
        ("longest_blocks", "longest, blocks"),
        ("longest_instructions", "instr."),
        ("mean_blocks", "average, blocks"),
        ("mean_instructions", "instr."),
        ("predicted_paths", "predicted, % of paths"),
        ("predicted_executions", "% of executions"),
        ("predicted_mean_blocks", "their blocks"),
        ("predicted_mean_instructions", "instr."),
        ("prefix_blocks", "predicted beginning, blocks"),
        ("prefix_instructions", "instr."),
    ]);
    for Figures { workload, paths, .. } in figures {
        let mean = |of: u64, all: &Weighted| Cell::Number(ratio(of, all.executions), 2);
        let (all, predicted, prefixes) = (&paths.executed, &paths.predicted, &paths.prefixes);
        table.push([
            workload.as_str().into(),
            paths.functions.into(),
            paths.paths.into(),
            paths.most.into(),
            Cell::Number(ratio(paths.paths, paths.functions), 1),
            paths.longest_blocks.into(),
            paths.longest_instructions.into(),
            mean(all.blocks, all),
            mean(all.instructions, all),
            percent(predicted.paths, all.paths),
            percent(predicted.executions, all.executions),
            mean(predicted.blocks, predicted),
            mean(predicted.instructions, predicted),
            mean(prefixes.blocks, prefixes),
            mean(prefixes.instructions, prefixes),
        ]);
    }
    table
}

fn increments_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("path_increments", "path increments"),
        ("edge_ratio", "edges ÷ paths"),
        ("hashed", "hashed, %"),
        ("instructions_each", "instr. per increment"),
    ]);
    for figures in figures {
        let counted = &figures.increments;
        let each = counted.instructions.map(|all| ratio(all, counted.paths));
        table.push([
            figures.workload.as_str().into(),
            counted.paths.into(),
            Cell::Number(ratio(counted.edges, counted.paths), 2),
            percent(counted.hashed, counted.paths),
            each.map_or(Cell::Missing, |each| Cell::Number(each, 1)),
        ]);
    }
    table
}

fn tracing_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("executions", "paths executed"),
        ("bits", "bits"),
        ("longest", "longest, bits"),
        ("traced", "operations, bit tracing"),
        ("numbered", "path numbering"),
        ("ratio", "ratio"),
    ]);
    for Figures { workload, tracing, .. } in figures {
        let of = &tracing[0].1;
        let each = |sum: u64| Cell::Number(ratio(sum, of.executions), 2);
        table.push([
            workload.as_str().into(),
            of.executions.into(),
            each(of.bits),
            u64::from(of.tables.longest).into(),
            each(of.traced),
            each(of.numbered),
            Cell::Number(ratio(of.traced, of.numbered), 2),
        ]);
    }
    table
}

fn tables_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("limit", "arrays up to"),
        ("functions", "functions"),
        ("numbered_array", "array counters, numbering"),
        ("traced_array", "bit tracing"),
        ("numbered_hashed", "hashed functions, numbering"),
        ("traced_hashed", "bit tracing"),
        ("numbered_entries", "hash entries, numbering"),
        ("traced_entries", "bit tracing"),
    ]);
    for Figures { workload, tracing, .. } in figures {
        for (limit, of) in tracing {
            let of = &of.tables;
            table.push([
                workload.as_str().into(),
                (*limit).into(),
                of.functions.into(),
                of.numbered_array.into(),
                of.traced_array.into(),
                of.numbered_hashed.into(),
                of.traced_hashed.into(),
                of.numbered_entries.into(),
                of.traced_entries.into(),
            ]);
        }
    }
    table
}

fn caches_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("edges_instructions", "instr. ×, edges"),
        ("paths_instructions", "paths"),
        ("plain_i1", "I1 misses, plain"),
        ("edges_i1", "edges"),
        ("paths_i1", "paths"),
        ("plain_d1", "D1 misses, plain"),
        ("edges_d1", "edges"),
        ("paths_d1", "paths"),
    ]);
    for Figures { workload, misses, .. } in figures {
        let Some([plain, edges, paths]) = misses else { continue };
        let each = |misses: u64| Cell::Number(1000.0 * ratio(misses, plain.instructions), 3);
        let times = |of: &Misses| Cell::Number(ratio(of.instructions, plain.instructions), 2);
        table.push([
            workload.as_str().into(),
            times(edges),
            times(paths),
            each(plain.i1),
            each(edges.i1),
            each(paths.i1),
            each(plain.d1),
            each(edges.d1),
            each(paths.d1),
        ]);
    }
    table
}

fn trained_table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("train_paths", "train's paths"),
        ("paths", "paths"),
        ("common", "common"),
        ("static_paths", "% of paths"),
        ("dynamic_paths", "% of executions"),
        ("static_instructions", "instr., % static"),
        ("dynamic_instructions", "% executed"),
    ]);
    for figures in figures {
        let Trained {
            train,
            all,
            common,
            static_instructions: (all_static, common_static),
        } = &figures.trained;
        table.push([
            figures.workload.as_str().into(),
            train.paths.into(),
            all.paths.into(),
            common.paths.into(),
            percent(common.paths, all.paths),
            percent(common.executions, all.executions),
            percent(*common_static, *all_static),
            percent(common.instructions, all.instructions),
        ]);
    }
    table
}
