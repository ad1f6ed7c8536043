//! Forms superblocks. Which ones is decided by `pleach_feedback::superblock`; here blocks are copied.

use crate::ffi;
use crate::frequencies::Frequencies;
use crate::ir::{self, FunctionIr, ModuleFacts};
use crate::markers::{self, Found, Table};
use crate::remark;
use crate::settings::Settings;
use crate::source::Source;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::prelude::LLVMBasicBlockRef;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_feedback::profile::{Caller, FunctionProfile};
use pleach_feedback::superblock::check::{Counts, check_flow};
use pleach_feedback::superblock::history::{History, Recorded, of_caller};
use pleach_feedback::superblock::unfolded::Unfolded;
use pleach_feedback::superblock::{Folding, Formation, Marker, Options, Subject, form, recorded};
use pleach_feedback::weights::PRIOR_SAMPLES;
use rustc_hash::{FxHashMap, FxHashSet};

/// The share of its instructions that a module may grow by.
const MODULE_GROWTH: f64 = 0.05;
/// Instructions that a module may grow by anyway, however small it is.
const LEAST_ROOM: u32 = 64;
/// Weights of a branch are given as so many parts.
const PARTS: f64 = 1e6;
/// Where a way may be less probable than one in [`PARTS`].
const FINE_PARTS: f64 = 1e9;
/// How many times more often than weights say a loop must have been executed for its weights to be wrong.
const WORTH_STAYING: f64 = 2.0;
/// Times that weights are put right: each leaves less to do.
const MOST_ROUNDS: usize = 4;

/// Forms superblocks in all functions of a module that have markers, and takes the markers out. Returns whether anything changed.
///
/// `last`: nothing but code generation comes after. Earlier, copies must not prevent what comes after.
pub fn run(module: &Module<'_>, settings: &Settings, last: bool) -> Result<bool, String> {
    let table = markers::table(module);
    let Some(wanted) = settings.profile.as_ref().filter(|_| !table.is_empty()) else {
        return Ok(false);
    };
    let mut facts = ModuleFacts::of(module);
    // Markers go first, in all functions: they are no part of what is copied.
    let functions: Vec<_> = module.get_functions().filter(|f| f.count_basic_blocks() > 0).collect();
    let found: Vec<Found> = functions
        .iter()
        .map(|f| markers::take(f.as_value_ref(), &table))
        .collect();
    // SAFETY: the module is alive.
    unsafe { ffi::pleach_forget_markers(module.as_mut_ptr()) };
    let functions: Vec<FunctionIr<'_>> = functions.into_iter().map(|f| ir::read(f, &mut facts)).collect();
    let source = Source::open(wanted, settings.anchor, &functions)?;
    let size: u32 = functions
        .iter()
        .flat_map(|f| &f.cfg.blocks)
        .map(|b| b.instructions)
        .sum();

    let supported = source.support()?.superblocks();
    let mut former = Former {
        facts,
        table,
        total: source.summary().total_count as f64,
        source,
        profiles: FxHashMap::default(),
        early: !last,
        // Too little evidence leaves no room; weights are put right all the same.
        room: u32::from(supported) * ((f64::from(size) * MODULE_GROWTH) as u32).max(LEAST_ROOM),
        options: options(),
        // SAFETY: the module is alive.
        remarks: unsafe { ffi::pleach_remarks_enabled(module.as_mut_ptr()) },
    };
    if ffi::pleach_option_aggressive() {
        former.room = size;
    }
    let (mut superblocks, mut changed, mut copied) = (0, 0, 0);
    for (function, found) in functions.iter().zip(&found) {
        if let Some(formation) = former.function(function, found)? {
            superblocks += formation.superblocks.len();
            changed += 1;
            copied += formation.copied;
        }
    }
    if settings.summary {
        let grown = f64::from(copied) / f64::from(size.max(1)) * 100.0;
        ffi::print(&format!(
            "pleach: {}: {superblocks} superblocks in {changed} functions, {copied} instructions copied (+{grown:.1} %)",
            former.facts.source_file
        ));
    }
    Ok(true)
}

