use super::super::inline_instance::InstanceBlocks;
use super::*;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::testing::cfg;
use pleach_ball_larus::NumberingOptions;
use pleach_ball_larus::{End, Start};
use proptest::prelude::*;

#[derive(Default)]
struct Told {
    observations: Vec<Alternatives>,
    inconsistent: usize,
    lost: usize,
}

impl Sink for Told {
    fn passed(&mut self, paths: &mut Vec<PartialPath>) {
        self.observations.push(vec![std::mem::take(paths)]);
    }

    fn alternatives(&mut self, alternatives: Alternatives) {
        self.observations.push(alternatives);
    }

    fn inconsistent(&mut self) {
        self.inconsistent += 1;
    }

    fn lost(&mut self) {
        self.lost += 1;
    }
}

/// Walks over `passed`, of which the blocks in `unprobed` are not observed.
fn walk(cfg: &Cfg, unprobed: &[u32], passed: &[u32], is_fresh: bool, has_left: bool) -> Told {
    let graph = Graph::new(cfg, &NumberingOptions::default());
    let blocks = cfg.blocks.len() as u32;
    let shown = (0..blocks).filter(|b| !unprobed.contains(b)).map(BlockIndex);
    let mut sequences = BlockSequences::new(InstanceBlocks::new(cfg.blocks.len(), shown));
    let mut activation = Activation::new(is_fresh);
    let mut told = Told::default();
    for &block in passed.iter().filter(|b| !unprobed.contains(b)) {
        activation.pass(&[BlockIndex(block)], &graph, &mut sequences, &mut told);
    }
    activation.leave(has_left, &graph, &mut sequences, &mut told);
    told
}

fn partial_path(start: Option<Start>, blocks: &[u32], end: Option<End>) -> PartialPath {
    PartialPath {
        start,
        blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
        end,
    }
}

const ENTRY: Option<Start> = Some(Start::Entry);
const INSIDE: Option<Start> = Some(Start::Inside);

#[test]
fn an_unrolled_loop_has_several_iterations_at_one_address() {
    // The arm 3 became a select.
    let cfg = cfg(&[&[1], &[2, 5], &[3, 4], &[4], &[1], &[]]);
    let graph = Graph::new(&cfg, &NumberingOptions::default());
    let shown = [0, 1, 2, 4, 5].map(BlockIndex);
    let mut sequences = BlockSequences::new(InstanceBlocks::new(cfg.blocks.len(), shown.into_iter()));
    let mut activation = Activation::new(false);
    let mut told = Told::default();
    let body = [2, 4, 1, 2, 4, 1].map(BlockIndex);
    activation.pass(&[BlockIndex(1)], &graph, &mut sequences, &mut told);
    activation.pass(&body, &graph, &mut sequences, &mut told);
    activation.pass(&body, &graph, &mut sequences, &mut told);
    assert_eq!((told.inconsistent, told.lost), (0, 0));
    assert_eq!(told.observations.len(), 4);
    for observation in &told.observations {
        let blocks: Vec<_> = observation.iter().map(|paths| &paths[0].blocks).collect();
        assert_eq!(
            blocks,
            [&[1, 2, 3, 4].map(BlockIndex)[..], &[1, 2, 4].map(BlockIndex)[..]]
        );
    }
}

#[test]
fn a_loop_is_cut_at_its_back_edge() {
    let cfg = cfg(&[&[1], &[2, 3], &[1], &[]]);
    let told = walk(&cfg, &[], &[0, 1, 2, 1, 2, 1, 3], true, true);
    let back = Some(End::Back(BlockIndex(1)));
    let expected = [
        partial_path(ENTRY, &[0, 1, 2], back),
        partial_path(INSIDE, &[1, 2], back),
        partial_path(INSIDE, &[1, 3], Some(End::Exit)),
    ];
    assert_eq!(told.observations, expected.map(|p| vec![vec![p]]));
    // Observed from its middle, and not to its end.
    let told = walk(&cfg, &[], &[2, 1], false, false);
    assert_eq!(
        told.observations,
        [
            vec![vec![partial_path(None, &[2], back)]],
            vec![vec![partial_path(INSIDE, &[1], None)]]
        ]
    );
}

#[test]
fn blocks_without_code_leave_alternatives() {
    // 1 and 2 have no code.
    let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
    let told = walk(&cfg, &[1, 2], &[0, 3], true, true);
    let whole = |by| vec![partial_path(ENTRY, &[0, by, 3], Some(End::Exit))];
    assert_eq!(told.observations, [vec![whole(1), whole(2)]]);
    // If only one of them has no code, the path is certain.
    let told = walk(&cfg, &[1], &[0, 3], true, true);
    assert_eq!(told.observations, [vec![whole(1)]]);
}

