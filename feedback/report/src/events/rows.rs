//! A tree of paths → rows. A path goes back as far as it has a share worth a row.

use super::{Share, effective};
use pleach_profile::events::{EventPlace, PathNode, Step};

/// Paths with a smaller share of their place have no rows of their own.
const MIN_SHARE: f64 = 0.05;

/// A path to a place.
#[derive(Clone, PartialEq, Debug)]
pub struct PathRow<'p> {
    /// Oldest first, without the place itself; empty where the step before the place differs or is not known.
    pub steps: Vec<&'p Step>,
    /// Earlier blocks differ, or no burst shows them.
    pub cut: bool,
    /// Its share of what led to the place.
    pub share: Share,
    /// Bursts that show it.
    pub bursts: u64,
    weight: u64,
}

/// The paths to a place, the most frequent first. Their shares add up to one.
pub(super) fn path_rows(place: &EventPlace) -> Vec<PathRow<'_>> {
    let mut rows = Vec::new();
    if place.passes == 0 {
        return rows;
    }
    let mut found = Vec::new();
    let least = place.passes as f64 * MIN_SHARE;
    visit(
        &place.before,
        (place.passes, place.bursts),
        least,
        &mut Vec::new(),
        &mut found,
    );
    let observations = effective(place.passes, place.squares);
    rows.extend(found.into_iter().map(|path| PathRow {
        share: Share::new(path.weight, place.passes, observations),
        steps: path.steps,
        cut: path.cut,
        bursts: path.bursts,
        weight: path.weight,
    }));
    rows.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.steps.cmp(&b.steps)));
    rows
}

/// A path that has a row.
struct Found<'p> {
    steps: Vec<&'p Step>,
    weight: u64,
    bursts: u64,
    cut: bool,
}

/// Finds the paths with at least this weight that go on from `steps`, nearest to the place first.
fn visit<'p>(
    before: &'p [PathNode],
    (weight, bursts): (u64, u64),
    least: f64,
    steps: &mut Vec<&'p Step>,
    found: &mut Vec<Found<'p>>,
) {
    let (mut rest, mut any) = (weight, false);
    for node in before.iter().filter(|node| node.weight as f64 >= least) {
        any = true;
        rest = rest.saturating_sub(node.weight);
        steps.push(&node.step);
        visit(&node.before, (node.weight, node.bursts), least, steps, found);
        steps.pop();
    }
    // What is left over came another way, or began here. Very little of it is rounding.
    let (weight, cut) = match any {
        false => (weight, !before.is_empty()),
        true if rest > weight / 1000 => (rest, true),
        true => return,
    };
    found.push(Found {
        steps: steps.iter().rev().copied().collect(),
        weight,
        bursts,
        cut,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
    use pleach_profile::events::Place;

    fn node(block: u32, weight: u64, before: Vec<PathNode>) -> PathNode {
        PathNode {
            step: Step {
                id: FunctionId::default(),
                cfg_hash: CfgHash(1),
                block: BlockIndex(block),
                line: 0,
            },
            weight,
            bursts: weight / 10,
            before,
        }
    }

    #[test]
    fn shares_of_paths_add_up() {
        let before = vec![
            node(
                1,
                700,
                vec![node(2, 500, vec![node(3, 500, Vec::new())]), node(4, 170, Vec::new())],
            ),
            node(5, 40, Vec::new()),
            node(6, 260, Vec::new()),
        ];
        let place = EventPlace {
            place: Place::Elsewhere,
            what: String::new(),
            weight: 1000,
            observations: 9,
            passes: 1000,
            bursts: 50,
            squares: 20_000,
            before,
        };
        let rows = path_rows(&place);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                let blocks: Vec<_> = row.steps.iter().map(|step| step.block.0).collect();
                (blocks, row.cut, row.weight)
            })
            .collect();
        assert_eq!(
            seen,
            [
                (vec![3, 2, 1], false, 500),
                (vec![6], false, 260),
                (vec![4, 1], false, 170),
                (vec![], true, 40),
                (vec![1], true, 30),
            ]
        );
        let sum: f64 = rows.iter().map(|row| row.share.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        assert!(
            rows.iter()
                .all(|row| row.share.low <= row.share.share && row.share.share <= row.share.high)
        );
    }
}
