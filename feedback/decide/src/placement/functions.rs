//! The order of a program's functions, from its profile and its graphs.

use super::{Arc, BYTES_PER_INSTRUCTION, Node, order};
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_profile::{FunctionProfile, Profile};
use std::collections::BTreeMap;

/// Linkage names of the executed functions in placement order.
///
/// Direct calls come from the graphs and have the count of their block; indirect calls come from the profile's call
/// targets. A function without a known graph has no direct calls and the size of one instruction. Counts are those
/// before inlining.
pub fn function_order<'p>(
    profile: &'p Profile,
    graph: &dyn Fn(FunctionId, CfgHash) -> Option<&'p Cfg>,
) -> Vec<&'p str> {
    let functions = &profile.functions;
    let mut of_guid: BTreeMap<FunctionGuid, usize> = BTreeMap::new();
    for (at, function) in functions.iter().enumerate() {
        // Local functions may share a GUID: calls are attributed to the hottest.
        let known = of_guid.entry(function.id.guid).or_insert(at);
        if entries(function) > entries(&functions[*known]) {
            *known = at;
        }
    }
    let (mut nodes, mut arcs) = (Vec::with_capacity(functions.len()), Vec::new());
    for (at, function) in functions.iter().enumerate() {
        let cfg = graph(function.id, function.cfg_hash);
        nodes.push(Node {
            size: cfg.map_or(1, instructions) * BYTES_PER_INSTRUCTION,
            weight: entries(function),
        });
        let callee = |guid: FunctionGuid| of_guid.get(&guid).copied();
        arcs.extend(calls(function, cfg).filter_map(|(guid, weight)| {
            Some(Arc {
                caller: at,
                callee: callee(guid)?,
                weight,
            })
        }));
    }
    let mut names: Vec<&str> = Vec::new();
    let mut placed = std::collections::BTreeSet::new();
    for at in order(&nodes, &arcs) {
        let name = functions[at].name.as_str();
        if placed.insert(name) {
            names.push(name);
        }
    }
    names
}

fn entries(function: &FunctionProfile) -> u64 {
    // A function that ran was entered at least once, if only before the recording.
    let ran = function.blocks.iter().any(|&count| count > 0);
    function.blocks.first().copied().unwrap_or(0).max(u64::from(ran))
}

fn instructions(cfg: &Cfg) -> u64 {
    cfg.blocks.iter().map(|block| u64::from(block.instructions)).sum()
}

fn calls<'f>(function: &'f FunctionProfile, cfg: Option<&'f Cfg>) -> impl Iterator<Item = (FunctionGuid, u64)> + 'f {
    let direct = cfg.into_iter().flat_map(|cfg| &cfg.calls).filter_map(|call| {
        let Callee::Direct(guid) = call.callee else {
            return None;
        };
        Some((guid, function.blocks.get(call.block.index()).copied()?))
    });
    let indirect = function
        .call_targets
        .iter()
        .flat_map(|site| site.targets.iter().copied());
    direct.chain(indirect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Block, Call, Terminator};
    use pleach_annotate::id::{BlockIndex, ModuleHash};
    use pleach_profile::CallTargets;

    fn id(guid: u64) -> FunctionId {
        FunctionId {
            guid: FunctionGuid(guid),
            module: ModuleHash(0),
        }
    }

    /// A function of one block with these calls.
    fn cfg(guid: u64, name: &str, callees: &[Callee]) -> Cfg {
        let call = |&callee: &Callee| Call {
            block: BlockIndex(0),
            callee,
            may_not_return: false,
        };
        Cfg {
            id: id(guid),
            module: ModuleHash(1),
            name: name.into(),
            source_file: "f.c".into(),
            blocks: vec![Block {
                successors: vec![],
                terminator: Terminator::Return,
                is_eh_pad: false,
                instructions: 10,
                line: 0,
            }],
            calls: callees.iter().map(call).collect(),
        }
    }

    fn profile(cfgs: &[Cfg], counts: &[u64]) -> Profile {
        let function = |(cfg, &count): (&Cfg, &u64)| FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name.clone(),
            samples: count,
            blocks: vec![count],
            edges: vec![],
            ..FunctionProfile::default()
        };
        Profile {
            functions: cfgs.iter().zip(counts).map(function).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn callees_follow_their_callers_for_direct_and_indirect_calls() {
        let direct = |guid| Callee::Direct(FunctionGuid(guid));
        let cfgs = [
            cfg(1, "main", &[direct(4)]),
            cfg(2, "hottest", &[]),
            cfg(3, "through_pointer", &[]),
            cfg(4, "parse", &[Callee::Indirect, direct(99)]),
            cfg(5, "never", &[]),
        ];
        let mut profile = profile(&cfgs, &[10, 5000, 40, 20, 0]);
        profile.functions[3].call_targets = vec![CallTargets {
            call: 0,
            targets: vec![(FunctionGuid(3), 40)],
        }];
        let known = |id, _| cfgs.iter().find(|cfg| cfg.id == id);
        assert_eq!(
            function_order(&profile, &known),
            ["hottest", "main", "parse", "through_pointer"]
        );
        // Without graphs: by indirect calls and by counts.
        assert_eq!(
            function_order(&profile, &|_, _| None),
            ["hottest", "parse", "through_pointer", "main"]
        );
    }
}
