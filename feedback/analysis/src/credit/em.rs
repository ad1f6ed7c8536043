//! Expectation maximisation over a function's paths (feedback/ALGORITHMS.md, Path crediting).

use super::indistinct::{are_indistinct, bounds};
use super::markov::Markov;
use super::{Candidates, Credited, EdgeProbabilities};
use crate::partial_path::PartialPath;
use crate::partial_paths::FunctionEvidence;
use crate::replicates::{REPLICATES, Times};
use pleach_ball_larus::Path;

/// Maximum number of rounds.
const MAX_ROUNDS: usize = 60;
/// Rounds end when counts change by less than this share of all executions.
const TOLERANCE: f32 = 1e-4;
/// Weight of the Markov model, in executions: it decides only where nothing was observed.
const PRIOR: f32 = 1.0;
/// Minimum probability in the Markov model of a candidate that no burst holds whole.
const MIN_PROBABILITY: f64 = 1e-3;
const ZERO: Times = [0.0; REPLICATES + 1];

/// The matching set of a partial path.
pub(super) struct Matching {
    /// Candidates, and the fraction of each that the partial path is.
    paths: Vec<(u32, f32)>,
}

/// An observation with its matching sets.
pub(super) struct Weighed<'a> {
    pub times: &'a Times,
    /// By alternative: positions in the list of matchings.
    pub alternatives: Vec<Vec<u32>>,
    /// Whether nothing in the recording tells the alternatives apart.
    pub is_indistinct: bool,
}

/// Estimates a function's path counts. `flow`: the inferred counts of its edges.
pub(super) fn credit(function: &FunctionEvidence, flow: Option<&EdgeProbabilities>) -> Credited {
    let markov = Markov::new(function, flow);
    let candidates = candidates(function, &markov);
    let (matchings, observations, unlisted) = evidence(function, &candidates);
    let prior = prior(&markov, candidates.paths());
    let mut counts = vec![ZERO; candidates.paths().len()];
    // Where no observation tells paths apart, their ratio remains that of the first round.
    let first = |path: &Path| [flow.map_or(1.0, |flow| flow.of_path(path)); REPLICATES + 1];
    let mut weights: Vec<Times> = candidates.paths().iter().map(first).collect();
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
        bounds: bounds(&matchings, &observations, &weights, &counts),
        candidates,
        counts,
        unlisted,
    }
}

/// Whole observed paths, paths that are probable by their edges, and for each partial path that none of these explains
/// the likeliest path that does.
fn candidates(function: &FunctionEvidence, markov: &Markov<'_>) -> Candidates {
    let mut candidates = Candidates::default();
    let partial_paths = || {
        function
            .observations
            .iter()
            .flat_map(|o| o.alternatives.iter().flatten())
    };
    partial_paths().filter_map(PartialPath::whole).for_each(|path| {
        candidates.add(path);
    });
    for (path, _) in markov.likeliest(MIN_PROBABILITY) {
        candidates.add(path);
    }
    // Long partial paths first: their completions may explain shorter ones.
    let mut partial: Vec<&PartialPath> = partial_paths()
        .filter(|p| p.start.is_none() || p.end.is_none())
        .collect();
    partial.sort_unstable_by(|a, b| b.blocks.len().cmp(&a.blocks.len()).then_with(|| a.cmp(b)));
    partial.dedup();
    for partial_path in partial {
        if candidates.matching(partial_path).is_empty()
            && let Some(path) = markov.complete(partial_path)
        {
            candidates.add(path);
        }
    }
    candidates
}

/// The prior of each candidate by the Markov model, in executions.
fn prior(markov: &Markov<'_>, paths: &[Path]) -> Vec<f32> {
    let probabilities: Vec<f64> = paths.iter().map(|path| markov.probability(path)).collect();
    let all = probabilities.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    // Never zero: an observed path is possible.
    let least = 1e-6;
    probabilities
        .iter()
        .map(|p| PRIOR * ((p / all) as f32).max(least))
        .collect()
}

