//! Bursts as counts of machine instructions and branches, and what is between two distributions.

use anyhow::{Context, Result};
use pleach_analysis::program::Program;
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::map::AddressMap;
use pleach_annotate::probe::Address;
use pleach_collector::vector::{CodeAddress, ModuleId, VectorSet};
use std::collections::HashMap;
use std::hash::Hash;

/// The difference of two distributions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Distribution {
    /// Σ min(p, q): 1 where they are the same.
    pub overlap: f64,
    /// Kullback–Leibler divergence of the exact one from the estimate with 1 added to each count, in nats.
    pub divergence: f64,
}

/// Compares estimated counts with exact ones.
pub fn difference<K: Hash + Eq>(estimate: &HashMap<K, f64>, exact: &HashMap<K, u64>) -> Distribution {
    let all: f64 = estimate.values().sum();
    let (all_exact, kinds) = (exact.values().sum::<u64>() as f64, exact.len() as f64);
    let mut difference = Distribution {
        overlap: 0.0,
        divergence: 0.0,
    };
    for (key, &count) in exact.iter().filter(|(_, count)| **count > 0) {
        let (p, seen) = (count as f64 / all_exact, estimate.get(key).copied().unwrap_or(0.0));
        difference.overlap += p.min(seen / all.max(f64::MIN_POSITIVE));
        difference.divergence += p * (p / ((seen + 1.0) / (all + kinds))).ln();
    }
    difference
}

/// Weighted counts of what bursts saw in the annotated file.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    /// Executions of each instruction.
    pub instructions: HashMap<u64, f64>,
    /// Taken jumps and calls within the file.
    pub branches: HashMap<(u64, u64), f64>,
}

impl Estimate {
    /// Counts each branch, and the fall-through range that follows it, with the weight of that branch of that burst.
    pub fn from_vectors(
        program: &Program,
        vectors: &VectorSet,
        first_fall_through: bool,
        weight: &dyn Fn(usize, usize) -> f64,
    ) -> Result<Self> {
        let (module, map) = program
            .annotated()
            .next()
            .context("nothing that was sampled is annotated")?;
        let mut fall_throughs: HashMap<(Address, Address), f64> = HashMap::new();
        let mut branches: HashMap<(u64, u64), f64> = HashMap::new();
        let address = |at: CodeAddress| place(map, module, at);
        let mut fall_through = |start, end, weight| {
            if let (Some(start), Some(end)) = (address(start), address(end)) {
                *fall_throughs.entry((start, end)).or_default() += weight;
            }
        };
        for (number, burst) in vectors.bursts.iter().enumerate() {
            if let (true, Some(start), Some(first)) = (first_fall_through, burst.start, burst.branches.first()) {
                fall_through(start, first.from, weight(number, 0));
            }
            for (position, branch) in burst.branches.iter().enumerate() {
                let weight = weight(number, position);
                if let Some(next) = burst.branches.get(position + 1) {
                    fall_through(branch.to, next.from, weight);
                }
                if let (Some(from), Some(to)) = (address(branch.from), address(branch.to)) {
                    *branches.entry((from.0, to.0)).or_default() += weight;
                }
            }
        }
        let transfer = |from: u64| instruction_at(&map.binary, Address(from)).map(|i| i.transfer);
        branches.retain(|&(from, _), _| transfer(from) != Some(Transfer::Return));
        let mut instructions: HashMap<u64, f64> = HashMap::new();
        for ((mut at, end), weight) in fall_throughs {
            while at <= end {
                *instructions.entry(at.0).or_default() += weight;
                let Some(here) = instruction_at(&map.binary, at) else {
                    break;
                };
                at = Address(at.0 + u64::from(here.len));
            }
        }
        Ok(Self { instructions, branches })
    }

    /// Shares of instructions by function, estimated and exact; the largest differences first.
    pub fn functions(&self, program: &Program, exact: &HashMap<u64, u64>) -> Vec<(String, f64, f64)> {
        let Some((_, map)) = program.annotated().next() else {
            return Vec::new();
        };
        let name = |at: u64| {
            let symbol = map.binary.symbol_at(Address(at))?;
            Some(map.binary.symbols.get(symbol)?.name.clone())
        };
        let all: f64 = self.instructions.values().sum();
        let all_exact = exact.values().sum::<u64>() as f64;
        let mut shares: HashMap<String, (f64, f64)> = HashMap::new();
        for (&at, count) in &self.instructions {
            shares.entry(name(at).unwrap_or_default()).or_default().0 += count / all;
        }
        for (&at, &count) in exact {
            shares.entry(name(at).unwrap_or_default()).or_default().1 += count as f64 / all_exact;
        }
        let mut shares: Vec<_> = shares.into_iter().map(|(name, (p, q))| (name, p, q)).collect();
        shares.sort_by(|a, b| {
            (b.1 - b.2)
                .abs()
                .total_cmp(&(a.1 - a.2).abs())
                .then_with(|| a.0.cmp(&b.0))
        });
        shares
    }
}

fn place(map: &AddressMap, module: ModuleId, at: CodeAddress) -> Option<Address> {
    (at.module == module).then(|| map.binary.address_of_offset(at.offset))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences() {
        let exact = HashMap::from([(1, 300), (2, 100)]);
        let same = difference(&HashMap::from([(1, 30_000.0), (2, 10_000.0)]), &exact);
        assert!(
            (same.overlap - 1.0).abs() < 1e-9 && same.divergence.abs() < 1e-3,
            "{same:?}"
        );
        let other = difference(&HashMap::from([(1, 100.0), (3, 100.0)]), &exact);
        assert!(
            (other.overlap - 0.5).abs() < 1e-9 && other.divergence > 0.3,
            "{other:?}"
        );
    }
}
