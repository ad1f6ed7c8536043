//! Random graphs: regions keep the papers' rules, region paths partition what is executed, and matching sets are what
//! their definition says.

use pleach_feedback_tests::support;

use pleach_analysis::partial_path::PartialPath;
use pleach_analysis::regions::profile::RegionProfile;
use pleach_analysis::regions::split::{Leave, Portion};
use pleach_analysis::regions::{Region, RegionIndex, Regions};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{NumberingOptions, Start};
use pleach_papers::regions::cold::{Cold, EdgeEvidence};
use pleach_papers::regions::credit::{EqualOptions, Portions, equal};
use pleach_papers::regions::extension::{extended, split_partial_path};
use pleach_papers::regions::matching::RegionPaths;
use pleach_papers::regions::obvious::obvious;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::Random;
use support::activation::{Event, search, split, successors, walk, wild};

type Blocks = BTreeSet<BlockIndex>;

/// Listing all paths is how they are checked, so there must not be too many.
const THRESHOLDS: [u64; 6] = [0, 2, 3, 7, 40, 300];

fn any_graph(random: &mut Random) -> Cfg {
    match random.chance(0.3) {
        true => support::random_cfg(random, 30),
        false => wild(random),
    }
}

/// Reachable blocks in the order in which a depth-first search enters them.
fn preorder(cfg: &Cfg) -> Vec<BlockIndex> {
    fn visit(cfg: &Cfg, at: BlockIndex, order: &mut Vec<BlockIndex>) {
        order.push(at);
        for to in successors(cfg, at) {
            if !order.contains(&to) {
                visit(cfg, to, order);
            }
        }
    }
    let mut order = Vec::new();
    visit(cfg, BlockIndex::ENTRY, &mut order);
    order
}

/// What can be reached from a block by at least one edge, within a set.
fn reached(cfg: &Cfg, set: &Blocks, from: BlockIndex) -> Blocks {
    let mut seen = Blocks::new();
    let mut stack = vec![from];
    while let Some(at) = stack.pop() {
        let inside = successors(cfg, at).into_iter().filter(|to| set.contains(to));
        stack.extend(inside.filter(|&to| seen.insert(to)));
    }
    seen
}

/// All loops, by definition: components with an edge, and those that are left within them without their heads.
fn loops(cfg: &Cfg) -> Vec<Blocks> {
    let order = preorder(cfg);
    let mut out = Vec::new();
    let mut work = vec![order.iter().copied().collect::<Blocks>()];
    while let Some(set) = work.pop() {
        let reaches: BTreeMap<_, _> = set.iter().map(|&b| (b, reached(cfg, &set, b))).collect();
        let mut left = set.clone();
        while let Some(&block) = left.iter().next() {
            let both = |&&other: &&BlockIndex| reaches[&block].contains(&other) && reaches[&other].contains(&block);
            let component: Blocks = set.iter().filter(both).copied().collect();
            left.remove(&block);
            left.retain(|other| !component.contains(other));
            if let Some(head) = order.iter().find(|head| component.contains(head)) {
                let mut rest = component.clone();
                rest.remove(head);
                work.push(rest);
                out.push(component);
            }
        }
    }
    out
}

/// A region's paths, by definition.
fn enumerate(cfg: &Cfg, body: &Blocks, entry: BlockIndex) -> Vec<Vec<BlockIndex>> {
    let (mut out, mut stack) = (Vec::new(), vec![vec![entry]]);
    while let Some(path) = stack.pop() {
        let to = successors(cfg, *path.last().unwrap());
        let stays = |to: &BlockIndex| *to != entry && body.contains(to);
        if to.is_empty() || !to.iter().all(stays) {
            out.push(path.clone());
        }
        for to in to.into_iter().filter(stays) {
            assert!(!path.contains(&to), "a cycle within a region");
            stack.push([&path[..], &[to]].concat());
        }
    }
    out.sort();
    out
}

fn body_of(region: &Region) -> Blocks {
    region.body.iter().copied().collect()
}

/// Where paths begin, other than along an edge that they may take.
fn begins(cfg: &Cfg) -> Blocks {
    let graph = PathGraph::new(cfg, &NumberingOptions::default());
    let start = |edge: &EdgeKind| match *edge {
        EdgeKind::Start(Start::Entry | Start::Inside, block) => Some(block),
        _ => None,
    };
    graph.edges().iter().filter_map(start).collect()
}

