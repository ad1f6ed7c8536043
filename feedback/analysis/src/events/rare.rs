//! Calls that run too rarely for bursts. Breakpoints counted the blocks that make them, which is one step back, exactly:
//! what led to these blocks is not known.

use super::targets::EventTarget;
use crate::program::Program;
use pleach_annotate::cfg::Callee;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_profile::events::{EventPlace, EventProfile, EventSource, Place, Step};
use pleach_profile::{Covered, FunctionProfile};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The calls of an event that breakpoints counted, in blocks that no burst passed. `None`: there are none.
pub(super) fn calls(target: &EventTarget, program: &Program, functions: &[FunctionProfile]) -> Option<EventProfile> {
    let callees: FxHashMap<FunctionGuid, &str> = target
        .callees
        .iter()
        .map(|(name, what)| (FunctionGuid::of_name(name), what.as_str()))
        .collect();
    let known: FxHashMap<(FunctionId, CfgHash), &FunctionProfile> =
        functions.iter().map(|f| ((f.id, f.cfg_hash), f)).collect();
    let mut counted: BTreeMap<(Step, &str), u64> = BTreeMap::new();
    // A function of a header may be in several modules.
    let graphs: BTreeMap<_, _> = program
        .annotated()
        .flat_map(|(_, map)| &map.functions)
        .map(|function| ((function.cfg.id, function.hash), &function.cfg))
        .collect();
    for ((id, cfg_hash), cfg) in graphs {
        let Some(function) = known.get(&(id, cfg_hash)) else {
            continue;
        };
        for call in &cfg.calls {
            let Callee::Direct(callee) = call.callee else { continue };
            let Some(&what) = callees.get(&callee) else { continue };
            let executions = function.executions(call.block.index()).at_least;
            let is_rare = function.coverage.get(call.block.index()) == Some(&Covered::Hit);
            if is_rare && executions > 0 {
                let step = Step {
                    id,
                    cfg_hash,
                    block: call.block,
                    line: cfg.blocks.get(call.block.index()).map_or(0, |block| block.line),
                };
                *counted.entry((step, what)).or_default() += executions;
            }
        }
    }
    if counted.is_empty() {
        return None;
    }
    let scaled = |executions: u64| executions.saturating_mul(EventProfile::SCALE as u64);
    let all: u64 = counted.values().sum();
    let mut places: Vec<_> = counted
        .into_iter()
        .map(|((step, what), executions)| EventPlace {
            place: Place::Block(step),
            what: what.to_owned(),
            weight: scaled(executions),
            observations: executions,
            passes: 0,
            bursts: 0,
            squares: 0,
            before: Vec::new(),
        })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.weight));
    places.truncate(EventProfile::MAX_PLACES);
    Some(EventProfile {
        name: target.name.clone(),
        source: EventSource::Breakpoints,
        weight: scaled(all),
        observations: all,
        squares: scaled(all),
        left_out: 0,
        distances: (0, 0),
        places,
    })
}
