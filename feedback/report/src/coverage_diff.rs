//! The report of `pleach coverage diff`: what each of two profiles executes and the other does not.
//!
//! That the other one does not execute a block is certain if it proved so, and possible if it does not know. Functions
//! are compared where both profiles have the same graph. Of a function that only one of them has, the other one knows
//! nothing. A function whose graphs differ is not compared.

use super::block_state::{State, covered};
use super::compare::{DifferentAnchors, one_anchor};
use super::frequency::{Frequency, Unit};
use super::paths::cut;
use super::ranges::ranges;
use super::show::Graphs;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_profile::{FunctionProfile, Profile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Options of the comparison.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CoverageDiffOptions {
    /// Blocks that are only predicted count as executed. Otherwise they are unknown.
    pub predicted: bool,
    /// Number of functions in each list; `None` for all.
    pub top: Option<usize>,
}

/// What each of two profiles, A and B, executes and the other does not.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CoverageDiff {
    /// [`JSON_VERSION`].
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Number of functions of which both have the same graph.
    pub compared: u64,
    /// Numbers of functions that only A has, and only B.
    pub only_in: [u64; 2],
    /// Functions with different graphs in the two, which are not compared.
    pub not_comparable: Vec<FunctionName>,
    /// Numbers of blocks that are only predicted in A, and in B.
    pub predicted: [u64; 2],
    /// Whether those count as executed. Otherwise they are unknown.
    pub predicted_as_executed: bool,
    /// Numbers of blocks by their states in A (outer) and B (inner): executed, not executed, unknown.
    pub blocks: [[u64; 3]; 3],
    /// What A executes and B does not.
    pub only_a: Direction,
    /// What B executes and A does not.
    pub only_b: Direction,
}

/// A function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct FunctionName {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
}

/// What one profile executes and the other does not.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Direction {
    /// Blocks that the other one proved not to have executed.
    pub not_executed: Difference,
    /// Blocks of which the other one does not know.
    pub unknown: Difference,
}

/// Executed blocks of one profile that are in one state in the other.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Difference {
    /// Number of blocks.
    pub blocks: u64,
    /// Functions with such blocks, by descending number of executions.
    pub functions: Vec<FunctionDifference>,
    /// Number of functions that are not listed.
    pub hidden: u64,
}

/// Such blocks of one function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionDifference {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Number of all blocks of the function.
    pub blocks_all: u64,
    /// The blocks, in order.
    pub blocks: Vec<BlockIndex>,
    /// That of the most executed of these blocks.
    pub frequency: Frequency,
    /// The state of the whole function in the other profile.
    pub other: State,
    /// Whether the other profile has the function.
    pub in_other: bool,
    /// Lines on which the blocks begin, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
}

/// Lines of a source file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lines {
    /// The file.
    pub file: PathBuf,
    /// First and last lines. Between them, no block of the function begins that is not among these.
    pub ranges: Vec<[u32; 2]>,
}

/// Finds the source file of a function.
pub type FileOf<'f> = dyn Fn(&Cfg) -> Option<PathBuf> + 'f;

