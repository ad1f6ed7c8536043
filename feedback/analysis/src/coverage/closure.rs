//! The blocks that seeds imply: the rules of [`super`], applied to a fixpoint.

use super::seeds::{Evidence, Seed, Seeds};
use super::{Coverage, FunctionCoverage, Key};
use crate::program::Program;
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid, ModuleHash};
use pleach_annotate::map::AddressMap;
use pleach_ball_larus::dominance::BlockDominance;
use pleach_profile::Covered;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The graphs and callees of a program's functions.
pub struct Known<'p> {
    functions: FxHashMap<Key, Function<'p>>,
}

struct Function<'p> {
    cfg: &'p Cfg,
    /// By call: its callee, if it is certain.
    callees: Vec<Option<Key>>,
}

impl<'p> Known<'p> {
    /// The functions of a program's annotated modules.
    pub fn from_program(program: &'p Program) -> Self {
        let mut known = Self {
            functions: FxHashMap::default(),
        };
        for (_, map) in program.annotated() {
            let names = Names::from_map(map);
            for function in &map.functions {
                known.add(&function.cfg, &names);
            }
        }
        known
    }

    /// The functions of these graphs. A call leads to the only function among them with the name.
    pub fn from_graphs(graphs: &'p [Cfg]) -> Self {
        let mut names = Names::default();
        for cfg in graphs {
            names.add((cfg.id, cfg.hash()), true);
        }
        let mut known = Self {
            functions: FxHashMap::default(),
        };
        graphs.iter().for_each(|cfg| known.add(cfg, &names));
        known
    }

    /// Adds a function. If several modules have it and its callees differ, they are unknown.
    fn add(&mut self, cfg: &'p Cfg, names: &Names) {
        let callees: Vec<_> = cfg.calls.iter().map(|call| names.callee(cfg, call.callee)).collect();
        let function = self.functions.entry((cfg.id, cfg.hash()));
        let function = function.or_insert_with(|| Function {
            cfg,
            callees: callees.clone(),
        });
        for (known, callee) in function.callees.iter_mut().zip(callees) {
            *known = known.filter(|known| Some(*known) == callee);
        }
    }

    /// The coverage of seeds and of the blocks that they imply.
    pub fn close(&self, seeds: &Seeds) -> Coverage {
        let mut closure = Closure {
            known: self,
            implied: FxHashMap::default(),
            reached: BTreeMap::new(),
            work: Vec::new(),
        };
        for (key, blocks) in &seeds.functions {
            for (block, seed) in blocks.iter().enumerate() {
                closure.reach(*key, BlockIndex(block as u32), seed.evidence);
            }
        }
        while let Some((key, block, evidence)) = closure.work.pop() {
            closure.follow(key, block, evidence);
        }
        Coverage {
            functions: closure
                .reached
                .into_iter()
                .map(|(key, reached)| {
                    (
                        key,
                        covered(&reached, seeds.functions.get(&key).map_or(&[], Vec::as_slice)),
                    )
                })
                .collect(),
        }
    }
}

fn covered(reached: &[Evidence], seeds: &[Seed]) -> FunctionCoverage {
    let seed = |block: usize| seeds.get(block).copied().unwrap_or_default();
    let of_block = |(block, reached): (usize, &Evidence)| {
        let implied = match reached {
            Evidence::None => Covered::Unknown,
            Evidence::Predicted => Covered::PredictedByDominance,
            Evidence::Hit => Covered::Hit,
            Evidence::Proved | Evidence::Completed => Covered::ByDominance,
        };
        implied.max(seed(block).covered())
    };
    FunctionCoverage {
        blocks: reached.iter().enumerate().map(of_block).collect(),
        passed: (0..reached.len()).map(|block| seed(block).passed).collect(),
        counted: Vec::new(),
    }
}

struct Closure<'k, 'p> {
    known: &'k Known<'p>,
    implied: FxHashMap<Key, BlockDominance>,
    reached: BTreeMap<Key, Vec<Evidence>>,
    work: Vec<(Key, BlockIndex, Evidence)>,
}

impl Closure<'_, '_> {
    fn reach(&mut self, key: Key, block: BlockIndex, evidence: Evidence) {
        let Some(function) = self.known.functions.get(&key) else {
            return;
        };
        let blocks = self.reached.entry(key);
        let blocks = blocks.or_insert_with(|| vec![Evidence::None; function.cfg.blocks.len()]);
        if let Some(reached) = blocks.get_mut(block.index())
            && *reached < evidence
        {
            *reached = evidence;
            self.work.push((key, block, evidence));
        }
    }

    fn follow(&mut self, key: Key, block: BlockIndex, evidence: Evidence) {
        let Some(function) = self.known.functions.get(&key) else {
            return;
        };
        let implied = self
            .implied
            .entry(key)
            .or_insert_with(|| BlockDominance::from_cfg(function.cfg));
        let mut blocks: Vec<BlockIndex> = implied.dominators(block).collect();
        // The post-dominators of a proved block are proved only if activations end as the graph says. Those of a
        // predicted block are predicted in any case.
        let follows = match evidence {
            Evidence::None | Evidence::Proved => Evidence::Predicted,
            Evidence::Predicted | Evidence::Completed => evidence,
            // Breakpoints show post-dominators and callees themselves.
            Evidence::Hit => Evidence::None,
        };
        let after: Vec<BlockIndex> = implied.post_dominators(block).collect();
        for before in blocks.drain(..) {
            self.reach(key, before, evidence);
        }
        for after in after {
            self.reach(key, after, follows);
        }
        for (call, callee) in function.cfg.calls.iter().zip(&function.callees) {
            if call.block != block {
                continue;
            }
            if let Some(callee) = callee {
                self.reach(*callee, BlockIndex::ENTRY, follows);
            }
            if call.may_not_return {
                break;
            }
        }
    }
}

/// Functions by name, if only they can be called by it.
#[derive(Default)]
struct Names {
    /// By name, and by module for local functions; `None` if several graphs have the name.
    functions: FxHashMap<(FunctionGuid, ModuleHash), Option<Key>>,
}

impl Names {
    fn from_map(map: &AddressMap) -> Self {
        let mut names = Self::default();
        // A global name leads to the function whose body has that name.
        let bodies = map.inline_instances.iter().filter_map(|instance| map.body(instance));
        let bodies: FxHashSet<Key> = bodies
            .filter(|(symbol, function)| symbol.name == function.cfg.name)
            .map(|(_, function)| (function.cfg.id, function.hash))
            .collect();
        for function in &map.functions {
            let key = (function.cfg.id, function.hash);
            let is_local = function.cfg.id.module != ModuleHash(0);
            names.add(key, is_local || map.binary.is_program && bodies.contains(&key));
        }
        names
    }

    fn add(&mut self, key: Key, is_known: bool) {
        let name = (key.0.guid, key.0.module);
        self.functions
            .entry(name)
            .and_modify(|several| *several = None)
            .or_insert(is_known.then_some(key));
    }

    fn callee(&self, caller: &Cfg, callee: Callee) -> Option<Key> {
        let Callee::Direct(guid) = callee else { return None };
        let local = self.functions.get(&(guid, caller.module));
        *local.or_else(|| self.functions.get(&(guid, ModuleHash(0))))?
    }
}