/// Whether rules 1 and 2 let a block be in a region without being its entry.
fn may_be_in(cfg: &Cfg, body: &Blocks, block: BlockIndex, loops: &[Blocks], begins: &Blocks) -> bool {
    let reachable = search(cfg).0;
    let from = reachable.iter().filter(|&&from| successors(cfg, from).contains(&block));
    let one_way_in = !begins.contains(&block) && from.into_iter().all(|from| body.contains(from));
    one_way_in && (loops.iter()).all(|l| body.iter().all(|b| l.contains(b) == l.contains(&block)))
}

fn assert_rules(cfg: &Cfg, regions: &Regions, threshold: u64) {
    let (loops, begins) = (loops(cfg), begins(cfg));
    let mut placed = Blocks::new();
    for (index, region) in regions.all().iter().enumerate() {
        let (body, entry) = (body_of(region), region.entry());
        for &block in &region.body {
            assert!(placed.insert(block), "{block:?} is in two regions");
            assert_eq!(regions.region_of(block), Some(RegionIndex(index as u32)));
            assert!(
                block == entry || may_be_in(cfg, &body, block, &loops, &begins),
                "{block:?} in {region:?}"
            );
        }
        let paths = enumerate(cfg, &body, entry);
        assert_eq!(region.paths, paths.len() as u64);
        assert!(region.paths < threshold.max(2));
        let leaves = |to: &BlockIndex| *to == entry || !body.contains(to);
        let exits: Blocks = body.iter().flat_map(|&b| successors(cfg, b)).filter(leaves).collect();
        assert_eq!(region.exits.iter().copied().collect::<Blocks>(), exits);
        assert_eq!(region.exits.len(), exits.len());
        // Rule 4: no exit could have joined.
        for &exit in exits.iter().filter(|&&exit| exit != entry) {
            if may_be_in(cfg, &body, exit, &loops, &begins) {
                let mut larger = body.clone();
                larger.insert(exit);
                let paths = enumerate(cfg, &larger, entry).len() as u64;
                assert!(paths >= threshold, "{exit:?} could be in {region:?}");
            }
        }
        let ways = RegionPaths::all(regions, RegionIndex(index as u32));
        let mut listed: Vec<_> = ways.paths().collect();
        listed.sort();
        assert_eq!((ways.len(), listed), (region.paths, paths));
    }
    assert_eq!(placed, search(cfg).0);
}

/// The blocks that an activation passes, in stretches without a second return, and how each ends.
fn stretches(cfg: &Cfg, events: &[Event]) -> Vec<Vec<BlockIndex>> {
    let mut out = vec![vec![BlockIndex::ENTRY]];
    for event in events {
        match *event {
            Event::Edge(_, to) => out.last_mut().unwrap().push(to),
            Event::Leave(_) => {}
            Event::Resume(call) => out.push(vec![cfg.calls[call.index()].block]),
        }
    }
    out
}

