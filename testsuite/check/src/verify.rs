//! Checks of exact counts on real programs: each block's inflow equals its outflow, path and edge counting agree, and
//! both count function entries as clang's own instrumentation does.

use anyhow::Result;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::counts::exact::ExactFunction;
use pleach_ball_larus::edges::ExactFlow;
use pleach_ball_larus::{Mode, returns_twice};
use pleach_harness::bench::Bench;
use pleach_harness::exact_counts::{Counted, count, count_calls};
use pleach_harness::pleach_command::Pleach;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use pleach_harness::{parallel, progress};
use std::collections::{BTreeMap, BTreeSet};

/// How often everything is run where something differs. Programs that hash addresses, which the kernel
/// randomises, do not always take the same paths.
const RUNS: usize = 6;

/// The counts of each build, run by run.
#[derive(Default)]
struct Runs {
    paths: Vec<Counted>,
    edges: Vec<Counted>,
    calls: Vec<BTreeMap<String, u64>>,
}

/// The comparisons of one workload, and their differences.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The workload's name.
    pub workload: String,
    /// Functions that were counted.
    pub functions: u64,
    /// Functions that were executed.
    pub executed: u64,
    /// Different paths that were executed.
    pub paths: u64,
    /// Blocks compared.
    pub blocks: u64,
    /// Edges compared.
    pub edges: u64,
    /// Functions of which some runs agree, others not.
    pub varying: u64,
    /// Functions whose calls were compared with clang's.
    pub called: Option<u64>,
    /// The difference.
    pub differences: Vec<Difference>,
}

/// Something that differs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    /// The rule that was checked.
    pub check: Check,
    /// The function's linkage name.
    pub function: String,
    /// What was found.
    pub what: String,
}

/// The rules that are checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Check {
    /// The counts can be read and understood.
    Reading,
    /// The inflow of each block equals its outflow.
    Flow,
    /// Paths and edges agree.
    Edges,
    /// clang's own counts of calls agree.
    Calls,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Flow => "flow",
            Self::Edges => "edges",
            Self::Calls => "calls",
        }
    }
}

impl Verified {
    /// Whether pleach's own counts are consistent. clang's may differ where clang counts something else.
    pub fn is_consistent(&self) -> bool {
        self.differences.iter().all(|found| found.check == Check::Calls)
    }

    fn differing(&self, check: Check) -> u64 {
        let own = self.differences.iter().filter(|found| found.check == check);
        own.map(|found| &found.function).collect::<BTreeSet<_>>().len() as u64
    }

    fn add(&mut self, check: Check, function: &str, what: impl Into<String>) {
        self.differences.push(Difference {
            check,
            function: function.to_owned(),
            what: what.into(),
        });
    }
}

/// Builds the workloads in three ways, runs each on the input and compares.
pub fn verify(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    on: InputKind,
    jobs: usize,
) -> Result<Vec<Verified>> {
    let bar = progress::bar(workloads.len(), "verifying");
    let side_by_side = bench.with_jobs(1);
    let verified = parallel::map(workloads, jobs, |workload| {
        bar.set_message(workload.name.clone());
        let verified = of_workload(&side_by_side, workload, pleach, on)?;
        bar.inc(1);
        Ok(verified)
    });
    bar.finish_and_clear();
    verified
}

fn of_workload(bench: &Bench, workload: &Workload, pleach: &Pleach, on: InputKind) -> Result<Verified> {
    let build = |mode| Variant::Counted(pleach.clone(), mode).produce(bench, workload);
    let (paths, edges) = (build(Mode::Paths)?, build(Mode::Edges)?);
    let mut calls = None;
    let mut runs = Runs::default();
    loop {
        runs.paths.push(count(bench, &paths, on)?);
        runs.edges.push(count(bench, &edges, on)?);
        // At the late anchor, functions are called where they are not inlined, which clang's early counts do not know.
        if runs.paths.iter().flat_map(functions).all(|f| f.anchor == Anchor::Early) {
            let calls = match &mut calls {
                Some(calls) => calls,
                none => none.insert(Variant::counting_calls().produce(bench, workload)?),
            };
            runs.calls.push(count_calls(bench, calls, on)?);
        }
        let mut verified = Verified {
            workload: workload.name.clone(),
            ..Verified::default()
        };
        verified.compare(&runs);
        if verified.differences.is_empty() || runs.paths.len() == RUNS {
            return Ok(verified);
        }
    }
}