fn evidence<'a>(function: &'a FunctionEvidence, candidates: &Candidates) -> (Vec<Matching>, Vec<Weighed<'a>>, Times) {
    let shown = |path: &Path| path.blocks.iter().filter(|b| function.shown[b.index()]).count() as f32;
    let lengths: Vec<f32> = candidates.paths().iter().map(|path| shown(path).max(1.0)).collect();
    let (mut matchings, mut observations, mut unlisted) = (Vec::new(), Vec::new(), ZERO);
    for observation in &function.observations {
        let mut alternatives = Vec::with_capacity(observation.alternatives.len());
        for partial_paths in &observation.alternatives {
            let first = matchings.len() as u32;
            for partial_path in partial_paths {
                let is_whole = partial_path.start.is_some() && partial_path.end.is_some();
                let seen = partial_path.blocks.iter().filter(|b| function.shown[b.index()]).count() as f32;
                let fraction = |path: u32| {
                    if is_whole {
                        1.0
                    } else {
                        (seen / lengths[path as usize]).min(1.0)
                    }
                };
                let paths = candidates
                    .matching(partial_path)
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
            observations.push(Weighed {
                times: &observation.times,
                is_indistinct: alternatives.len() > 1 && are_indistinct(&observation.alternatives, &function.shown),
                alternatives,
            });
        }
    }
    (matchings, observations, unlisted)
}

/// One round: distributes observations in proportion to the paths' weights, and returns the new counts.
fn round(matchings: &[Matching], observations: &[Weighed<'_>], weights: &[Times]) -> Vec<Times> {
    let mut counts = vec![ZERO; weights.len()];
    let all = sum_of(weights);
    for observation in observations {
        match &observation.alternatives[..] {
            [partial_paths] => {
                for &partial_path in partial_paths {
                    let matching = &matchings[partial_path as usize];
                    share(matching, observation.times, weights, |path, part| {
                        add(&mut counts[path as usize], part, |t| t)
                    });
                }
            }
            alternatives => {
                let likelihoods = likelihoods(observation, matchings, weights, &all);
                for (partial_paths, likelihood) in alternatives.iter().zip(&likelihoods) {
                    let times: Times = std::array::from_fn(|lane| observation.times[lane] * likelihood[lane]);
                    for &partial_path in partial_paths {
                        let matching = &matchings[partial_path as usize];
                        share(matching, &times, weights, |path, part| {
                            add(&mut counts[path as usize], part, |t| t)
                        });
                    }
                }
            }
        }
    }
    counts
}

/// The sum of all paths' weights.
pub(super) fn sum_of(weights: &[Times]) -> Times {
    let mut all = ZERO;
    weights.iter().for_each(|weight| add(&mut all, weight, |w| w));
    all
}

pub(super) fn add(sum: &mut Times, times: &Times, with: impl Fn(f32) -> f32) {
    sum.iter_mut().zip(times).for_each(|(sum, &t)| *sum += with(t));
}

/// The probability of each alternative of an observation.
pub(super) fn likelihoods(
    observation: &Weighed<'_>,
    matchings: &[Matching],
    weights: &[Times],
    all: &Times,
) -> Vec<Times> {
    let of = |partial_paths: &Vec<u32>| likelihood(partial_paths, matchings, weights, all);
    let mut likelihoods: Vec<Times> = observation.alternatives.iter().map(of).collect();
    let mut sum = ZERO;
    likelihoods.iter().for_each(|l| add(&mut sum, l, |l| l));
    for likelihood in &mut likelihoods {
        likelihood
            .iter_mut()
            .zip(&sum)
            .for_each(|(l, sum)| *l /= sum.max(f32::MIN_POSITIVE));
    }
    likelihoods
}

/// Probability of a list of partial paths.
fn likelihood(partial_paths: &[u32], matchings: &[Matching], weights: &[Times], all: &Times) -> Times {
    let mut product = [1.0; REPLICATES + 1];
    for &partial_path in partial_paths {
        let mut sum = ZERO;
        for &(path, _) in &matchings[partial_path as usize].paths {
            add(&mut sum, &weights[path as usize], |w| w);
        }
        for ((product, sum), all) in product.iter_mut().zip(&sum).zip(all) {
            *product *= sum / all.max(f32::MIN_POSITIVE);
        }
    }
    product
}

/// Distributes one partial path over its matching set. `give` gets each path with its part.
pub(super) fn share(matching: &Matching, times: &Times, weights: &[Times], mut give: impl FnMut(u32, &Times)) {
    if let [(path, fraction)] = matching.paths[..] {
        give(path, &times.map(|t| t * fraction));
        return;
    }
    let mut sum = ZERO;
    for &(path, _) in &matching.paths {
        add(&mut sum, &weights[path as usize], |w| w);
    }
    let scale: Times = std::array::from_fn(|lane| times[lane] / sum[lane].max(f32::MIN_POSITIVE));
    for &(path, fraction) in &matching.paths {
        let weights = &weights[path as usize];
        give(
            path,
            &std::array::from_fn(|lane| weights[lane] * scale[lane] * fraction),
        );
    }
}