fn options() -> Options {
    let mut options = if ffi::pleach_option_aggressive() {
        Options::aggressive()
    } else {
        Options::default()
    };
    let price = ffi::pleach_option_superblock_price();
    if price >= 0.0 {
        options.price = price;
    }
    options
}

struct Former {
    facts: ModuleFacts,
    table: Table,
    source: Source,
    profiles: FxHashMap<u64, Option<FunctionProfile>>,
    total: f64,
    early: bool,
    /// Instructions that the module may still grow by.
    room: u32,
    options: Options,
    remarks: bool,
}

/// Asks LLVM what folds.
struct Simulated {
    blocks: Vec<LLVMBasicBlockRef>,
}

impl Folding for Simulated {
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32> {
        let blocks: Vec<_> = trace.iter().map(|b| self.blocks[b.index()]).collect();
        let mut saved = vec![0; trace.len() - 1];
        // SAFETY: consecutive blocks of a trace are joined by edges; there is room for one number less than blocks.
        unsafe { ffi::pleach_folded(blocks.as_ptr(), blocks.len(), saved.as_mut_ptr()) };
        saved
    }
}

impl Former {
    fn function(&mut self, function: &FunctionIr<'_>, found: &Found) -> Result<Option<Formation>, String> {
        let (cfg, value) = (&function.cfg, function.value.as_value_ref());
        let small = ffi::pleach_option_aggressive();
        // SAFETY: the function belongs to the module.
        if found.keys.is_empty() || unsafe { !ffi::pleach_may_unfold(value, small) } {
            return Ok(None);
        }
        let Some(before) = Frequencies::of(function) else {
            return Ok(None);
        };
        let known = self.reweigh(function, found, &before.probabilities)?;
        self.stay(function, found, &known)?;
        let Some(Frequencies {
            mut counts,
            mut probabilities,
        }) = Frequencies::of(function)
        else {
            return Ok(None);
        };
        revive(function, &counts, &mut probabilities);
        self.bound(found, &mut counts)?;
        let [mut clonable, mut tight, mut dispatching] = [const { Vec::new() }; 3].map(|mut flags: Vec<u8>| {
            flags.resize(cfg.blocks.len(), 0);
            flags
        });
        // SAFETY: as above; there is room for a number per block.
        unsafe {
            ffi::pleach_clonable(value, self.early, clonable.as_mut_ptr());
            ffi::pleach_loops(value, tight.as_mut_ptr(), dispatching.as_mut_ptr());
        }
        let [clonable, tight, dispatching] =
            [clonable, tight, dispatching].map(|flags| flags.into_iter().map(|flag| flag != 0).collect::<Vec<_>>());
        let functions = numbered(&found.keys);
        let subject = Subject {
            cfg,
            counts: &counts,
            probabilities: &probabilities,
            clonable: &clonable,
            tight: &tight,
            dispatching: &dispatching,
            markers: &found.blocks,
            histories: &self.histories(found, &functions)?,
            functions: &functions,
            total: self.total,
        };
        let folding = Simulated {
            blocks: function
                .value
                .get_basic_blocks()
                .iter()
                .map(|b| b.as_mut_ptr())
                .collect(),
        };
        let formation = form(&subject, &folding, self.room, &self.options);
        if !formation.superblocks.is_empty() {
            self.room -= formation.copied;
            apply(function, &formation.graph, &probabilities)?;
            if ffi::pleach_option_verify() {
                let before = Unfolded::new(cfg, &counts, &probabilities);
                verify(function, &mut self.facts, &formation.graph, &before)?;
            }
        }
        if !self.early {
            self.keep_apart(function, &formation, &counts);
        }
        if !formation.superblocks.is_empty() {
            // SAFETY: the function belongs to the module.
            unsafe { ffi::pleach_tidy(value) };
        }
        // SAFETY: as above.
        if ffi::pleach_option_verify() && unsafe { ffi::pleach_is_broken(value) } {
            return Err(format!(
                "pleach: internal error, please report it: {} is broken",
                cfg.name
            ));
        }
        self.explain(function, &formation);
        Ok(Some(formation).filter(|f| !f.superblocks.is_empty()))
    }

