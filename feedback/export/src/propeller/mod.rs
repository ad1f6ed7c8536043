//! Propeller's profile, for stock clang and lld: which blocks of which functions are placed together, in which order,
//! and the order of functions.
//!
//! ```text
//! v1                         clusters, for clang's -fbasic-block-sections=list=FILE
//! f main
//! c 0 3 1                    blocks of one section, in order; blocks that are not named go to another, cold one
//!
//! main                       order, for lld's --symbol-ordering-file=FILE
//! helper
//! ```
//!
//! The program was built with `-fbasic-block-address-map`, and is built again with the same options beside. Blocks that
//! were not seen are cold only from [`MIN_BURSTS_FOR_SPLITTING`] bursts on.

pub mod address_map;
pub mod layout;

use crate::taken::Taken;
use address_map::{Blocks, MapError, decode, entry};
use layout::{Jump, Node};
use pleach_annotate::binary::Binary;
use pleach_annotate::probe::Address;
use pleach_collector::vector::{CodeAddress, ModuleId, VectorSet};
use pleach_decide::placement;
use pleach_decide::support::MIN_BURSTS_FOR_SPLITTING;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// The profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Propeller {
    /// For clang.
    pub clusters: String,
    /// For lld.
    pub order: String,
    /// Functions that were executed.
    pub functions: usize,
    /// Their blocks that were executed.
    pub blocks: usize,
}

/// What was executed of a function.
#[derive(Clone, Default)]
struct Executed {
    /// By block.
    counts: Vec<u64>,
    jumps: FxHashMap<(usize, usize), u64>,
}

/// Executions by function, and calls.
struct Counter<'b> {
    binary: &'b Binary,
    module: ModuleId,
    functions: &'b [Blocks],
    /// First address, function and block, in order.
    blocks: Vec<(u64, usize, usize)>,
    executed: Vec<Executed>,
    calls: FxHashMap<(usize, usize), u64>,
}

impl Propeller {
    /// The profile of a recorded module, whose file is `binary`.
    ///
    /// # Errors
    /// As for [`decode`].
    pub fn from_vectors(vectors: &VectorSet, module: ModuleId, binary: &Binary) -> Result<Self, MapError> {
        let functions = decode(&binary.block_addresses)?;
        let mut counter = Counter::new(binary, module, &functions);
        let taken = Taken::of(vectors);
        for (branch, executed) in &taken.branches {
            counter.branch(branch.from, branch.to, executed.count);
        }
        for (&(start, end), &count) in &taken.fall_throughs {
            counter.fall_through(start, end, count);
        }
        let epochs = vectors.compressed.iter().flat_map(|compressed| &compressed.epochs);
        let kept: u64 = vectors.bursts.iter().map(|burst| burst.count).sum();
        let bursts = kept + epochs.map(|epoch| epoch.bursts).sum::<u64>();
        Ok(counter.finish(bursts >= MIN_BURSTS_FOR_SPLITTING))
    }
}

impl<'b> Counter<'b> {
    fn new(binary: &'b Binary, module: ModuleId, functions: &'b [Blocks]) -> Self {
        let mut blocks = Vec::new();
        for (function, of) in functions.iter().enumerate() {
            blocks.extend(
                of.iter()
                    .enumerate()
                    .map(|(at, block)| (block.code.start, function, at)),
            );
        }
        blocks.sort_unstable();
        let executed = functions.iter().map(|of| Executed {
            counts: vec![0; of.len()],
            jumps: FxHashMap::default(),
        });
        Self {
            binary,
            module,
            functions,
            blocks,
            executed: executed.collect(),
            calls: FxHashMap::default(),
        }
    }

    /// The position in `blocks` of the block that an address lies in.
    fn block_at(&self, at: CodeAddress) -> Option<(usize, Address)> {
        let inside = (at.module == self.module).then(|| self.binary.address_of_offset(at.offset));
        let address = inside.flatten()?;
        let after = self.blocks.partition_point(|(start, ..)| *start <= address.0);
        let position = after.checked_sub(1)?;
        let (_, function, block) = self.blocks[position];
        self.functions[function][block]
            .code
            .contains(&address.0)
            .then_some((position, address))
    }

