//! Expectation maximisation over a function's paths (feedback/ALGORITHMS.md, Path crediting).

use super::markov::Markov;
use super::{Candidates, Credited};
use crate::partial_path::PartialPath;
use crate::partial_paths::FunctionEvidence;
use crate::replicates::{REPLICATES, Times};
use pleach_ball_larus::Path;

/// Rounds after which the estimate is taken as it is.
const MAX_ROUNDS: usize = 60;
/// Change in a round, as a share of all executions, at which it is done.
const TOLERANCE: f32 = 1e-4;
/// Executions that the Markov model is worth beside what was observed: it decides only where nothing else does.
const PRIOR: f32 = 1.0;
/// Paths that edges alone make likelier than this are considered even if no burst saw them whole.
const MIN_PROBABILITY: f64 = 1e-3;
const ZERO: Times = [0.0; REPLICATES + 1];

/// A piece, and what it may be a part of.
struct Matching {
    /// Candidates, and which fraction of each the piece is.
    paths: Vec<(u32, f32)>,
}

/// An observation with its matching sets.
struct Evidence<'a> {
    times: &'a Times,
    /// By alternative: positions in the list of matchings.
    alternatives: Vec<Vec<u32>>,
}

/// Estimates a function's path counts.
pub(super) fn credit(function: &FunctionEvidence) -> Credited {
    let markov = Markov::new(function);
    let candidates = candidates(function, &markov);
    let (matchings, observations, unlisted) = evidence(function, &candidates);
    let prior = prior(&markov, candidates.paths());
    let mut counts = vec![ZERO; candidates.paths().len()];
    // The first round shares equally: every path is as likely.
    let mut weights: Vec<Times> = vec![[1.0; REPLICATES + 1]; counts.len()];
    for _ in 0..MAX_ROUNDS {
        let next = round(&matchings, &observations, &weights);
        let (mut change, mut all) = (0.0_f32, 0.0_f32);
        for (new, old) in next.iter().zip(&counts) {
            change += (new[0] - old[0]).abs();
            all += new[0];
        }
        counts = next;
        if change <= TOLERANCE * all {
            break;
        }
        for ((weights, counts), prior) in weights.iter_mut().zip(&counts).zip(&prior) {
            weights
                .iter_mut()
                .zip(counts)
                .for_each(|(weight, count)| *weight = count + prior);
        }
    }
    Credited {
        candidates,
        counts,
        unlisted,
    }
}

/// Whole paths that were seen, paths that edges make likely, and for each piece that none of them explains the likeliest
/// path that does.
fn candidates(function: &FunctionEvidence, markov: &Markov<'_>) -> Candidates {
    let mut candidates = Candidates::default();
    let pieces = || {
        function
            .observations
            .iter()
            .flat_map(|o| o.alternatives.iter().flatten())
    };
    pieces().filter_map(PartialPath::whole).for_each(|path| {
        candidates.add(path);
    });
    for (path, _) in markov.likeliest(MIN_PROBABILITY) {
        candidates.add(path);
    }
    // Long pieces first: what completes one may explain shorter ones.
    let mut partial: Vec<&PartialPath> = pieces().filter(|p| p.start.is_none() || p.end.is_none()).collect();
    partial.sort_unstable_by(|a, b| b.blocks.len().cmp(&a.blocks.len()).then_with(|| a.cmp(b)));
    partial.dedup();
    for piece in partial {
        if candidates.matching(piece).is_empty()
            && let Some(path) = markov.complete(piece)
        {
            candidates.add(path);
        }
    }
    candidates
}

/// What the Markov model expects of each candidate.
fn prior(markov: &Markov<'_>, paths: &[Path]) -> Vec<f32> {
    let probabilities: Vec<f64> = paths.iter().map(|path| markov.probability(path)).collect();
    let all = probabilities.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    // Never nothing: what was seen is possible.
    let least = 1e-6;
    probabilities
        .iter()
        .map(|p| PRIOR * ((p / all) as f32).max(least))
        .collect()
}