impl CoverageDiff {
    /// Compares the coverage of two profiles. `graphs` and `file_of` find source lines.
    ///
    /// # Errors
    /// Fails if the anchors differ.
    pub fn new(
        a: &Profile,
        b: &Profile,
        options: CoverageDiffOptions,
        graphs: &Graphs<'_>,
        file_of: &FileOf<'_>,
    ) -> Result<Self, DifferentAnchors> {
        let mut diff = Self {
            version: JSON_VERSION,
            anchor: one_anchor(a.anchor, b.anchor)?,
            compared: 0,
            only_in: [0; 2],
            not_comparable: Vec::new(),
            predicted: [0; 2],
            predicted_as_executed: options.predicted,
            blocks: [[0; 3]; 3],
            only_a: Direction::default(),
            only_b: Direction::default(),
        };
        let find = |id, hash| {
            let cfg = graphs(id, hash)?;
            Some((cfg, file_of(cfg)?))
        };
        let units = [a, b].map(Unit::from_profile);
        let mut not_comparable = BTreeSet::new();
        for pair in pairs(a, b) {
            match pair {
                Pair::NotComparable(function) => {
                    not_comparable.insert(FunctionName {
                        function: function.name.clone(),
                        function_id: function.id.to_string(),
                    });
                }
                Pair::Sides(sides) => diff.add(sides, units, &find),
            }
        }
        diff.not_comparable = not_comparable.into_iter().collect();
        for direction in [&mut diff.only_a, &mut diff.only_b] {
            direction.not_executed.finish(options.top);
            direction.unknown.finish(options.top);
        }
        Ok(diff)
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    fn add(&mut self, sides: [Option<&FunctionProfile>; 2], units: [Unit; 2], find: &Find<'_>) {
        match sides {
            [Some(_), Some(_)] => self.compared += 1,
            [a, b] => {
                self.only_in[0] += u64::from(a.is_some());
                self.only_in[1] += u64::from(b.is_some());
            }
        }
        let number = sides.iter().flatten().map(|f| f.blocks.len()).max().unwrap_or(0);
        let states = sides.map(|side| -> Vec<State> {
            let of_block = |block| side.map_or_else(Default::default, |f| covered(f, block));
            let state = |block| State::new(of_block(block), self.predicted_as_executed);
            (0..number).map(state).collect()
        });
        for (count, side) in self.predicted.iter_mut().zip(sides) {
            let is_predicted = |covered: &&_| State::new(**covered, true) != State::new(**covered, false);
            *count += side.map_or(0, |f| f.coverage.iter().filter(is_predicted).count() as u64);
        }
        let [a, b] = &states;
        for (a, b) in a.iter().zip(b) {
            self.blocks[*a as usize][*b as usize] += 1;
        }
        if let [Some(of_a), _] = sides {
            self.only_a.add((of_a, units[0]), [a, b], sides[1].is_some(), find);
        }
        if let [_, Some(of_b)] = sides {
            self.only_b.add((of_b, units[1]), [b, a], sides[0].is_some(), find);
        }
    }
}

/// A function of either profile.
enum Pair<'p> {
    /// The same graph in A and B.
    Sides([Option<&'p FunctionProfile>; 2]),
    /// A graph that one of them lacks, while it has others of the function.
    NotComparable(&'p FunctionProfile),
}

fn pairs<'p>(a: &'p Profile, b: &'p Profile) -> impl Iterator<Item = Pair<'p>> {
    let ids = [a, b].map(|profile| profile.functions.iter().map(|f| f.id).collect::<BTreeSet<_>>());
    let mut pairs: BTreeMap<(FunctionId, CfgHash), [Option<&FunctionProfile>; 2]> = BTreeMap::new();
    for (side, profile) in [a, b].into_iter().enumerate() {
        for function in &profile.functions {
            pairs.entry((function.id, function.cfg_hash)).or_default()[side] = Some(function);
        }
    }
    pairs.into_values().map(move |sides| match sides {
        [Some(function), None] if ids[1].contains(&function.id) => Pair::NotComparable(function),
        [None, Some(function)] if ids[0].contains(&function.id) => Pair::NotComparable(function),
        sides => Pair::Sides(sides),
    })
}

/// Finds the graph and the source file of a function.
type Find<'g> = dyn Fn(FunctionId, CfgHash) -> Option<(&'g Cfg, PathBuf)> + 'g;

impl Direction {
    /// Adds a function that this profile has. `states` are those in this profile, and in the other one.
    fn add(
        &mut self,
        (function, unit): (&FunctionProfile, Unit),
        states: [&[State]; 2],
        in_other: bool,
        find: &Find<'_>,
    ) {
        for (difference, state) in [
            (&mut self.not_executed, State::NotExecuted),
            (&mut self.unknown, State::Unknown),
        ] {
            let both = states[0].iter().zip(states[1]).enumerate();
            let chosen = both.filter(|(_, (own, other))| (**own, **other) == (State::Executed, state));
            let blocks: Vec<BlockIndex> = chosen.map(|(block, _)| BlockIndex(block as u32)).collect();
            if blocks.is_empty() {
                continue;
            }
            difference.blocks += blocks.len() as u64;
            let all = blocks.iter().map(|block| unit.frequency(function, block.index()));
            difference.functions.push(FunctionDifference {
                function: function.name.clone(),
                function_id: function.id.to_string(),
                cfg_hash: function.cfg_hash.to_string(),
                blocks_all: function.blocks.len() as u64,
                frequency: all.reduce(Frequency::max).unwrap_or_default(),
                other: State::of_whole(states[1].iter().copied()),
                in_other,
                lines: find(function.id, function.cfg_hash).and_then(|(cfg, file)| lines(cfg, file, &blocks)),
                blocks,
            });
        }
    }
}

fn lines(cfg: &Cfg, file: PathBuf, blocks: &[BlockIndex]) -> Option<Lines> {
    let numbers = |lines: &mut dyn Iterator<Item = u32>| lines.filter(|line| *line > 0).collect::<BTreeSet<_>>();
    let chosen = numbers(&mut blocks.iter().filter_map(|b| cfg.blocks.get(b.index())).map(|b| b.line));
    let chosen: Vec<u32> = chosen.into_iter().collect();
    let all = numbers(&mut cfg.blocks.iter().map(|block| block.line));
    let ranges = ranges(&chosen, all);
    (!ranges.is_empty()).then_some(Lines { file, ranges })
}

impl Difference {
    fn finish(&mut self, top: Option<usize>) {
        self.functions.sort_by(|a, b| {
            let by_name =
                || (&a.function, &a.function_id, &a.cfg_hash).cmp(&(&b.function, &b.function_id, &b.cfg_hash));
            let key = |f: &FunctionDifference| (f.frequency.share, f.frequency.at_least);
            let (a_key, b_key) = (key(a), key(b));
            let by_share = b_key.0.total_cmp(&a_key.0).then(b_key.1.cmp(&a_key.1));
            by_share.then_with(by_name)
        });
        self.hidden = cut(&mut self.functions, top);
    }
}
