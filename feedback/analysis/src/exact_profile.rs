//! Exact counts as a profile for the compiler: the result of sampling every execution.

use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactProfile};
use pleach_ball_larus::edges::ExactFlow;
use pleach_ball_larus::{Mode, NumberingOptions, Path};
use pleach_profile::summary::{HOT_CUTOFF, ProfileSummary};
use pleach_profile::{Anchor, Covered, EstimatedPath, FunctionProfile, PathWindow, Profile, Provenance};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Why exact counts cannot become a profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There are no functions.
    #[error("it has no counts of any function: was the program compiled with $(pleach flags instrument), and run?")]
    Empty,
    /// Modules were instrumented at different anchors.
    #[error("its modules are instrumented at different anchors: compile all of them with the same --anchor")]
    MixedAnchors,
}

/// A profile with the exact counts of one program. Targets of indirect calls are not counted. Functions have paths if
/// acyclic paths or windows of them were counted.
///
/// # Errors
/// There is no function, or there are several anchors.
pub fn profile_of(exact: &ExactProfile) -> Result<Profile, ProfileError> {
    let anchor: Anchor = exact.functions.first().ok_or(ProfileError::Empty)?.anchor;
    if exact.functions.iter().any(|f| f.anchor != anchor) {
        return Err(ProfileError::MixedAnchors);
    }
    let mut functions: Vec<FunctionProfile> = exact.functions.iter().map(function).collect();
    functions.sort_by_key(|f| (f.id, f.cfg_hash));
    // A function counted in several modes: the counts agree, so the first is used.
    functions.dedup_by_key(|f| (f.id, f.cfg_hash));
    // Each call was observed from its beginning to its end.
    let calls = exact
        .functions
        .iter()
        .fold(0, |sum: u64, f| sum.saturating_add(f.flow.entries));
    Ok(Profile {
        provenance: Provenance {
            engines: vec![Provenance::EXACT_ENGINE.to_owned()],
            bursts: calls,
            hot_instance_count: match anchor {
                Anchor::Early => hot_instance_count(&exact.functions),
                // Inlining is done.
                Anchor::Late => 0,
            },
            ..Provenance::default()
        },
        scale: 1.0,
        anchor,
        functions,
        events: Vec::new(),
        vectors: None,
    })
}

/// Instructions of a function that LLVM's inliner inlines before its own instrumentation counts: a cost of 75, at 5 per
/// instruction, and the cost of the call with two arguments.
const SMALL_FUNCTION: u32 = 22;

/// [`Provenance::hot_instance_count`] as if small functions had been counted per inlined copy: a copy's count is the
/// function's count times the call's share of its direct calls.
fn hot_instance_count(functions: &[ExactFunction]) -> u64 {
    let mut calls: FxHashMap<FunctionGuid, Vec<u64>> = FxHashMap::default();
    for function in functions {
        for call in &function.cfg.calls {
            let executions = function.flow.blocks.get(call.block.index()).copied().unwrap_or(0);
            if let (Callee::Direct(callee), 1..) = (call.callee, executions) {
                calls.entry(callee).or_default().push(executions);
            }
        }
    }
    let mut instances: Vec<FunctionProfile> = Vec::new();
    for function in functions {
        let direct = calls.get(&function.cfg.id.guid).filter(|_| is_small(&function.cfg));
        let direct = direct.map_or(&[][..], Vec::as_slice);
        let known = direct.iter().fold(0, |sum: u64, &call| sum.saturating_add(call));
        // Local functions may share a name, so calls may be of others.
        let all = known.max(function.flow.entries);
        for executions in direct
            .iter()
            .copied()
            .chain([all - known])
            .filter(|&executions| executions > 0)
        {
            let share = |block: &u64| (u128::from(*block) * u128::from(executions) / u128::from(all)) as u64;
            instances.push(FunctionProfile {
                blocks: function.flow.blocks.iter().map(share).collect(),
                ..FunctionProfile::default()
            });
        }
    }
    ProfileSummary::from_functions(&instances)
        .min_count(HOT_CUTOFF)
        .unwrap_or(0)
}

