//! Decisions: any profile of any graph.

use crate::input::Input;
use crate::profile::made_of;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_decide::placement::{Arc, Loop, Node, alignment, function_order, order};
use pleach_decide::superblock::branch_weights::{floor_edge_probability, restore_branch_weights, scale_loop_exits};
use pleach_decide::superblock::check::check;
use pleach_decide::superblock::history::{PathHistory, RecordedPaths, caller_block};
use pleach_decide::superblock::{Candidates, Folding, Formation, Marker, Subject, SuperblockOptions, form};
use pleach_decide::weights::{
    FunctionTreatment, RecordingEvidence, function_treatment, unpredictable_branches, unsampled_calls,
};
use pleach_decide::{coldness, superblock::arms::arms};
use pleach_profile::{FunctionProfile, Profile};

/// Profiles that fit their graphs go through every decision. Graphs are well-formed, counts are whatever the profile
/// says. Superblocks pass the checker, and growth stays within its budget.
pub fn decide(data: &[u8]) {
    let mut input = Input(data);
    let evidence = RecordingEvidence {
        scale: input.float(),
        samples: input.number(),
        bursts: input.number(),
        exact: input.u8() % 2 == 0,
        cpu_seconds: f64::from(input.u8()),
        hot_instance_count: input.number(),
    };
    let cfg = input.cfg();
    let mut profile = made_of(&mut input);
    for function in &mut profile.functions {
        fit(function, &cfg, &mut input);
        if function.check_shape(&cfg).is_ok() {
            decide_weights(&cfg, function, &evidence);
        }
    }
    profile.functions.retain(|function| function.check_shape(&cfg).is_ok());
    decide_superblocks(&cfg, &profile, &mut input);
    decide_placement(&cfg, &profile, &mut input);
}

/// Gives most records the numbers of blocks and edges that the graph has. What else does not fit remains.
fn fit(function: &mut FunctionProfile, cfg: &Cfg, input: &mut Input) {
    if input.u8().is_multiple_of(8) {
        return;
    }
    function.blocks.resize(cfg.blocks.len(), 0);
    function.edges.resize(cfg.edge_count(), 0);
    if !function.coverage.is_empty() {
        function
            .coverage
            .resize(cfg.blocks.len(), pleach_profile::Covered::Unknown);
    }
    if !function.counted.is_empty() {
        function
            .counted
            .resize(cfg.blocks.len(), pleach_profile::Executions::UNKNOWN);
    }
    let is_block = |block: &BlockIndex| block.index() < cfg.blocks.len();
    function.predictions.retain(|prediction| is_block(&prediction.block));
    function
        .call_targets
        .retain(|site| (site.call as usize) < cfg.calls.len());
    if input.u8().is_multiple_of(2) {
        function.paths.retain(|path| path.path.blocks.iter().all(is_block));
    }
}

fn decide_weights(cfg: &Cfg, function: &FunctionProfile, evidence: &RecordingEvidence) {
    assert_eq!(coldness::executed(cfg, function).len(), cfg.blocks.len());
    if let FunctionTreatment::Sampled {
        branch_weights,
        entry_count,
        ..
    } = function_treatment(cfg, function, evidence)
    {
        assert!(entry_count > 0);
        for (block, weights) in branch_weights {
            assert_eq!(weights.len(), cfg.blocks[block.index()].successors.len());
        }
    }
    assert!(unsampled_calls(cfg, function, evidence).all(|call| call < cfg.calls.len()));
    assert!(unpredictable_branches(function).all(|(block, rate)| block.index() < cfg.blocks.len() && rate <= 1.0));
}

/// Some instructions fold.
struct FoldSome(u8);

impl Folding for FoldSome {
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32> {
        trace.iter().skip(1).map(|_| u32::from(self.0)).collect()
    }
}

