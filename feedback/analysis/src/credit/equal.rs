//! Equal crediting, as the papers have it (Shye et al., INTERACT 2005, §3.3; thesis §3.5.3.3), on acyclic paths.

use super::{Candidates, Credited};
use crate::partial_path::PartialPath;
use crate::partial_paths::FunctionEvidence;
use crate::replicates::{REPLICATES, Times};

/// A matching set with more paths than this is not shared out.
const MAX_PATHS: u64 = 1024;
const ZERO: Times = [0.0; REPLICATES + 1];

/// Gives each path of a piece's matching set the same share of the piece's count.
pub(super) fn credit(function: &FunctionEvidence) -> Credited {
    let mut candidates = Candidates::default();
    let (mut counts, mut unlisted): (Vec<Times>, Times) = (Vec::new(), ZERO);
    for observation in &function.observations {
        let alternatives = observation.alternatives.len() as f32;
        for piece in observation.alternatives.iter().flatten() {
            let matching = matching(function, piece);
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
    }
}

/// All paths of the graph that contain a piece; none where they are too many.
fn matching(function: &FunctionEvidence, piece: &PartialPath) -> Vec<pleach_ball_larus::Path> {
    match piece.whole() {
        Some(path) => vec![path],
        None => function
            .graph
            .paths
            .containing(piece.start, &piece.blocks, piece.end, MAX_PATHS),
    }
}
