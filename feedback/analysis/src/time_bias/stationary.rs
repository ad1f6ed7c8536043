//! The stationary distribution of a chain that restarts at the observed visits with a small probability.

use super::chain::Chain;

/// Maximum number of sweeps.
const MAX_SWEEPS: usize = 1000;
/// Sweeps end when the change is less than this share of all visits.
const TOLERANCE: f64 = 1e-9;

/// Solves `n = (1 − ε) n P + ε visits`, up to a factor, by Gauss–Seidel; the result has one number for each state.
///
/// Mass that reaches a state without successors restarts too: that changes the factor only. The matrix `I − (1 − ε) Pᵀ`
/// is an M-matrix, so sweeps converge from any start. States are numbered as they were first executed, so one sweep
/// carries mass along whole paths.
pub fn solve(chain: &Chain, restart: f64) -> Vec<f64> {
    let restart = restart.clamp(f64::MIN_POSITIVE, 1.0);
    let (seen, sources) = (chain.visits.len(), chain.transitions.iter());
    let count = sources
        .map(|&(from, to, _)| from.max(to) as usize + 1)
        .fold(seen, usize::max);
    let mut leaving = vec![0.0; count];
    for &(from, _, times) in &chain.transitions {
        leaving[from as usize] += times;
    }
    let visits = |state: usize| chain.visits.get(state).copied().unwrap_or(0.0);
    let all: f64 = chain.visits.iter().sum();
    // Where visits are stationary already, this is the solution.
    let mut shares: Vec<f64> = (0..count).map(|state| visits(state) / restart).collect();
    for _ in 0..MAX_SWEEPS {
        let mut change = 0.0;
        let mut arriving = chain.transitions.as_slice();
        for state in 0..count {
            let here = arriving.partition_point(|&(_, to, _)| to as usize <= state);
            let (into, rest) = arriving.split_at(here);
            arriving = rest;
            let (mut inflow, mut repeats) = (visits(state), 0.0);
            for &(from, _, times) in into {
                let probability = (1.0 - restart) * times / leaving[from as usize];
                if from as usize == state {
                    repeats = probability;
                } else {
                    inflow += probability * shares[from as usize];
                }
            }
            let share = inflow / (1.0 - repeats);
            change += (share - shares[state]).abs();
            shares[state] = share;
        }
        if change * restart < TOLERANCE * all {
            break;
        }
    }
    shares.truncate(seen);
    shares
}
