//! Inlined calls of which no code is left.
//!
//! Where a small function is inlined, its blocks may become part of the code around them: branches turn into selects,
//! stores join others. Its probes are lost with them. So that a function's probes were not executed is no proof while
//! there is a call of it without code, unless the block with that call was not executed. The same holds for what such
//! a function calls.

use crate::program::Program;
use pleach_annotate::cfg::{Callee, Cfg, ProbeTarget};
use pleach_annotate::id::{BlockIndex, CallIndex, FunctionGuid};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_profile::Anchor;
use rustc_hash::{FxHashMap, FxHashSet};

/// Instructions of a function that vanishes where it is inlined, at most.
const MAX_INSTRUCTIONS: u32 = 32;

/// Functions with a call that has neither code of its own nor inlined code, in a block that may have been executed.
/// `is_absent`: whether a block was not executed in an inline instance.
pub(super) fn called(
    map: &AddressMap,
    is_absent: impl Fn(InlineInstanceIndex, BlockIndex) -> bool,
) -> FxHashSet<FunctionGuid> {
    let mut called = FxHashSet::default();
    // After the late anchor, nothing is inlined.
    if map.anchor != Anchor::Early {
        return called;
    }
    let mut with_code = FxHashSet::default();
    let mut inlined = FxHashSet::default();
    for probe in &map.probes {
        if let ProbeTarget::Call(call) = probe.target {
            with_code.insert((probe.instance, call));
        }
    }
    for (index, instance) in (0..).map(InlineInstanceIndex).zip(&map.inline_instances) {
        match instance.parent {
            Some((outer, Some(call))) => {
                with_code.insert((outer, call));
            }
            // Which of the calls of this function it was is unknown: it stands for all of them.
            Some((outer, None)) => {
                inlined.insert((outer, map.function_of(index).cfg.id.guid));
            }
            None => {}
        }
    }
    for (instance, _) in (0..).map(InlineInstanceIndex).zip(&map.inline_instances) {
        for (call, block, callee) in direct_calls(&map.function_of(instance).cfg) {
            let has_code = with_code.contains(&(instance, call)) || inlined.contains(&(instance, callee));
            if !has_code && !is_absent(instance, block) {
                called.insert(callee);
            }
        }
    }
    called
}

/// A function's direct calls, with the block and the callee of each.
fn direct_calls(cfg: &Cfg) -> impl Iterator<Item = (CallIndex, BlockIndex, FunctionGuid)> + '_ {
    (0..)
        .map(CallIndex)
        .zip(&cfg.calls)
        .filter_map(|(index, call)| match call.callee {
            Callee::Direct(callee) => Some((index, call.block, callee)),
            _ => None,
        })
}

/// Of functions with a call without code, those that are small enough to vanish, and what they call in turn.
pub(super) fn vanishing(program: &Program, called: FxHashSet<FunctionGuid>) -> FxHashSet<FunctionGuid> {
    let mut graphs: FxHashMap<FunctionGuid, Vec<&Cfg>> = FxHashMap::default();
    for (_, map) in program.annotated() {
        for function in &map.functions {
            graphs.entry(function.cfg.id.guid).or_default().push(&function.cfg);
        }
    }
    let is_small = |cfg: &&&Cfg| cfg.blocks.iter().map(|block| block.instructions).sum::<u32>() <= MAX_INSTRUCTIONS;
    let mut found = FxHashSet::default();
    let mut waiting: Vec<FunctionGuid> = called.into_iter().collect();
    while let Some(guid) = waiting.pop() {
        let small: Vec<&Cfg> = graphs
            .get(&guid)
            .into_iter()
            .flatten()
            .filter(is_small)
            .copied()
            .collect();
        if !small.is_empty() && found.insert(guid) {
            let calls = small.into_iter().flat_map(direct_calls);
            waiting.extend(calls.map(|(_, _, callee)| callee));
        }
    }
    found
}