    /// Gives branches the weights that were recorded, where markers tell them; returns which.
    fn reweigh(
        &mut self,
        function: &FunctionIr<'_>,
        found: &Found,
        probabilities: &[f64],
    ) -> Result<FxHashSet<BlockIndex>, String> {
        for &key in &found.keys {
            self.profile(key)?;
        }
        let count = |marker: Marker| {
            let profile = self.profiles[&found.keys[marker.context]].as_ref()?;
            Some(*profile.blocks.get(marker.block.index())? as f64)
        };
        let unseen = self.source.scale() * PRIOR_SAMPLES;
        let blocks = function.value.get_basic_blocks();
        let mut known = FxHashSet::default();
        for (block, counts) in recorded::weights(&function.cfg, &found.blocks, count, probabilities, unseen) {
            let weights: Vec<u64> = counts.iter().map(|c| c.ceil() as u64).collect();
            set_weights(blocks[block.index()], &weights);
            known.insert(block);
        }
        Ok(known)
    }

    /// Makes loops that were executed much more often than weights say go round more often.
    fn stay(&mut self, function: &FunctionIr<'_>, found: &Found, known: &FxHashSet<BlockIndex>) -> Result<(), String> {
        let blocks = function.value.get_basic_blocks();
        for _ in 0..MOST_ROUNDS {
            let Some(now) = Frequencies::of(function) else {
                return Ok(());
            };
            let factor = self.underestimated(found, &now.counts)?;
            if factor < WORTH_STAYING {
                return Ok(());
            }
            for (block, shares) in recorded::stay(&function.cfg, &now.probabilities, |b| known.contains(&b), factor) {
                let weights: Vec<u64> = shares.iter().map(|p| (p * FINE_PARTS).ceil() as u64).collect();
                set_weights(blocks[block.index()], &weights);
            }
        }
        Ok(())
    }

    /// How many times as often as `counts` say the function's most executed block was executed.
    fn underestimated(&mut self, found: &Found, counts: &[f64]) -> Result<f64, String> {
        let Some(own) = found.own else { return Ok(1.0) };
        let Some(profile) = self.profile(found.keys[own])? else {
            return Ok(1.0);
        };
        // Where it was inlined as well, not all that was recorded happens here.
        let entries = profile.blocks.first().map_or(1.0, |&count| count.max(1) as f64);
        let share = (counts[0] / entries).min(1.0);
        let mut places: FxHashMap<BlockIndex, (u32, f64)> = FxHashMap::default();
        for (markers, count) in found.blocks.iter().zip(counts) {
            for marker in markers.iter().filter(|m| m.context == own) {
                let place = places.entry(marker.block).or_default();
                *place = (place.0 + 1, place.1 + count);
            }
        }
        // Blocks that were duplicated may be in parts that are gone.
        let once = places.iter().filter(|(_, place)| place.0 == 1);
        let recorded = once.filter_map(|(block, place)| Some((*profile.blocks.get(block.index())?, place.1)));
        let hottest = recorded.max_by_key(|&(recorded, _)| recorded);
        Ok(hottest.map_or(1.0, |(recorded, count)| recorded as f64 * share / count.max(1.0)))
    }

    /// Tells the ends of blocks apart that are executed too often to be merged: what merging saves is worth less than the jump that it costs.
    fn keep_apart(&self, function: &FunctionIr<'_>, formation: &Formation, counts: &[f64]) {
        let price = self.options.price * self.total;
        let blocks = function.value.get_basic_blocks();
        let nodes = &formation.graph.nodes;
        let copies = copies(function, &formation.graph);
        let apart: Vec<_> = blocks
            .iter()
            .zip(nodes)
            .filter(|(_, node)| {
                // What comes between a comparison and its branch costs an instruction: only where there is a copy to keep.
                let branches = node.counts.len() == 2 && copies[node.origin.index()] == 1;
                if branches {
                    return false;
                }
                let instructions = f64::from(function.cfg.blocks[node.origin.index()].instructions);
                let count = if node.counts.is_empty() {
                    counts[node.origin.index()]
                } else {
                    node.count()
                };
                count > price * instructions
            })
            .map(|(block, _)| block.as_mut_ptr())
            .collect();
        // SAFETY: the blocks belong to the function.
        unsafe { ffi::pleach_keep_apart(apart.as_ptr(), apart.len()) };
    }

