//! The summary of a profile's block counts. With it, the compiler tells hot counts from cold ones without reading every
//! record.

use super::data::FunctionProfile;
use std::collections::BTreeMap;

/// The cutoffs of LLVM's profile summaries, in parts per million.
pub const CUTOFFS: [u32; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 950_000, 990_000, 999_000,
    999_900, 999_990, 999_999,
];

/// The cutoff, in parts per million, whose minimum count LLVM uses as the threshold of hot blocks.
pub const HOT_CUTOFF: u32 = 990_000;

/// The hottest blocks that together make up a share of all counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cutoff {
    /// The share, in parts per million.
    pub ppm: u32,
    /// The smallest count among these blocks.
    pub min_count: u64,
    /// Number of blocks with at least that count.
    pub num_counts: u64,
}

/// A profile's summary: LLVM's `ProfileSummary`, of block counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProfileSummary {
    /// Sum of all block counts.
    pub total_count: u64,
    /// Largest block count.
    pub max_count: u64,
    /// Largest count of a block other than an entry.
    pub max_internal_count: u64,
    /// Largest count of an entry block.
    pub max_function_count: u64,
    /// Number of blocks.
    pub num_counts: u64,
    /// Number of functions that have blocks.
    pub num_functions: u64,
    /// For each of [`CUTOFFS`], in that order.
    pub cutoffs: [Cutoff; CUTOFFS.len()],
}

impl ProfileSummary {
    /// Summarises the block counts of functions.
    pub fn from_functions(functions: &[FunctionProfile]) -> Self {
        let mut summary = Self::default();
        // By count: number of blocks with it.
        let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
        for function in functions {
            if let Some((&entry, internal)) = function.blocks.split_first() {
                summary.num_functions += 1;
                summary.max_function_count = summary.max_function_count.max(entry);
                summary.max_internal_count = internal.iter().copied().fold(summary.max_internal_count, u64::max);
            }
            for &count in &function.blocks {
                summary.total_count = summary.total_count.saturating_add(count);
                summary.num_counts += 1;
                *frequencies.entry(count).or_default() += 1;
            }
        }
        summary.max_count = summary.max_function_count.max(summary.max_internal_count);
        summary.cutoffs = cutoffs(&frequencies, summary.total_count);
        summary
    }

    /// The smallest count among the hottest blocks that make up `ppm` parts per million of all counts. In LLVM, a count
    /// is hot from the value for 990 000 on, and cold below the value for 999 999.
    pub fn min_count(&self, ppm: u32) -> Option<u64> {
        self.cutoffs.iter().find(|c| c.ppm >= ppm).map(|c| c.min_count)
    }
}

/// `ProfileSummaryBuilder::computeDetailedSummary`.
fn cutoffs(frequencies: &BTreeMap<u64, u64>, total: u64) -> [Cutoff; CUTOFFS.len()] {
    let mut hottest = frequencies.iter().rev();
    let (mut sum, mut min_count, mut num_counts) = (0u128, 0, 0);
    CUTOFFS.map(|ppm| {
        let wanted = u128::from(total) * u128::from(ppm) / 1_000_000;
        while sum < wanted {
            let Some((&count, &frequency)) = hottest.next() else {
                break;
            };
            sum += u128::from(count) * u128::from(frequency);
            min_count = count;
            num_counts += frequency;
        }
        Cutoff {
            ppm,
            min_count,
            num_counts,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};

    fn function(blocks: &[u64]) -> FunctionProfile {
        FunctionProfile {
            id: FunctionId {
                guid: FunctionGuid(1),
                module: ModuleHash(0),
            },
            cfg_hash: CfgHash(0),
            name: String::new(),
            samples: 0,
            blocks: blocks.to_vec(),
            edges: vec![],
            ..FunctionProfile::default()
        }
    }

    #[test]
    fn as_llvm_counts() {
        let summary = ProfileSummary::from_functions(&[function(&[10, 900, 0]), function(&[60, 30]), function(&[])]);
        assert_eq!((summary.total_count, summary.max_count), (1000, 900));
        assert_eq!((summary.max_internal_count, summary.max_function_count), (900, 60));
        assert_eq!((summary.num_counts, summary.num_functions), (5, 2));
        let at = |ppm| {
            summary
                .cutoffs
                .iter()
                .find(|c| c.ppm == ppm)
                .map(|c| (c.min_count, c.num_counts))
        };
        assert_eq!(at(10_000), Some((900, 1)));
        assert_eq!(at(900_000), Some((900, 1)));
        assert_eq!(at(950_000), Some((60, 2)));
        assert_eq!(at(990_000), Some((30, 3)));
        assert_eq!(at(999_999), Some((10, 4)));
        assert_eq!(summary.min_count(990_000), Some(30));
    }

    #[test]
    fn of_nothing() {
        let summary = ProfileSummary::from_functions(&[]);
        assert_eq!((summary.total_count, summary.num_counts), (0, 0));
        assert!(summary.cutoffs.iter().all(|c| c.min_count == 0));
    }
}
