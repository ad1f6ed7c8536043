//! How long partial paths are, and how many functions they cross (the paper's tables 2 and 3; thesis table 4.1, figure
//! 4.3).
//!
//! A vector's partial path is first what its branches show, then extended up to a join and down to a branch, then split
//! at function boundaries, then at back edges: lengths are those of the pieces, in IR instructions.

use super::extension::extended;
use pleach_analysis::regions::Regions;
use pleach_annotate::id::BlockIndex;

/// One block that a vector shows.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The function.
    pub function: &'a Regions,
    /// Tells activations of one function apart.
    pub activation: u64,
    /// The block.
    pub block: BlockIndex,
}

/// A weighted mean in the making.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Mean {
    /// Weight of what was added.
    pub weight: f64,
    /// Its weighted sum.
    pub sum: f64,
}

impl Mean {
    fn add(&mut self, value: u64, weight: f64) {
        self.weight += weight;
        self.sum += value as f64 * weight;
    }

    /// The mean; NaN of nothing.
    pub fn get(&self) -> f64 {
        self.sum / self.weight
    }
}

/// The statistics of a recording. Lengths are in IR instructions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lengths {
    /// Of partial paths as vectors show them.
    pub initial: Mean,
    /// Of extended partial paths.
    pub extended: Mean,
    /// Of what is left after splitting at function boundaries.
    pub functions: Mean,
    /// Of what is left after splitting at back edges, too.
    pub loops: Mean,
    /// Of what is left after splitting at all regions' boundaries, too.
    pub regions: Mean,
    /// By number of function boundaries that a vector spans: how many different vectors.
    pub spans: Vec<u64>,
}

impl Lengths {
    /// Adds a vector's blocks, oldest first, seen `weight` times. `is_new`: no equal vector was added before.
    ///
    /// Blocks of one activation between blocks of another are pieces of their own: the papers split wherever a function
    /// boundary is crossed. Blocks that a vector does not show because nothing is left of them count nothing.
    pub fn add(&mut self, vector: &[Visit<'_>], weight: f64, is_new: bool) {
        let pieces: Vec<&[Visit<'_>]> = vector.chunk_by(|a, b| a.activation == b.activation).collect();
        if pieces.is_empty() {
            return;
        }
        let shown = pieces
            .iter()
            .map(|piece| instructions(piece[0].function, &blocks(piece)));
        self.initial.add(shown.sum(), weight);
        let spans = pieces.len() - 1;
        self.spans.resize(self.spans.len().max(spans + 1), 0);
        self.spans[spans] += u64::from(is_new);
        let mut extended_length = 0;
        for (position, piece) in pieces.iter().enumerate() {
            let function = piece[0].function;
            let (up, down) = (position == 0, position == spans);
            let (blocks, _) = extended(function, up, &blocks(piece), down);
            let length = instructions(function, &blocks);
            extended_length += length;
            self.functions.add(length, weight);
            for part in iterations(function, &blocks) {
                self.loops.add(instructions(function, part), weight);
            }
            for part in function.split(&blocks, None) {
                self.regions.add(instructions(function, &part.blocks), weight);
            }
        }
        self.extended.add(extended_length, weight);
    }
}

/// Blocks of one activation, split at back edges. Where blocks between two were not shown, a back edge was among what
/// is missing if the second of them had been passed before.
fn iterations<'b>(regions: &Regions, blocks: &'b [BlockIndex]) -> Vec<&'b [BlockIndex]> {
    let (mut parts, mut first) = (Vec::new(), 0);
    for (position, pair) in blocks.windows(2).enumerate() {
        let next = position + 1;
        let was_passed = blocks[first..next].contains(&pair[1]);
        if regions.is_back(pair[0], pair[1]) || (was_passed && !regions.is_edge(pair[0], pair[1])) {
            parts.push(&blocks[first..next]);
            first = next;
        }
    }
    parts.push(&blocks[first..]);
    parts
}

fn blocks(piece: &[Visit<'_>]) -> Vec<BlockIndex> {
    piece.iter().map(|visit| visit.block).collect()
}

fn instructions(function: &Regions, blocks: &[BlockIndex]) -> u64 {
    blocks
        .iter()
        .map(|&block| u64::from(function.instructions(block)))
        .sum()
}