#[test]
fn each_turn_of_a_loop_is_in_doubt_for_itself() {
    // 1 is observed, 2 and 3 have no code: two sequences for each iteration.
    let cfg = cfg(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
    let mut passed = vec![0];
    passed.extend([1, 2, 4].repeat(40));
    passed.push(5);
    let told = walk(&cfg, &[2, 3], &passed, true, true);
    assert_eq!(told.lost, 0);
    assert_eq!(told.observations.len(), 40);
    let back = Some(End::Back(BlockIndex(1)));
    let turn = |by| vec![partial_path(INSIDE, &[1, by, 4], back)];
    assert_eq!(told.observations[7], vec![turn(2), turn(3)]);
}

#[test]
fn too_many_ways_are_no_evidence() {
    // Five diamonds without code in a row: 32 sequences.
    let successors: Vec<Vec<u32>> = (0..5)
        .flat_map(|d| [vec![3 * d + 1, 3 * d + 2], vec![3 * d + 3], vec![3 * d + 3]])
        .collect();
    let mut successors: Vec<&[u32]> = successors.iter().map(Vec::as_slice).collect();
    successors.extend([&[16][..], &[]]);
    let told = walk(
        &cfg(&successors),
        &(1..15).collect::<Vec<_>>(),
        &[0, 15, 16],
        true,
        true,
    );
    assert_eq!((told.lost, told.inconsistent), (1, 0));
    assert_eq!(
        told.observations,
        [vec![vec![partial_path(None, &[15, 16], Some(End::Exit))]]]
    );
}

#[test]
fn a_block_that_hides_only_sometimes_is_no_contradiction() {
    let cfg = cfg(&[&[1], &[2], &[]]);
    let graph = Graph::new(&cfg, &NumberingOptions::default());
    let mut sequences = BlockSequences::new(InstanceBlocks::new(3, (0..3).map(BlockIndex)));
    let (mut activation, mut told) = (Activation::new(true), Told::default());
    for block in [0, 2] {
        activation.pass(&[BlockIndex(block)], &graph, &mut sequences, &mut told);
    }
    assert_eq!(
        told.observations,
        [vec![vec![partial_path(ENTRY, &[0, 1, 2], Some(End::Exit))]]]
    );
    assert_eq!(told.inconsistent, 0);
    assert!(sequences.instance.is_unprobed(BlockIndex(1)));
}

fn any_cfg() -> impl Strategy<Value = Cfg> {
    prop::collection::vec((0u32..4, 1u32..5, 0u32..8), 2..14).prop_map(|shape| {
        let n = shape.len() as u32 + 1;
        let blocks = shape.iter().enumerate().map(|(at, &(kind, ahead, back))| {
            let at = at as u32;
            let next = at + 1;
            match kind {
                0 => vec![next],
                3 if at > 0 => vec![at.saturating_sub(back).max(1), next],
                _ => vec![next, (at + ahead).min(n - 1)],
            }
        });
        let mut blocks: Vec<Vec<u32>> = blocks.collect();
        blocks.push(Vec::new());
        cfg(&blocks.iter().map(Vec::as_slice).collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn what_was_passed_is_among_the_alternatives(
        cfg in any_cfg(),
        hidden in any::<u32>(),
        choices in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        // A random walk to the function's end, or of limited length.
        let (mut passed, mut at) = (vec![0], 0);
        for choice in choices {
            let successors = &cfg.blocks[at as usize].successors;
            if successors.is_empty() {
                break;
            }
            at = successors[usize::from(choice) % successors.len()].0;
            passed.push(at);
        }
        let has_left = cfg.blocks[at as usize].successors.is_empty();
        let truth = walk(&cfg, &[], &passed, true, has_left);
        prop_assert!(truth.observations.iter().all(|o| o.len() == 1));
        let truth: Vec<PartialPath> = truth.observations.into_iter().flat_map(|mut o| o.remove(0)).collect();
        // All blocks but the first and the last may be unprobed.
        let unprobed: Vec<u32> = (1..cfg.blocks.len() as u32 - 1).filter(|b| hidden >> b & 1 == 1).collect();
        let told = walk(&cfg, &unprobed, &passed, true, has_left);
        prop_assert_eq!(told.inconsistent, 0);
        // Each observation explains the next partial paths that were passed. After a loss their position is unknown.
        if told.lost > 0 {
            return Ok(());
        }
        let mut rest = truth.as_slice();
        for alternatives in &told.observations {
            let fits = |partial_paths: &Vec<PartialPath>| {
                let mut pairs = partial_paths.iter().zip(rest);
                partial_paths.len() <= rest.len() && pairs.all(|(a, b)| covers(a, b))
            };
            let Some(found) = alternatives.iter().find(|partial_paths| fits(partial_paths)) else {
                // A loop of unprobed blocks may have had several iterations.
                let loops = unprobed.iter().any(|&b| cfg.blocks[b as usize].successors.iter().any(|s| s.0 <= b));
                prop_assert!(loops, "{:?} not in {:?}", rest, alternatives);
                return Ok(());
            };
            rest = &rest[found.len()..];
        }
    }
}

/// Whether an observed partial path, which may lack its end, is the one that was passed.
fn covers(seen: &PartialPath, passed: &PartialPath) -> bool {
    seen.start == passed.start
        && match seen.end {
            Some(_) => seen == passed,
            None => passed.blocks.starts_with(&seen.blocks),
        }
}
