//! Counts of places → a profile: the way back from [`collect`](mod@super::collect).
//!
//! Where a function's places are probes of its graph, a block's count is that of its probe. Else debug information tells
//! which block a place belongs to, and a block has the count of its most executed place, as in clang's sample loader.
//! Blocks without a place are unknown. Flow is inferred from these counts, as from sampled ones.

use super::{Counts, FunctionSamples, SampleProfile, collect};
use pleach_analysis::analyse::SCALE;
use pleach_annotate::cfg::{Callee, Cfg, ProbeTarget};
use pleach_annotate::id::{CallIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_annotate::sources::{Locations, SourcePlace};
use pleach_inference::{Evidence, infer};
use pleach_profile::summary::{HOT_CUTOFF, ProfileSummary};
use pleach_profile::{Anchor, CallTargets, FunctionProfile, Profile, Provenance};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Block entries that count as one burst of evidence: a burst of run-ahead has as many taken branches.
const ENTRIES_OF_BURST: u64 = 1000;
/// What the provenance says of such a profile.
pub const ENGINE: &str = "sample-profile";

/// An annotated binary, with the places of its instructions.
#[derive(Debug)]
pub struct Annotated {
    /// Its functions.
    pub map: AddressMap,
    /// Its debug information.
    pub locations: Locations,
}

/// What of a sample profile was used. Functions by their linkage names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Functions whose counts are used.
    pub functions: usize,
    /// Functions that no binary has.
    pub unknown: Vec<Rc<str>>,
    /// Functions with probes of another graph.
    pub changed: Vec<Rc<str>>,
    /// Functions with counts of lines, none of which debug information of a binary knows.
    pub without_lines: Vec<Rc<str>>,
}

/// The block of each place, found by giving each block its number as a count.
struct Numbers<'m> {
    map: &'m AddressMap,
    numbers: Vec<u64>,
}

impl Counts for Numbers<'_> {
    fn blocks(&self, instance: InlineInstanceIndex) -> Option<&[u64]> {
        self.numbers.get(..self.map.function_of(instance).cfg.blocks.len())
    }

    fn targets(&self, _: InlineInstanceIndex, _: CallIndex) -> Vec<(FunctionGuid, u64)> {
        Vec::new()
    }

    fn are_of_instances(&self) -> bool {
        false
    }
}

/// For each function of a binary, the block of each of its places.
fn blocks_of_places(binary: &Annotated) -> BTreeMap<Rc<str>, BTreeMap<SourcePlace, usize>> {
    let sizes = binary
        .map
        .functions
        .iter()
        .map(|function| function.cfg.blocks.len() as u64);
    let numbers = Numbers {
        map: &binary.map,
        numbers: (1..=sizes.max().unwrap_or(0)).collect(),
    };
    let mut found = SampleProfile::default();
    let locations = std::slice::from_ref(&binary.locations);
    collect(&mut found, &binary.map, locations, &numbers, &FxHashMap::default());
    let places = |function: FunctionSamples| {
        let body = function.body.into_iter();
        body.filter_map(|(place, sample)| Some((place, sample.count.checked_sub(1)? as usize)))
            .collect()
    };
    found
        .functions
        .into_iter()
        .map(|(name, function)| (name, places(function)))
        .collect()
}

/// The profile with the counts of a sample profile, for annotated binaries of the same sources. It has no paths.
/// `None` if the binaries are annotated at different anchors.
pub fn profile_of(samples: &SampleProfile, binaries: &[Annotated]) -> Option<(Profile, Used)> {
    let anchor: Anchor = binaries.first()?.map.anchor;
    if binaries.iter().any(|binary| binary.map.anchor != anchor) {
        return None;
    }
    let flat = samples.flat();
    let mut used = Used::default();
    let mut functions: BTreeMap<(FunctionId, CfgHash), FunctionProfile> = BTreeMap::new();
    let mut state: BTreeMap<&Rc<str>, Fit> = flat.functions.keys().map(|name| (name, Fit::Unknown)).collect();
    for binary in binaries {
        let places = blocks_of_places(binary);
        for function in &binary.map.functions {
            let known = functions.entry((function.cfg.id, function.hash));
            let profile = known.or_insert_with(|| without_counts(&function.cfg));
            let Some((name, samples)) = flat.functions.get_key_value(function.cfg.name.as_str()) else {
                continue;
            };
            let fit = match samples.checksum {
                Some(checksum) if CfgHash(checksum) != function.hash => Fit::Changed,
                Some(_) => fill(profile, &function.cfg, &by_probe(&function.cfg, samples)),
                None => match places.get(name) {
                    Some(places) => fill(profile, &function.cfg, &by_place(&function.cfg, samples, places)),
                    None => Fit::WithoutLines,
                },
            };
            if let Some(best) = state.get_mut(name) {
                *best = fit.max(*best);
            }
        }
    }
    for (name, fit) in state {
        match fit {
            Fit::Unknown => used.unknown.push(name.clone()),
            Fit::Changed => used.changed.push(name.clone()),
            Fit::WithoutLines => used.without_lines.push(name.clone()),
            Fit::Used => used.functions += 1,
        }
    }
    let functions: Vec<FunctionProfile> = functions.into_values().collect();
    let entries = functions
        .iter()
        .fold(0, |sum: u64, function| sum.saturating_add(function.samples));
    let profile = Profile {
        provenance: Provenance {
            engines: vec![ENGINE.to_owned()],
            bursts: entries / ENTRIES_OF_BURST,
            hot_instance_count: ProfileSummary::from_functions(&functions)
                .min_count(HOT_CUTOFF)
                .unwrap_or(0),
            ..Provenance::default()
        },
        scale: SCALE,
        anchor,
        functions,
        events: Vec::new(),
        vectors: None,
    };
    Some((profile, used))
}

