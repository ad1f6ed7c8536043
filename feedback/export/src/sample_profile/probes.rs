//! Raw vectors → counts of the probes that stock clang inserts (`-fpseudo-probe-for-profiling`).
//!
//! A probe was executed as often as code was that has it: from the target of a branch to the next branch that was taken.
//! Copies of a probe are added up, as llvm-profgen does. Inlined functions are nested in their callers. Nothing is
//! inferred: clang does that when it reads the profile.

use super::{BodySample, FunctionSamples, SampleProfile};
use crate::taken::Taken;
use pleach_annotate::binary::Binary;
use pleach_annotate::descriptors::ProbeDescriptor;
use pleach_annotate::id::FunctionGuid;
use pleach_annotate::probe::{Address, ProbeForest, ProbeKind, RawInstanceIndex};
use pleach_annotate::sources::SourcePlace;
use pleach_collector::vector::{CodeAddress, ModuleId, VectorSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Functions that have probes, by GUID.
pub type Descriptors = FxHashMap<FunctionGuid, ProbeDescriptor>;

/// Counts of a module's probes. `binary`: its file, which `forest` and `descriptors` were decoded from. Functions without
/// descriptors are left out.
pub fn count_probes(
    vectors: &VectorSet,
    module: ModuleId,
    binary: &Binary,
    forest: &ProbeForest,
    descriptors: &Descriptors,
) -> SampleProfile {
    let counted = Counted::new(&Taken::of(vectors), module, binary, forest);
    let mut profile = SampleProfile::default();
    let paths = paths(forest, descriptors);
    for (probe, &count) in forest.probes.iter().zip(&counted.probes) {
        let Some(path) = &paths[probe.instance.0 as usize] else {
            continue;
        };
        let function = at_path(&mut profile, path);
        let sample = function.body.entry(place(probe.index)).or_default();
        let callees = (probe.kind != ProbeKind::Block).then(|| counted.callees.get(&probe.address));
        sample.add(&BodySample {
            count,
            callees: callees.flatten().cloned().unwrap_or_default(),
        });
        if probe.index == ENTRY && path.len() > 1 {
            function.head = function.head.saturating_add(count);
        }
    }
    for (&(instance, _), &calls) in &counted.calls {
        if let Some(path) = &paths[instance.0 as usize] {
            let function = at_path(&mut profile, path);
            function.head = function.head.saturating_add(calls);
        }
    }
    profile
}

/// The index of an entry block's probe.
const ENTRY: u32 = 1;

fn place(index: u32) -> SourcePlace {
    SourcePlace {
        line_offset: index,
        discriminator: 0,
    }
}

/// A function and the functions around it, the emitted one first; each with the probe of the call that it was inlined
/// at (0 for the emitted one), its name and checksum.
type InlinePath = Vec<(u32, Rc<str>, u64)>;

/// The path of each instance; `None` where a function has no descriptor.
fn paths(forest: &ProbeForest, descriptors: &Descriptors) -> Vec<Option<InlinePath>> {
    let mut names: FxHashMap<FunctionGuid, Rc<str>> = FxHashMap::default();
    let mut paths: Vec<Option<InlinePath>> = Vec::with_capacity(forest.instances.len());
    for instance in &forest.instances {
        let path = descriptors.get(&instance.guid).and_then(|descriptor| {
            let name = names
                .entry(instance.guid)
                .or_insert_with(|| descriptor.name.as_str().into());
            let (mut path, call) = match instance.parent {
                Some((parent, call)) => (paths[parent.0 as usize].clone()?, call),
                None => (InlinePath::new(), 0),
            };
            path.push((call, name.clone(), descriptor.checksum));
            Some(path)
        });
        paths.push(path);
    }
    paths
}

/// The counts at the end of a path.
fn at_path<'p>(profile: &'p mut SampleProfile, path: &[(u32, Rc<str>, u64)]) -> &'p mut FunctionSamples {
    let ((_, name, checksum), inlined) = path.split_first().expect("paths have an emitted function");
    let mut function = profile.functions.entry(name.clone()).or_default();
    function.checksum = Some(*checksum);
    for (call, name, checksum) in inlined {
        let callees = function.inlined.entry(place(*call)).or_default();
        function = callees.entry(name.clone()).or_default();
        function.checksum = Some(*checksum);
    }
    function
}

/// Executions in a module.
struct Counted {
    /// Of each probe of the forest.
    probes: Vec<u64>,
    /// Functions that were called by an instruction.
    callees: FxHashMap<Address, BTreeMap<Rc<str>, u64>>,
    /// Branches to the beginning of emitted functions, by the instance that has the entry's probe there.
    calls: BTreeMap<(RawInstanceIndex, Address), u64>,
}

impl Counted {
    fn new(taken: &Taken, module: ModuleId, binary: &Binary, forest: &ProbeForest) -> Self {
        let address = |at: CodeAddress| {
            (at.module == module)
                .then(|| binary.address_of_offset(at.offset))
                .flatten()
        };
        let symbol = |at: Address| binary.symbol_at(at);

        let mut places: Vec<Address> = forest.probes.iter().map(|probe| probe.address).collect();
        places.sort_unstable();
        places.dedup();
        // The difference to the place before.
        let mut differences = vec![0i64; places.len() + 1];
        for (&(start, end), &count) in &taken.fall_throughs {
            let (Some(start), Some(end)) = (address(start), address(end)) else {
                continue;
            };
            if start <= end && symbol(start) == symbol(end) {
                differences[places.partition_point(|place| *place < start)] += count as i64;
                differences[places.partition_point(|place| *place <= end)] -= count as i64;
            }
        }
        let mut sum = 0;
        let executed = differences.iter().map(|difference| {
            sum += difference;
            sum as u64
        });
        let executed: FxHashMap<Address, u64> = places.iter().copied().zip(executed).collect();

        let entries = forest.instances.iter().zip((0..).map(RawInstanceIndex));
        let entries = entries.filter(|(instance, _)| instance.parent.is_none());
        let entries =
            entries.filter_map(|(instance, number)| Some((binary.symbols.get(instance.symbol as usize)?, number)));
        // Where an orphan's tree shares the symbol, the symbol's own function is the one called.
        let entries = entries
            .filter(|(symbol, number)| forest.instances[number.0 as usize].guid == FunctionGuid::of_name(&symbol.name));
        let entries: FxHashMap<Address, RawInstanceIndex> =
            entries.map(|(symbol, number)| (symbol.address, number)).collect();

        let (mut callees, mut calls) = (FxHashMap::default(), BTreeMap::new());
        for (branch, executed) in &taken.branches {
            let Some(to) = address(branch.to) else { continue };
            let Some(callee) = symbol(to)
                .map(|symbol| &binary.symbols[symbol])
                .filter(|callee| callee.address == to)
            else {
                continue;
            };
            if let Some(&instance) = entries.get(&to) {
                *calls.entry((instance, to)).or_default() += executed.count;
            }
            if let Some(from) = address(branch.from) {
                let of_call: &mut BTreeMap<Rc<str>, u64> = callees.entry(from).or_default();
                *of_call.entry(callee.name.as_str().into()).or_default() += executed.count;
            }
        }
        Self {
            probes: forest.probes.iter().map(|probe| executed[&probe.address]).collect(),
            callees,
            calls,
        }
    }
}