fn is_small(cfg: &Cfg) -> bool {
    let instructions = cfg.blocks.iter().map(|block| block.instructions);
    instructions.fold(0, u32::saturating_add) <= SMALL_FUNCTION
}

fn function(exact: &ExactFunction) -> FunctionProfile {
    let ExactFunction { cfg, flow, .. } = exact;
    let coverage = flow.blocks.iter().map(|&count| match count {
        0 => Covered::NotExecuted,
        _ => Covered::Proved,
    });
    let was_executed = flow.blocks.iter().any(|&count| count > 0);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        graph: was_executed.then(|| Box::new(cfg.clone())),
        samples: flow.blocks.iter().fold(0, |sum, &count| sum.saturating_add(count)),
        edges: slots(cfg, flow),
        paths: paths(exact),
        windows: windows(exact),
        coverage: coverage.collect(),
        blocks: flow.blocks.clone(),
        ..FunctionProfile::default()
    }
}

/// Counts by successor slot. Slots with the same target share its count evenly.
fn slots(cfg: &Cfg, flow: &ExactFlow) -> Vec<u64> {
    let mut counts = Vec::with_capacity(cfg.edge_count());
    for (number, block) in cfg.blocks.iter().enumerate() {
        for (slot, &to) in block.successors.iter().enumerate() {
            let all = flow.edges.get(&(BlockIndex(number as u32), to)).copied().unwrap_or(0);
            let same = |slots: &[BlockIndex]| slots.iter().filter(|&&other| other == to).count() as u64;
            let (before, of) = (same(&block.successors[..slot]), same(&block.successors));
            counts.push(all / of + u64::from(before < all % of));
        }
    }
    counts
}

/// Paths as [`EstimatedPath`] has them: of the graph that default options number.
fn paths(exact: &ExactFunction) -> Vec<EstimatedPath> {
    if exact.options.mode != Mode::Paths || exact.options.max_paths != NumberingOptions::default().max_paths {
        return Vec::new();
    }
    let paths = exact.acyclic().into_iter().filter_map(|counted| {
        let count = counted.count as f64;
        Some(EstimatedPath {
            path: counted.path.into_iter().next()?,
            count,
            low: count,
            high: count,
            effective: f64::INFINITY,
        })
    });
    let mut paths: Vec<_> = paths.collect();
    paths.sort_by(EstimatedPath::hottest_first);
    paths
}