fn functions(counted: &Counted) -> &[ExactFunction] {
    &counted.exact.functions
}

type Key = (FunctionId, CfgHash);

/// The counts of a function in each run.
fn by_key(runs: &[Counted]) -> BTreeMap<Key, Vec<&ExactFunction>> {
    let mut by_key: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for function in runs.iter().flat_map(functions) {
        let key = (function.cfg.id, function.cfg.hash());
        by_key.entry(key).or_default().push(function);
    }
    by_key
}

impl Verified {
    fn compare(&mut self, runs: &Runs) {
        for run in runs.paths.iter().chain(&runs.edges) {
            for problem in run.problems() {
                self.add(Check::Reading, "", problem);
            }
        }
        for function in runs.paths.first().map_or(&[][..], functions) {
            self.functions += 1;
            self.executed += u64::from(function.is_executed());
            self.paths += function.paths.len() as u64;
            self.check_flow(function);
        }
        self.compare_edges(&runs.paths, &runs.edges);
        if !runs.calls.is_empty() {
            self.compare_calls(&runs.paths, &runs.calls);
        }
    }

    fn check_flow(&mut self, function: &ExactFunction) {
        let ExactFlow {
            entries,
            blocks,
            edges,
            exits,
        } = &function.flow;
        let mut inflow = vec![0_u64; blocks.len()];
        let mut outflow = exits.clone();
        if let Some(first) = inflow.first_mut() {
            *first += entries;
        }
        for (&(from, to), count) in edges {
            inflow[to.index()] += count;
            outflow[from.index()] += count;
        }
        for (block, &count) in blocks.iter().enumerate() {
            let index = BlockIndex(block as u32);
            let is_resumed = |cfg: &Cfg| cfg.calls.iter().any(|call| call.block == index && returns_twice(call));
            let (into, out) = (inflow[block], outflow[block]);
            // A second return begins in the middle of its block, which it counts again.
            if out != count || into != count && !(into < count && is_resumed(&function.cfg)) {
                let what = format!("block {block}: {into} in, {count} counted, {out} out");
                self.add(Check::Flow, &function.cfg.name, what);
            }
        }
    }

    fn compare_edges(&mut self, paths: &[Counted], edges: &[Counted]) {
        let (paths, edges) = (by_key(paths), by_key(edges));
        for (key, paths) in &paths {
            let first = paths[0];
            self.blocks += first.flow.blocks.len() as u64;
            self.edges += first.flow.edges.len() as u64;
            let Some(edges) = edges.get(key) else {
                self.add(Check::Edges, &first.cfg.name, "only its paths were counted");
                continue;
            };
            if edges.iter().all(|run| run.flow == first.flow) && paths.iter().all(|run| run.flow == first.flow) {
                continue;
            }
            if paths.iter().any(|run| edges.iter().any(|other| run.flow == other.flow)) {
                self.varying += 1;
            } else {
                self.compare_flow(&first.cfg.name, &first.flow, &edges[0].flow);
            }
        }
        for (_, edges) in edges.iter().filter(|(key, _)| !paths.contains_key(key)) {
            self.add(Check::Edges, &edges[0].cfg.name, "only its edges were counted");
        }
    }

    fn compare_flow(&mut self, function: &str, paths: &ExactFlow, edges: &ExactFlow) {
        let mut compare = |what: String, by_paths: u64, by_edges: u64| {
            if by_paths != by_edges {
                let what = format!("{what}: {by_paths} by paths, {by_edges} by edges");
                self.add(Check::Edges, function, what);
            }
        };
        compare("entries".to_owned(), paths.entries, edges.entries);
        let of_blocks = [
            ("block", &paths.blocks, &edges.blocks),
            ("exits of block", &paths.exits, &edges.exits),
        ];
        for (what, by_paths, by_edges) in of_blocks {
            for (block, (&by_paths, &by_edges)) in by_paths.iter().zip(by_edges).enumerate() {
                compare(format!("{what} {block}"), by_paths, by_edges);
            }
        }
        for edge in paths.edges.keys().chain(edges.edges.keys()).collect::<BTreeSet<_>>() {
            let count = |flow: &ExactFlow| flow.edges.get(edge).copied().unwrap_or(0);
            compare(format!("edge {}→{}", edge.0.0, edge.1.0), count(paths), count(edges));
        }
    }

