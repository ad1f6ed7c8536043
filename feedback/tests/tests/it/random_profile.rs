//! Random profiles say of any graph what some execution of it could have done.

use pleach_feedback_tests::support;

use pleach_annotate::cfg::Cfg;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, NumberingOptions, Start};
use pleach_profile::FunctionProfile;
use pleach_profile::random_profile::{random_profile, shuffled_paths};
use proptest::prelude::*;
use support::activation::wild;
use support::{Random, random_cfg};

fn any_graph(random: &mut Random) -> Cfg {
    if random.chance(0.5) {
        wild(random)
    } else {
        let blocks = 1 + random.below(200);
        random_cfg(random, blocks)
    }
}

/// Edges by block: into it and out of it.
fn sums(cfg: &Cfg, profile: &FunctionProfile) -> (Vec<u64>, Vec<u64>) {
    let mut edges = profile.edges.iter();
    let (mut into, mut out) = (vec![0; cfg.blocks.len()], vec![0; cfg.blocks.len()]);
    for (from, block) in cfg.blocks.iter().enumerate() {
        for (to, count) in block.successors.iter().zip(&mut edges) {
            out[from] += count;
            into[to.index()] += count;
        }
    }
    (into, out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn counts_agree(seed: u64) {
        let cfg = any_graph(&mut Random(seed));
        let profile = random_profile(&cfg, seed);
        prop_assert_eq!(&profile, &random_profile(&cfg, seed));
        prop_assert_eq!(profile.cfg_hash, cfg.hash());
        prop_assert_eq!(profile.blocks.len(), cfg.blocks.len());
        prop_assert_eq!(profile.edges.len(), cfg.edge_count());

        let graph = PathGraph::new(&cfg, &NumberingOptions::default());
        // What begins and ends in each block, as the paths have it.
        let (mut begun, mut ended) = (vec![0.0; cfg.blocks.len()], vec![0.0; cfg.blocks.len()]);
        let mut passed = vec![0.0; cfg.blocks.len()];
        let mut activations = 0.0;
        for estimate in &profile.paths {
            let path = &estimate.path;
            prop_assert!(graph.number_of(path).is_some(), "{:?} is no path of {:?}", path, cfg);
            prop_assert!(estimate.count > 0.0);
            prop_assert_eq!((estimate.low, estimate.high), (estimate.count, estimate.count));
            let (first, last) = (path.blocks[0].index(), path.blocks[path.blocks.len() - 1].index());
            path.blocks.iter().for_each(|b| passed[b.index()] += estimate.count);
            match path.start {
                Start::Entry => activations += estimate.count,
                Start::Inside => begun[first] += estimate.count,
            }
            if matches!(path.end, End::Exit | End::Call) {
                ended[last] += estimate.count;
            }
        }
        let (into, out) = sums(&cfg, &profile);
        let running = profile.blocks.iter().zip(&passed).map(|(&b, p)| b as f64 - p).sum::<f64>();
        for block in 0..cfg.blocks.len() {
            let count = profile.blocks[block] as f64;
            let entries = if block == 0 { activations } else { 0.0 };
            let resumed = graph.resumes().iter().any(|r| r.1.index() == block);
            prop_assert!(resumed || count == into[block] as f64 + entries, "block {} is entered", block);
            // Activations that cannot end are still in the block that they got to.
            let inside = count - passed[block];
            prop_assert!(inside >= 0.0);
            prop_assert_eq!(count, out[block] as f64 + ended[block] + inside, "block {} is left", block);
        }
        prop_assert!(running <= activations);
    }

    #[test]
    fn shuffling_moves_counts_of_paths_only(seed: u64) {
        let cfg = any_graph(&mut Random(seed));
        let profile = random_profile(&cfg, seed);
        let shuffled = shuffled_paths(profile.clone(), seed);
        prop_assert_eq!(&shuffled, &shuffled_paths(profile.clone(), seed));
        let counts = |p: &FunctionProfile| p.paths.iter().map(|p| p.count).collect::<Vec<_>>();
        let paths = |p: &FunctionProfile| {
            let mut paths: Vec<_> = p.paths.iter().map(|p| p.path.clone()).collect();
            paths.sort();
            paths
        };
        prop_assert_eq!(counts(&shuffled), counts(&profile));
        prop_assert_eq!(paths(&shuffled), paths(&profile));
        prop_assert_eq!(FunctionProfile { paths: profile.paths.clone(), ..shuffled }, profile);
    }
}

#[test]
fn profiles_differ_in_what_they_say() {
    let mut random = Random(1);
    let graphs: Vec<Cfg> = (0..300).map(|_| random_cfg(&mut random, 30)).collect();
    let profiles: Vec<_> = graphs.iter().map(|cfg| random_profile(cfg, 1)).collect();
    let never = profiles.iter().filter(|p| p.blocks[0] == 0).count();
    assert!((20..100).contains(&never), "{never} of 300 are never executed");
    let hottest = profiles.iter().flat_map(|p| &p.blocks).max().unwrap();
    let warm = profiles
        .iter()
        .filter(|p| p.blocks.iter().any(|b| b * 1000 > *hottest))
        .count();
    assert!((5..200).contains(&warm), "{warm} of 300 are hot");
    let other = graphs
        .iter()
        .filter(|cfg| random_profile(cfg, 1) != random_profile(cfg, 2))
        .count();
    assert!(other > 200, "{other} of 300 depend on the seed");
    let shuffled = profiles
        .iter()
        .filter(|p| shuffled_paths((*p).clone(), 1) != **p)
        .count();
    assert!(shuffled > 200, "{shuffled} of 300 have paths that can be shuffled");
}