/// Executed region paths, from the execution itself.
fn executed(cfg: &Cfg, regions: &Regions, walks: &[Vec<Event>]) -> RegionProfile {
    let mut profile = RegionProfile::default();
    for blocks in walks.iter().flat_map(|walk| stretches(cfg, walk)) {
        let portions = regions.split(&blocks, Some(Leave::Out));
        let joined: Vec<_> = portions.iter().flat_map(|p| p.blocks.clone()).collect();
        assert_eq!(joined, blocks);
        for (position, portion) in portions.iter().enumerate() {
            let region = &regions.all()[portion.region.index()];
            let (last, next) = (portion.blocks.last().unwrap(), portions.get(position + 1));
            assert_eq!(portion.blocks[0], region.entry());
            assert_eq!(
                portion.leave,
                Some(next.map_or(Leave::Out, |next| Leave::To(next.blocks[0])))
            );
            // Only a call can end a way where no path of the region ends.
            let is_path = enumerate(cfg, &body_of(region), region.entry()).contains(&portion.blocks);
            assert!(is_path || (next.is_none() && !successors(cfg, *last).is_empty()));
            profile.add(regions, portion.blocks.clone(), 1.0);
        }
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn regions_keep_the_rules(seed: u64) {
        let random = &mut Random(seed);
        let cfg = any_graph(random);
        let threshold = THRESHOLDS[random.below(6)];
        assert_rules(&cfg, &Regions::new(&cfg, threshold), threshold);
    }

    #[test]
    fn region_paths_partition_executions_and_ball_larus_paths(seed: u64) {
        let random = &mut Random(seed);
        let cfg = wild(random);
        let regions = Regions::new(&cfg, THRESHOLDS[random.below(6)]);
        let walks: Vec<_> = (0..10).filter_map(|_| walk(&cfg, random)).collect();
        let executed = executed(&cfg, &regions, &walks);
        let options = NumberingOptions { iterations: 1 + random.below(2) as u8, ..NumberingOptions::default() };
        let graph = PathGraph::new(&cfg, &options);
        let mut projected = RegionProfile::default();
        for path in walks.iter().flat_map(|walk| split(&cfg, &graph, &options, walk)) {
            projected.add_path(&regions, &path, 1.0);
        }
        prop_assert_eq!(projected, executed);
    }

    #[test]
    fn matching_sets_are_the_intersection_of_their_edges_paths(seed: u64) {
        let random = &mut Random(seed);
        let cfg = any_graph(random);
        let regions = Regions::new(&cfg, 300);
        for (index, region) in regions.all().iter().enumerate() {
            let paths = enumerate(&cfg, &body_of(region), region.entry());
            let index = RegionIndex(index as u32);
            let drop = random.unit() * 0.5;
            let dropped: BTreeSet<(BlockIndex, BlockIndex)> = (region.body.iter())
                .flat_map(|&b| successors(&cfg, b).into_iter().map(move |to| (b, to)))
                .filter(|_| random.chance(drop))
                .collect();
            let ways = [RegionPaths::all(&regions, index), RegionPaths::without(&regions, index, |a, b| dropped.contains(&(a, b)))];
            let portion = any_portion(random, &regions, index, &paths);
            for (ways, dropped) in ways.iter().zip([&BTreeSet::new(), &dropped]) {
                let is_in = |path: &&Vec<BlockIndex>| matches(&cfg, region, path, &portion, dropped);
                let expected: Vec<_> = paths.iter().filter(is_in).cloned().collect();
                let mut found: Vec<_> = ways.matching(&portion).collect();
                found.sort();
                prop_assert_eq!(ways.count(&portion), found.len() as u64);
                prop_assert_eq!(found, expected);
                prop_assert_eq!(ways.path(&portion, ways.count(&portion)), None);
            }
        }
    }

    #[test]
    fn equal_crediting_conserves_weight(seed: u64) {
        let random = &mut Random(seed);
        let cfg = any_graph(random);
        let regions = Regions::new(&cfg, 300);
        let mut portions = Portions::new();
        for index in 0..regions.all().len() as u32 {
            let index = RegionIndex(index);
            let paths: Vec<_> = RegionPaths::all(&regions, index).paths().collect();
            for _ in 0..random.below(6) {
                let portion = any_portion(random, &regions, index, &paths);
                *portions.entry(portion).or_default() += random.below(200) as f64 + 1.0;
            }
        }
        let weight: f64 = portions.values().sum();
        let options = EqualOptions {
            cold: random.chance(0.5).then_some(Cold { share: random.unit(), ..Cold::default() }),
            obvious: random.chance(0.5),
        };
        let mut profile = RegionProfile::default();
        let matching = equal(&regions, &portions, &options, &mut profile);
        prop_assert!((profile.total() - weight).abs() <= 1e-9 * weight);
        prop_assert_eq!(profile.unplaced, 0.0);
        prop_assert_eq!(matching.iter().map(|m| m.weight).sum::<f64>(), weight);
        for path in profile.paths.keys() {
            let region = &regions.all()[regions.region_of(path.blocks[0]).unwrap().index()];
            prop_assert!(enumerate(&cfg, &body_of(region), region.entry()).contains(&path.blocks));
        }
        for m in &matching {
            let mut unique = 0.0;
            for (portion, weight) in portions.iter().filter(|p| p.0.region == m.region) {
                unique += if RegionPaths::all(&regions, m.region).count(portion) == 1 { *weight } else { 0.0 };
            }
            prop_assert!(m.ratio() >= 1.0 && m.unique >= unique);
            prop_assert!(options.cold.is_some() || m.unique == unique);
        }
    }

    #[test]
    fn obvious_paths_have_an_edge_of_their_own(seed: u64) {
        let random = &mut Random(seed);
        let cfg = any_graph(random);
        let regions = Regions::new(&cfg, 40);
        for index in 0..regions.all().len() as u32 {
            let ways = RegionPaths::all(&regions, RegionIndex(index));
            let paths: Vec<Vec<BlockIndex>> = ways.paths().collect();
            let edges = |path: &[BlockIndex]| -> BTreeSet<(BlockIndex, Option<BlockIndex>)> {
                let inner = path.windows(2).map(|p| (p[0], Some(p[1])));
                inner.chain([(path[path.len() - 1], None)]).collect()
            };
            let own = |path: &&Vec<BlockIndex>| {
                let other = |edge| paths.iter().any(|p| p != *path && edges(p).contains(edge));
                !edges(path).iter().all(other)
            };
            let expected: BTreeSet<_> = paths.iter().filter(own).cloned().collect();
            let found = obvious(&ways, &EdgeEvidence::default());
            prop_assert_eq!(found.into_keys().collect::<BTreeSet<_>>(), expected);
        }
    }

    #[test]
    fn extension_adds_what_had_to_be_passed(seed: u64) {
        let random = &mut Random(seed);
        let cfg = wild(random);
        let regions = Regions::new(&cfg, 300);
        let graph = PathGraph::new(&cfg, &NumberingOptions::default());
        let path = graph.path(random.word() % graph.numbers()).unwrap();
        let first = random.below(path.blocks.len());
        let last = first + random.below(path.blocks.len() - first);
        let seen = path.blocks[first..=last].to_vec();
        let (extended, left) = extended(&regions, true, &seen, true);
        let at = extended.windows(seen.len()).position(|w| w == seen).expect("what was seen is kept");
        let (before, after) = (&extended[..at], &extended[at + seen.len() - 1..]);
        for pair in extended.windows(2) {
            prop_assert!(successors(&cfg, pair[0]).contains(&pair[1]));
        }
        let starts = begins(&cfg);
        for (position, block) in extended[1..=at].iter().enumerate() {
            prop_assert!(!starts.contains(block));
            let from = search(&cfg).0.into_iter().filter(|&from| successors(&cfg, from).contains(block));
            prop_assert_eq!(from.collect::<Vec<_>>(), vec![before[position]]);
        }
        prop_assert!(after[..after.len() - 1].iter().all(|&block| successors(&cfg, block).len() == 1));
        prop_assert_eq!(left, successors(&cfg, *extended.last().unwrap()).is_empty());
        // Ends that were seen are not moved.
        let piece = PartialPath { start: None, blocks: seen.clone(), end: None };
        let joined = |extend| -> Vec<BlockIndex> {
            split_partial_path(&regions, &piece, extend).into_iter().flat_map(|p| p.blocks).collect()
        };
        prop_assert_eq!(joined(false), seen);
        prop_assert_eq!(joined(true), extended);
        let whole = PartialPath { start: Some(path.start), blocks: path.blocks.clone(), end: Some(path.end) };
        prop_assert_eq!(split_partial_path(&regions, &whole, true), regions.split_path(&path));
    }
}

/// A part of a path of a region.
fn any_portion(random: &mut Random, regions: &Regions, region: RegionIndex, paths: &[Vec<BlockIndex>]) -> Portion {
    let path = &paths[random.below(paths.len())];
    let first = random.below(path.len());
    let last = first + random.below(path.len() - first);
    let leaves = last + 1 == path.len() && random.chance(0.5);
    let exits = &regions.all()[region.index()].exits;
    let leave = match exits.is_empty() {
        true => Leave::Out,
        false => Leave::To(exits[random.below(exits.len())]),
    };
    Portion {
        region,
        blocks: path[first..=last].to_vec(),
        leave: leaves.then_some(leave),
    }
}

/// Whether a path is in a portion's matching set, by definition.
fn matches(
    cfg: &Cfg,
    region: &Region,
    path: &[BlockIndex],
    portion: &Portion,
    dropped: &BTreeSet<(BlockIndex, BlockIndex)>,
) -> bool {
    let blocks = &portion.blocks;
    let Some(at) = path.windows(blocks.len()).position(|w| w == blocks) else {
        return false;
    };
    let end = at + blocks.len();
    let kept = |part: &[BlockIndex]| part.windows(2).all(|p| !dropped.contains(&(p[0], p[1])));
    let last = path[path.len() - 1];
    let to = successors(cfg, last);
    let leaves = |to: &BlockIndex| *to == region.entry() || !region.body.contains(to);
    let may_end = to.is_empty() || to.iter().any(|to| leaves(to) && !dropped.contains(&(last, *to)));
    let ends = if portion.leave.is_some() {
        end == path.len()
    } else {
        may_end
    };
    ends && kept(&path[..=at]) && kept(&path[end - 1..])
}