fn evidence<'a>(function: &'a FunctionEvidence, candidates: &Candidates) -> (Vec<Matching>, Vec<Evidence<'a>>, Times) {
    let shown = |path: &Path| path.blocks.iter().filter(|b| function.shown[b.index()]).count() as f32;
    let lengths: Vec<f32> = candidates.paths().iter().map(|path| shown(path).max(1.0)).collect();
    let (mut matchings, mut observations, mut unlisted) = (Vec::new(), Vec::new(), ZERO);
    for observation in &function.observations {
        let mut alternatives = Vec::with_capacity(observation.alternatives.len());
        for pieces in &observation.alternatives {
            let first = matchings.len() as u32;
            for piece in pieces {
                let is_whole = piece.start.is_some() && piece.end.is_some();
                let seen = piece.blocks.iter().filter(|b| function.shown[b.index()]).count() as f32;
                let fraction = |path: u32| {
                    if is_whole {
                        1.0
                    } else {
                        (seen / lengths[path as usize]).min(1.0)
                    }
                };
                let paths = candidates
                    .matching(piece)
                    .into_iter()
                    .map(|path| (path, fraction(path)));
                matchings.push(Matching { paths: paths.collect() });
            }
            if matchings[first as usize..].iter().any(|m| m.paths.is_empty()) {
                matchings.truncate(first as usize);
            } else {
                alternatives.push((first..matchings.len() as u32).collect());
            }
        }
        if alternatives.is_empty() {
            unlisted
                .iter_mut()
                .zip(&observation.times)
                .for_each(|(sum, t)| *sum += t);
        } else {
            observations.push(Evidence {
                times: &observation.times,
                alternatives,
            });
        }
    }
    (matchings, observations, unlisted)
}

/// One round: observations are shared out in proportion to the paths' weights, and summed up.
fn round(matchings: &[Matching], observations: &[Evidence<'_>], weights: &[Times]) -> Vec<Times> {
    let mut counts = vec![ZERO; weights.len()];
    let mut all = ZERO;
    for weight in weights {
        add(&mut all, weight, |w| w);
    }
    for observation in observations {
        match &observation.alternatives[..] {
            [pieces] => {
                for &piece in pieces {
                    share(&matchings[piece as usize], observation.times, weights, &mut counts);
                }
            }
            alternatives => {
                let likelihoods: Vec<Times> = alternatives
                    .iter()
                    .map(|pieces| likelihood(pieces, matchings, weights, &all))
                    .collect();
                let mut sum = ZERO;
                likelihoods.iter().for_each(|l| add(&mut sum, l, |l| l));
                for (pieces, likelihood) in alternatives.iter().zip(&likelihoods) {
                    let times: Times = std::array::from_fn(|lane| {
                        observation.times[lane] * likelihood[lane] / sum[lane].max(f32::MIN_POSITIVE)
                    });
                    for &piece in pieces {
                        share(&matchings[piece as usize], &times, weights, &mut counts);
                    }
                }
            }
        }
    }
    counts
}

fn add(sum: &mut Times, times: &Times, with: impl Fn(f32) -> f32) {
    sum.iter_mut().zip(times).for_each(|(sum, &t)| *sum += with(t));
}

/// Probability of a list of pieces.
fn likelihood(pieces: &[u32], matchings: &[Matching], weights: &[Times], all: &Times) -> Times {
    let mut product = [1.0; REPLICATES + 1];
    for &piece in pieces {
        let mut sum = ZERO;
        for &(path, _) in &matchings[piece as usize].paths {
            add(&mut sum, &weights[path as usize], |w| w);
        }
        for ((product, sum), all) in product.iter_mut().zip(&sum).zip(all) {
            *product *= sum / all.max(f32::MIN_POSITIVE);
        }
    }
    product
}

/// Shares out one piece.
fn share(matching: &Matching, times: &Times, weights: &[Times], counts: &mut [Times]) {
    if let [(path, fraction)] = matching.paths[..] {
        add(&mut counts[path as usize], times, |t| t * fraction);
        return;
    }
    let mut sum = ZERO;
    for &(path, _) in &matching.paths {
        add(&mut sum, &weights[path as usize], |w| w);
    }
    let scale: Times = std::array::from_fn(|lane| times[lane] / sum[lane].max(f32::MIN_POSITIVE));
    for &(path, fraction) in &matching.paths {
        let weights = &weights[path as usize];
        for ((count, weight), scale) in counts[path as usize].iter_mut().zip(weights).zip(&scale) {
            *count += weight * scale * fraction;
        }
    }
}