    fn compare_calls(&mut self, paths: &[Counted], calls: &[BTreeMap<String, u64>]) {
        let ours: Vec<_> = paths.iter().map(own_calls).collect();
        let theirs: Vec<_> = calls.iter().map(clangs_calls).collect();
        let all: BTreeSet<_> = ours.iter().chain(&theirs).flat_map(BTreeMap::keys).collect();
        let of = |runs: &[Calls], key| -> BTreeSet<_> { runs.iter().map(|run| run.get(key).copied()).collect() };
        let mut called = 0;
        for key in all {
            let (own, clangs) = (of(&ours, key), of(&theirs, key));
            called += u64::from(!own.contains(&None) && !clangs.contains(&None));
            // Uncalled functions are omitted by one of the two.
            let known =
                |calls: &BTreeSet<Option<u64>>| -> BTreeSet<_> { calls.iter().map(|n| n.unwrap_or(0)).collect() };
            if known(&own).is_disjoint(&known(&clangs)) {
                self.add(
                    Check::Calls,
                    &key.1,
                    format!("{}, {} by clang", listed(&own), listed(&clangs)),
                );
            }
        }
        self.called = Some(called);
    }
}

/// By file, for local functions, and name.
type Calls = BTreeMap<(String, String), u64>;

/// Two files of one name are summed, here and in [`clangs_calls`].
fn own_calls(counted: &Counted) -> Calls {
    let mut calls = Calls::new();
    for function in functions(counted) {
        let cfg = &function.cfg;
        let file = if cfg.id.module.0 == 0 { "" } else { &cfg.source_file };
        *calls.entry((file.to_owned(), cfg.name.clone())).or_default() += function.flow.entries;
    }
    calls
}

fn clangs_calls(counted: &BTreeMap<String, u64>) -> Calls {
    let mut calls = Calls::new();
    for (name, count) in counted {
        let (file, name) = name.rsplit_once(';').unwrap_or(("", name));
        let file = file.rsplit('/').next().unwrap_or_default();
        *calls.entry((file.to_owned(), name.to_owned())).or_default() += count;
    }
    calls
}

/// The common result of all runs.
fn listed(calls: &BTreeSet<Option<u64>>) -> String {
    let each = calls.iter().map(|calls| match calls {
        Some(calls) => calls.to_string(),
        None => "not counted".to_owned(),
    });
    each.collect::<Vec<_>>().join(" or ")
}

/// How much was compared, then what differs.
pub fn sections(verified: &[Verified]) -> Vec<Section> {
    let mut table = Table::new([
        ("workload", "workload"),
        ("functions", "functions"),
        ("executed", "executed"),
        ("paths", "paths"),
        ("blocks", "blocks"),
        ("edges", "edges"),
        ("varying", "varying functions"),
        ("called", "calls compared"),
        ("unread", "unread"),
        ("unbalanced", "unbalanced"),
        ("differing", "differing edges"),
        ("differing_calls", "differing calls"),
    ]);
    let mut differences = Table::new([
        ("workload", "workload"),
        ("check", "check"),
        ("function", "function"),
        ("what", "what"),
    ]);
    for one in verified {
        let checks = [Check::Flow, Check::Edges].map(|check| Cell::from(one.differing(check)));
        let unread = one.differences.iter().filter(|found| found.check == Check::Reading);
        let mut cells: Vec<Cell> = vec![
            one.workload.as_str().into(),
            one.functions.into(),
            one.executed.into(),
            one.paths.into(),
            one.blocks.into(),
            one.edges.into(),
            one.varying.into(),
            one.called.into(),
            (unread.count() as u64).into(),
        ];
        cells.extend(checks);
        cells.push(one.called.map(|_| one.differing(Check::Calls)).into());
        table.push(cells);
        for found in &one.differences {
            let Difference { check, function, what } = found;
            differences.push([one.workload.as_str(), check.name(), function, what].map(Cell::from));
        }
    }
    vec![
        Section::new("workloads", "", table),
        Section::new("differences", "Differences", differences),
    ]
}