    fn branch(&mut self, from: CodeAddress, to: CodeAddress, count: u64) {
        let (Some((from, _)), Some((to, address))) = (self.block_at(from), self.block_at(to)) else {
            return;
        };
        let ((_, caller, from), (start, callee, to)) = (self.blocks[from], self.blocks[to]);
        // Returns and resumed coroutines lead into a block.
        if start != address.0 {
            return;
        }
        if to == 0 {
            *self.calls.entry((caller, callee)).or_default() += count;
        } else if caller == callee {
            *self.executed[caller].jumps.entry((from, to)).or_default() += count;
        }
    }

    /// Code that was executed from a branch's target to the next branch.
    fn fall_through(&mut self, start: CodeAddress, end: CodeAddress, count: u64) {
        let (Some((first, _)), Some((last, _))) = (self.block_at(start), self.block_at(end)) else {
            return;
        };
        let function = self.blocks[first].1;
        // Something else than a fall-through: the program was changed, or a branch is missing.
        if last < first || self.blocks[first..=last].iter().any(|(_, of, _)| *of != function) {
            return;
        }
        let executed = &mut self.executed[function];
        for at in first..=last {
            let (_, _, block) = self.blocks[at];
            executed.counts[block] += count;
            if at > first {
                let (_, _, before) = self.blocks[at - 1];
                *executed.jumps.entry((before, block)).or_default() += count;
            }
        }
    }

    fn finish(self, splits: bool) -> Propeller {
        let mut found = Propeller {
            clusters: "v1\n".to_owned(),
            ..Propeller::default()
        };
        let nodes: Vec<placement::Node> = self
            .functions
            .iter()
            .zip(&self.executed)
            .map(|(blocks, executed)| placement::Node {
                size: blocks.iter().map(|block| block.code.end - block.code.start).sum(),
                weight: executed.counts.iter().sum(),
            })
            .collect();
        let mut arcs: Vec<placement::Arc> = self
            .calls
            .iter()
            .map(|(&(caller, callee), &weight)| placement::Arc { caller, callee, weight })
            .collect();
        arcs.sort_unstable_by_key(|arc| (arc.caller, arc.callee));
        for function in placement::order(&nodes, &arcs) {
            let Some(symbol) = self.binary.symbol_at(entry(&self.functions[function])) else {
                continue;
            };
            let name = &self.binary.symbols[symbol].name;
            let order = self.order_of(function, splits);
            let ids = order
                .iter()
                .map(|&block| self.functions[function][block].id.to_string());
            let ids: Vec<String> = ids.collect();
            let _ = writeln!(found.clusters, "f {name}\nc {}", ids.join(" "));
            let _ = writeln!(found.order, "{name}");
            found.functions += 1;
            found.blocks += self.executed[function]
                .counts
                .iter()
                .filter(|&&count| count > 0)
                .count();
        }
        found
    }

    /// The order of a function's blocks: those that were executed, the entry first; then the others, unless they are
    /// split off.
    fn order_of(&self, function: usize, splits: bool) -> Vec<usize> {
        let (blocks, executed) = (&self.functions[function], &self.executed[function]);
        let is_hot = |&block: &usize| block == 0 || executed.counts[block] > 0;
        let hot: Vec<usize> = (0..blocks.len()).filter(is_hot).collect();
        let position: FxHashMap<usize, usize> = hot.iter().enumerate().map(|(at, &block)| (block, at)).collect();
        let nodes = hot.iter().map(|&block| Node {
            size: blocks[block].code.end - blocks[block].code.start,
            count: executed.counts[block],
        });
        let jumps = executed.jumps.iter().filter_map(|((from, to), &count)| {
            let (from, to) = (*position.get(from)?, *position.get(to)?);
            Some(Jump { from, to, count })
        });
        let mut jumps: Vec<Jump> = jumps.collect();
        jumps.sort_unstable_by_key(|jump| (jump.from, jump.to));
        let order = layout::order(&nodes.collect::<Vec<_>>(), &jumps);
        let mut order: Vec<usize> = order.into_iter().map(|at| hot[at]).collect();
        if !splits {
            order.extend((0..blocks.len()).filter(|block| !is_hot(block)));
        }
        order
    }
}
