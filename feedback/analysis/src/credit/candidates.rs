//! The candidates of a function: paths over which partial paths are distributed.

use crate::partial_path::PartialPath;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::Path;
use rustc_hash::FxHashMap;

/// Distinct paths, with indices to find those that contain a partial path.
#[derive(Default)]
pub(super) struct Candidates {
    paths: Vec<Path>,
    numbers: FxHashMap<Path, u32>,
    /// By edge: paths that take it.
    by_edge: FxHashMap<(BlockIndex, BlockIndex), Vec<u32>>,
    /// By block: paths that pass it.
    by_block: FxHashMap<BlockIndex, Vec<u32>>,
}

impl Candidates {
    /// Adds a path, unless it is a candidate already, and returns its number.
    pub fn add(&mut self, path: Path) -> u32 {
        if let Some(&number) = self.numbers.get(&path) {
            return number;
        }
        let number = self.paths.len() as u32;
        for pair in path.blocks.windows(2) {
            self.by_edge.entry((pair[0], pair[1])).or_default().push(number);
        }
        for &block in &path.blocks {
            self.by_block.entry(block).or_default().push(number);
        }
        self.numbers.insert(path.clone(), number);
        self.paths.push(path);
        number
    }

    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    pub fn into_paths(self) -> Vec<Path> {
        self.paths
    }

    /// The candidates that contain a partial path (Def. 3.2: the intersection of what contains its edges).
    pub fn matching(&self, partial_path: &PartialPath) -> Vec<u32> {
        const NONE: &[u32] = &[];
        let edges = partial_path
            .blocks
            .windows(2)
            .map(|pair| self.by_edge.get(&(pair[0], pair[1])));
        let fewest = edges
            .map(|paths| paths.map_or(NONE, Vec::as_slice))
            .min_by_key(|paths| paths.len());
        let fewest = fewest.unwrap_or_else(|| self.by_block.get(&partial_path.blocks[0]).map_or(NONE, Vec::as_slice));
        let contains = |&number: &u32| partial_path.is_of(&self.paths[number as usize]);
        fewest.iter().copied().filter(contains).collect()
    }
}
