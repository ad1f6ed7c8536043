//! Equal crediting, as in the papers (Shye et al., INTERACT 2005, §3.3; thesis §3.5.3.3), on acyclic paths.

use super::{Candidates, Credited};
use crate::partial_path::PartialPath;
use crate::partial_paths::FunctionEvidence;
use crate::replicates::{REPLICATES, Times};

/// Maximum number of paths of a matching set that is distributed.
const MAX_PATHS: u64 = 1024;
const ZERO: Times = [0.0; REPLICATES + 1];

/// Gives each path of a partial path's matching set the same share of the partial path's count.
pub(super) fn credit(function: &FunctionEvidence) -> Credited {
    let mut candidates = Candidates::default();
    let (mut counts, mut unlisted): (Vec<Times>, Times) = (Vec::new(), ZERO);
    for observation in &function.observations {
        let alternatives = observation.alternatives.len() as f32;
        for partial_path in observation.alternatives.iter().flatten() {
            let matching = matching(function, partial_path);
            let share = 1.0 / (alternatives * matching.len().max(1) as f32);
            let add = |sum: &mut Times| {
                sum.iter_mut()
                    .zip(&observation.times)
                    .for_each(|(sum, t)| *sum += t * share);
            };
            if matching.is_empty() {
                add(&mut unlisted);
            }
            for path in matching {
                let number = candidates.add(path) as usize;
                if number == counts.len() {
                    counts.push(ZERO);
                }
                add(&mut counts[number]);
            }
        }
    }
    Credited {
        candidates,
        counts,
        unlisted,
        bounds: Default::default(),
    }
}

/// All paths of the graph that contain a partial path; none if there are more than [`MAX_PATHS`].
fn matching(function: &FunctionEvidence, partial_path: &PartialPath) -> Vec<pleach_ball_larus::Path> {
    match partial_path.whole() {
        Some(path) => vec![path],
        None => function
            .graph
            .paths
            .containing(partial_path.start, &partial_path.blocks, partial_path.end, MAX_PATHS),
    }
}