fn decide_superblocks(cfg: &Cfg, profile: &Profile, input: &mut Input) {
    let blocks = cfg.blocks.len();
    assert_eq!(arms(cfg).len(), blocks);
    let instances = profile.functions.len();
    let mut flags = || {
        (0..blocks)
            .map(|_| !input.u8().is_multiple_of(4))
            .collect::<Vec<bool>>()
    };
    let (mut clonable, tight, dispatching) = (flags(), flags(), flags());
    // As the plugin has it: landing pads are never copied.
    for (clonable, block) in clonable.iter_mut().zip(&cfg.blocks) {
        *clonable &= !block.is_eh_pad;
    }
    let markers: Vec<Vec<Marker>> = (0..blocks)
        .map(|_| {
            let marker = |_| {
                (instances > 0).then(|| Marker {
                    instance: usize::from(input.u8()) % instances,
                    block: BlockIndex(u32::from(input.u8()) % blocks as u32),
                })
            };
            (0..2).filter_map(marker).collect()
        })
        .collect();
    let counts: Vec<f64> = (0..blocks).map(|_| input.float().abs()).collect();
    let probabilities = probabilities(cfg, input);
    let histories: Vec<PathHistory> = profile
        .functions
        .iter()
        .map(|function| {
            let recorded = RecordedPaths {
                paths: &function.paths,
                windows: &function.windows,
                called: &function.called,
            };
            PathHistory::new(recorded, |block| block.0 % 5 != 4, |_, block| caller_block(0, block))
        })
        .collect();
    let subject = Subject {
        cfg,
        counts: &counts,
        probabilities: &probabilities,
        clonable: &clonable,
        tight: &tight,
        dispatching: &dispatching,
        markers: &markers,
        histories: &histories,
        functions: &(0..instances).collect::<Vec<_>>(),
        total: input.float().abs(),
    };
    let options = if input.u8().is_multiple_of(2) {
        SuperblockOptions::default()
    } else {
        SuperblockOptions::aggressive()
    };
    let budget = input.u32() % 10_000;
    let formation = form(&subject, &FoldSome(input.u8() % 3), budget, &options, Candidates::All);
    assert!(formation.copied <= budget);
    assert_is_sound(cfg, &formation);

    let count = |marker: Marker| {
        let blocks = &profile.functions[marker.instance].blocks;
        blocks.get(marker.block.index()).map(|&count| count as f64)
    };
    let restored = restore_branch_weights(cfg, &markers, count, &probabilities, input.float().abs());
    for (block, counts) in &restored {
        assert_eq!(counts.len(), cfg.blocks[block.index()].successors.len());
    }
    let is_known = |block| restored.iter().any(|(known, _)| *known == block);
    scale_loop_exits(cfg, &probabilities, is_known, input.float().abs());
    floor_edge_probability(cfg, &counts, &mut probabilities.clone());
}

/// Probabilities of each branch that add up to one, or none at all.
fn probabilities(cfg: &Cfg, input: &mut Input) -> Vec<f64> {
    let mut all = Vec::new();
    for block in &cfg.blocks {
        let weights: Vec<f64> = block.successors.iter().map(|_| f64::from(input.u8())).collect();
        let sum: f64 = weights.iter().sum();
        all.extend(weights.iter().map(|weight| if sum > 0.0 { weight / sum } else { 0.0 }));
    }
    all
}

/// The graph with copies maps onto the graph, as an independent checker has it.
fn assert_is_sound(cfg: &Cfg, formation: &Formation) {
    let nodes = &formation.graph.nodes;
    let origins: Vec<BlockIndex> = nodes.iter().map(|node| node.origin).collect();
    let mut after = cfg.clone();
    after.calls.clear();
    after.blocks = nodes
        .iter()
        .map(|node| {
            let mut block = cfg.blocks[node.origin.index()].clone();
            block.successors = node.successors.iter().map(|&to| BlockIndex(to as u32)).collect();
            block
        })
        .collect();
    for (index, origin) in origins.iter().enumerate() {
        let calls = cfg.calls.iter().filter(|call| call.block == *origin);
        after.calls.extend(calls.cloned().map(|mut call| {
            call.block = BlockIndex(index as u32);
            call
        }));
    }
    check(cfg, &after, &origins).expect("superblocks map onto the graph");
}

fn decide_placement(cfg: &Cfg, profile: &Profile, input: &mut Input) {
    let names = function_order(profile, &|_, _| Some(cfg));
    assert!(names.len() <= profile.functions.len());
    let nodes: Vec<Node> = (0..input.u8() % 16)
        .map(|_| Node {
            size: input.number(),
            weight: input.number(),
        })
        .collect();
    let arcs: Vec<Arc> = (0..input.u8() % 32)
        .map(|_| Arc {
            caller: input.u8().into(),
            callee: input.u8().into(),
            weight: input.number(),
        })
        .collect();
    let mut placed = order(&nodes, &arcs);
    placed.sort_unstable();
    let executed: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].weight > 0).collect();
    assert_eq!(placed, executed, "each executed function is placed once");
    let innermost = Loop {
        instructions: input.number(),
        iterations: input.float(),
        entries: input.float(),
    };
    assert!([1, 32].contains(&alignment(&innermost, input.float())));
}