/// All windows that end in each counted path; the runtime counts only the longest window of an activation.
fn windows(exact: &ExactFunction) -> Vec<PathWindow> {
    let mut counts: BTreeMap<&[Path], u64> = BTreeMap::new();
    for counted in &exact.paths {
        let paths = &counted.path[counted.path.len().saturating_sub(PathWindow::MAX_PATHS)..];
        for first in 0..paths.len().saturating_sub(1) {
            let count = counts.entry(&paths[first..]).or_default();
            *count = count.saturating_add(counted.count);
        }
    }
    let all: u64 = exact.paths.iter().fold(0, |sum, path| sum.saturating_add(path.count));
    let least = all as f64 * PathWindow::MIN_SHARE;
    let windows = counts.into_iter().map(|(paths, count)| PathWindow {
        paths: paths.to_vec(),
        count: count as f64,
    });
    windows.filter(|window| window.count > least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Call, Terminator};
    use pleach_annotate::testing::cfg;
    use pleach_ball_larus::End;
    use pleach_ball_larus::counts::exact::ExactPath;
    use pleach_ball_larus::{Path, Start};
    use std::collections::BTreeMap;

    /// A switch: three cases lead to 1, the other to 2.
    fn switched(anchor: Anchor) -> ExactFunction {
        let mut cfg = cfg(&[&[1, 2, 1, 1], &[], &[]]);
        cfg.blocks[0].terminator = Terminator::Switch;
        let path = |blocks: &[u32], count| ExactPath {
            path: vec![Path {
                start: Start::Entry,
                blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
                end: End::Exit,
            }],
            count,
        };
        let edge = |to| (BlockIndex(0), BlockIndex(to));
        ExactFunction {
            cfg,
            anchor,
            options: NumberingOptions::default(),
            window: 1,
            paths: vec![path(&[0, 1], 8)],
            flow: ExactFlow {
                entries: 8,
                blocks: vec![8, 8, 0],
                edges: BTreeMap::from([(edge(1), 8), (edge(2), 0)]),
                exits: vec![0, 8, 0],
            },
        }
    }

    fn from_functions(functions: Vec<ExactFunction>) -> Result<Profile, ProfileError> {
        profile_of(&ExactProfile {
            functions,
            problems: Vec::new(),
        })
    }

    #[test]
    fn counts_are_kept_and_cases_share_theirs() {
        let profile = from_functions(vec![switched(Anchor::Early)]).expect("a profile");
        let [function] = &profile.functions[..] else {
            panic!("{profile:?}")
        };
        assert_eq!(function.blocks, [8, 8, 0]);
        assert_eq!(function.edges, [3, 0, 3, 2]);
        assert_eq!(
            function.coverage,
            [Covered::Proved, Covered::Proved, Covered::NotExecuted]
        );
        let counts: Vec<_> = function.paths.iter().map(|p| (p.low, p.count, p.high)).collect();
        assert_eq!(counts, [(8.0, 8.0, 8.0)]);
        assert_eq!((profile.provenance.bursts, profile.path_flow()), (8, 8.0));
    }

    #[test]
    fn the_hot_count_is_that_of_inlined_copies() {
        let function = |name: u64, blocks: &[u64], instructions, calls: &[(u32, u64)]| {
            let successors: Vec<[u32; 1]> = (1..blocks.len() as u32).map(|next| [next]).collect();
            let successors = successors.iter().map(<[u32; 1]>::as_slice).chain([&[][..]]);
            let mut cfg = cfg(&successors.collect::<Vec<_>>());
            cfg.id.guid = FunctionGuid(name);
            cfg.blocks[0].instructions = instructions;
            let call = |&(block, callee): &(u32, u64)| Call {
                block: BlockIndex(block),
                callee: Callee::Direct(FunctionGuid(callee)),
                may_not_return: false,
            };
            cfg.calls = calls.iter().map(call).collect();
            ExactFunction {
                cfg,
                flow: ExactFlow {
                    entries: blocks[0],
                    blocks: blocks.to_vec(),
                    ..switched(Anchor::Early).flow
                },
                ..switched(Anchor::Early)
            }
        };
        // `main` calls 2 from four blocks; 20 calls of it are indirect.
        let calls = [(1, 2), (2, 2), (3, 2), (4, 2)];
        let main = function(1, &[50_000, 20, 20, 20, 20], 9, &calls);
        let hot = |instructions| {
            let callee = function(2, &[100; 15], instructions, &[]);
            let profile = from_functions(vec![main.clone(), callee]).expect("a profile");
            profile.provenance.hot_instance_count
        };
        // The callee's blocks have 3 % of all executions, and are one function with blocks of 100, or five with 20.
        let first_block = SMALL_FUNCTION - 14;
        assert_eq!((hot(first_block), hot(first_block + 1)), (20, 100));
    }

    #[test]
    fn paths_of_other_graphs_are_left_out() {
        let mut function = switched(Anchor::Early);
        function.options.max_paths = 1;
        let profile = from_functions(vec![function]).expect("a profile");
        assert_eq!(profile.functions[0].paths, []);
        assert_eq!(profile.functions[0].blocks, [8, 8, 0]);
    }

    #[test]
    fn what_no_compiler_could_use_is_refused() {
        assert_eq!(from_functions(vec![]), Err(ProfileError::Empty));
        let mixed = from_functions(vec![switched(Anchor::Early), switched(Anchor::Late)]);
        assert_eq!(mixed, Err(ProfileError::MixedAnchors));
    }
}