/// How the counts of a function fit the binaries; the best comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Unknown,
    Changed,
    WithoutLines,
    Used,
}

fn without_counts(cfg: &Cfg) -> FunctionProfile {
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        blocks: vec![0; cfg.blocks.len()],
        edges: vec![0; cfg.edge_count()],
        ..FunctionProfile::default()
    }
}

/// The counts of a function's blocks, and the targets of its calls.
struct Counted {
    blocks: Vec<Option<u64>>,
    targets: BTreeMap<u32, BTreeMap<FunctionGuid, u64>>,
}

fn by_probe(cfg: &Cfg, samples: &FunctionSamples) -> Counted {
    let mut counted = Counted {
        // llvm-profgen leaves out what was not executed.
        blocks: vec![Some(0); cfg.blocks.len()],
        targets: BTreeMap::new(),
    };
    for (place, sample) in &samples.body {
        match cfg.probe_target(place.line_offset) {
            Some(ProbeTarget::Block(block)) => counted.blocks[block.index()] = Some(sample.count),
            Some(ProbeTarget::Call(call)) if cfg.calls[call.index()].callee == Callee::Indirect => {
                let targets = counted.targets.entry(call.0).or_default();
                for (callee, count) in &sample.callees {
                    targets.insert(FunctionGuid::of_name(callee), *count);
                }
            }
            _ => {}
        }
    }
    counted
}

fn by_place(cfg: &Cfg, samples: &FunctionSamples, blocks: &BTreeMap<SourcePlace, usize>) -> Counted {
    let mut counted = Counted {
        blocks: vec![None; cfg.blocks.len()],
        targets: BTreeMap::new(),
    };
    for (place, block) in blocks {
        let sample = samples.body.get(place);
        let count = sample.map_or(0, |sample| sample.count);
        let Some(known) = counted.blocks.get_mut(*block) else {
            continue;
        };
        *known = Some(known.map_or(count, |known| known.max(count)));
        // A place does not say which call of the block it is.
        let calls = cfg
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.block.index() == *block);
        let mut indirect = calls.filter(|(_, call)| call.callee == Callee::Indirect);
        let (Some((call, _)), None) = (indirect.next(), indirect.next()) else {
            continue;
        };
        for (callee, count) in sample.iter().flat_map(|sample| &sample.callees) {
            let targets = counted.targets.entry(call as u32).or_default();
            *targets.entry(FunctionGuid::of_name(callee)).or_default() += count;
        }
    }
    counted
}

/// Fills a function's profile with counts that conserve flow.
fn fill(profile: &mut FunctionProfile, cfg: &Cfg, counted: &Counted) -> Fit {
    if counted.blocks.iter().all(Option::is_none) {
        return Fit::WithoutLines;
    }
    let evidence = Evidence {
        blocks: counted
            .blocks
            .iter()
            .map(|count| count.map(|count| count as f64))
            .collect(),
        ..Evidence::default()
    };
    let flow = infer(cfg, &evidence, SCALE);
    let known = counted.blocks.iter().flatten();
    profile.samples = known.fold(0, |sum: u64, count| sum.saturating_add(*count));
    (profile.blocks, profile.edges) = (flow.blocks, flow.edges);
    if profile.samples > 0 {
        profile.graph = Some(Box::new(cfg.clone()));
    }
    let scaled = |(&guid, &count): (&FunctionGuid, &u64)| (guid, (count as f64 * SCALE) as u64);
    for (&call, targets) in &counted.targets {
        let mut targets: Vec<(FunctionGuid, u64)> = targets.iter().map(scaled).collect();
        targets.sort_by_key(|&(guid, count)| (std::cmp::Reverse(count), guid));
        profile.call_targets.push(CallTargets { call, targets });
    }
    Fit::Used
}