    /// Scales a function's counts so that none exceeds what was recorded of any block that is in it: where loops are nested and their exits were
    /// never sampled, frequencies multiply to far more than the whole program executes.
    fn bound(&mut self, found: &Found, counts: &mut [f64]) -> Result<(), String> {
        let mut recorded = 0;
        for marker in found.blocks.iter().flatten() {
            let profile = self.profile(found.keys[marker.context])?;
            let count = profile.and_then(|p| p.blocks.get(marker.block.index()));
            recorded = recorded.max(count.copied().unwrap_or(0));
        }
        let most = counts.iter().copied().fold(0.0, f64::max);
        if recorded > 0 && most > recorded as f64 {
            let factor = recorded as f64 / most;
            counts.iter_mut().for_each(|count| *count *= factor);
        }
        Ok(())
    }

    /// What is known of the paths of each context.
    fn histories(&mut self, found: &Found, functions: &[usize]) -> Result<Vec<History>, String> {
        let mut visible = vec![FxHashSet::default(); found.keys.len()];
        let mut callers: FxHashSet<(usize, BlockIndex)> = FxHashSet::default();
        for marker in found.blocks.iter().flatten() {
            visible[marker.context].insert(marker.block);
            callers.insert((functions[marker.context], marker.block));
        }
        let named = found.keys.iter().zip(functions);
        let numbers: FxHashMap<(FunctionId, CfgHash), usize> = named.map(|(key, &n)| (self.table[key], n)).collect();
        let of = |caller: &Caller, block| {
            let &number = numbers.get(&(caller.id, caller.cfg_hash))?;
            callers.contains(&(number, block)).then(|| of_caller(number, block))?
        };
        let mut histories = Vec::new();
        for (key, visible) in found.keys.iter().zip(&visible) {
            let known = self.profile(*key)?.map_or_else(Recorded::default, |p| Recorded {
                paths: &p.paths,
                windows: &p.windows,
                called: &p.called,
            });
            histories.push(History::new(known, |block| visible.contains(&block), of));
        }
        Ok(histories)
    }

    fn profile(&mut self, key: u64) -> Result<Option<&FunctionProfile>, String> {
        if !self.profiles.contains_key(&key) {
            let (id, hash) = self.table[&key];
            let found = self.source.recall(id, hash)?;
            self.profiles.insert(key, found);
        }
        Ok(self.profiles[&key].as_ref())
    }

    fn explain(&self, function: &FunctionIr<'_>, formation: &Formation) {
        let value = function.value.as_value_ref();
        if !self.remarks {
            return;
        }
        if !formation.superblocks.is_empty() {
            let gain: f64 = formation.superblocks.iter().map(|s| s.gain).sum();
            remark(
                value,
                true,
                "Superblocks",
                &format!(
                    "{} superblocks formed: {} instructions copied, which save {:.3} % of all block executions at least",
                    formation.superblocks.len(),
                    formation.copied,
                    gain / self.total * 100.0,
                ),
            );
        }
        if formation.not_worth + formation.too_large > 0 {
            remark(
                value,
                false,
                "SuperblocksDeclined",
                &format!(
                    "{} jumps into joins would save too little for their code, {} would need more code than allowed",
                    formation.not_worth, formation.too_large
                ),
            );
        }
    }
}

/// Gives ways between executed blocks that were never taken a small weight.
fn revive(function: &FunctionIr<'_>, counts: &[f64], probabilities: &mut [f64]) {
    let bases = function.cfg.edge_bases();
    let blocks = function.value.get_basic_blocks();
    for block in recorded::revive(&function.cfg, counts, probabilities) {
        let slots = function.cfg.blocks[block.index()].successors.len();
        let own = &probabilities[bases[block.index()] as usize..][..slots];
        let weights: Vec<u64> = own.iter().map(|p| (p * PARTS).round() as u64).collect();
        set_weights(blocks[block.index()], &weights);
    }
}

/// The first context that has the key of each: the same for all activations of a function.
fn numbered(keys: &[u64]) -> Vec<usize> {
    let first = |key| keys.iter().position(|k| k == key).unwrap_or_default();
    keys.iter().map(first).collect()
}

fn set_weights(block: BasicBlock<'_>, weights: &[u64]) {
    if let Some(terminator) = block.get_terminator() {
        // SAFETY: the terminator belongs to a function that is alive and has as many slots.
        unsafe { ffi::pleach_set_branch_weights(terminator.as_value_ref(), weights.as_ptr(), weights.len()) };
    }
}

/// How many nodes there are of each block.
fn copies(function: &FunctionIr<'_>, graph: &Unfolded) -> Vec<u32> {
    let mut copies = vec![0; function.cfg.blocks.len()];
    graph.nodes.iter().for_each(|node| copies[node.origin.index()] += 1);
    copies
}

/// Makes a function's graph the given one, with its weights. `probabilities`: of each slot before.
fn apply(function: &FunctionIr<'_>, graph: &Unfolded, probabilities: &[f64]) -> Result<(), String> {
    let value = function.value.as_value_ref();
    let successors: Vec<Vec<u32>> = graph
        .nodes
        .iter()
        .map(|node| node.successors.iter().map(|&s| s as u32).collect())
        .collect();
    let nodes: Vec<ffi::Node> = graph
        .nodes
        .iter()
        .zip(&successors)
        .map(|(node, successors)| ffi::Node {
            origin: node.origin.0,
            successors: successors.as_ptr(),
            count: successors.len(),
        })
        .collect();
    // SAFETY: the function belongs to the module; the nodes' successors outlive the call.
    if unsafe { !ffi::pleach_unfold(value, nodes.as_ptr(), nodes.len()) } {
        return Err(format!(
            "pleach: internal error, please report it: {} has another graph than was read",
            function.cfg.name
        ));
    }
    let copies = copies(function, graph);
    let bases = function.cfg.edge_bases();
    for (block, node) in function.value.get_basic_blocks().iter().zip(&graph.nodes) {
        let sum = node.count();
        if node.counts.len() < 2 || sum <= 0.0 || copies[node.origin.index()] == 1 {
            continue;
        }
        let before = &probabilities[bases[node.origin.index()] as usize..];
        let weight = |(&count, &before): (&f64, &f64)| {
            // That none of those who come this way was seen to go there does not say that none does.
            let least = u64::from(before > 0.0);
            ((count / sum * PARTS) as u64).max(least)
        };
        let weights: Vec<u64> = node.counts.iter().zip(before).map(weight).collect();
        set_weights(*block, &weights);
    }
    Ok(())
}

/// Checks, independently of what made it, that the function as it is now has the graph that it had, but for copies, and that flow is conserved.
fn verify(
    function: &FunctionIr<'_>,
    facts: &mut ModuleFacts,
    graph: &Unfolded,
    before: &Unfolded,
) -> Result<(), String> {
    let now = ir::read(function.value, facts);
    let origins: Vec<BlockIndex> = graph.nodes.iter().map(|node| node.origin).collect();
    let (blocks, edges) = executions(graph);
    let (blocks_before, edges_before) = executions(before);
    let (after, before) = (
        Counts {
            blocks: &blocks,
            edges: &edges,
        },
        Counts {
            blocks: &blocks_before,
            edges: &edges_before,
        },
    );
    check_flow(&function.cfg, &now.cfg, &origins, before, after)
        .map_err(|e| format!("pleach: internal error, please report it: {}: {e}", function.cfg.name))
}

/// Executions of each node and of each slot.
fn executions(graph: &Unfolded) -> (Vec<f64>, Vec<f64>) {
    let mut entered = vec![0.0; graph.nodes.len()];
    for node in &graph.nodes {
        for (&to, count) in node.successors.iter().zip(&node.counts) {
            entered[to] += count;
        }
    }
    let blocks = graph.nodes.iter().zip(&entered);
    let blocks = blocks.map(|(node, &entered)| if node.counts.is_empty() { entered } else { node.count() });
    let edges = graph.nodes.iter().flat_map(|node| node.counts.iter().copied());
    (blocks.collect(), edges.collect())
}
