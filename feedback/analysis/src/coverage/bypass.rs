//! Code in which a block was passed by without its probe.
//!
//! The optimiser leads an edge around a block that does nothing there: a condition is known on one path, or a block is
//! empty in one of its copies. The block is then executed in the graph, but its probes, which lie in other copies, are
//! not. So that a block has probes and none was executed is no proof. It is one if
//!
//! - none of the blocks before it was executed, nor is one of them in doubt; or
//! - each executed copy of each block before it is as the graph says: its machine code may go on to a probe of the
//!   block, so that this edge exists there; and it goes on nowhere where the graph does not lead without passing
//!   another probe. A return that was copied into the blocks before it leads out of the function, for instance.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, Probe};
use pleach_annotate::places::{Places, belongs};
use pleach_annotate::probe::Address;
use pleach_collector::vector::coverage::{ModuleCoverage, Region, RegionState};
use rustc_hash::FxHashSet;

/// What is known about a block in one inline instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The instance has no probe of it.
    NoProbe,
    /// It was executed.
    Executed,
    /// It was not executed.
    Absent,
    /// Nothing is known.
    Unknown,
}

/// The regions of a module with their states.
pub(super) struct Code<'c> {
    places: Places,
    coverage: &'c ModuleCoverage,
    /// By region: the inline instances with block probes in it.
    probes: Vec<Vec<InlineInstanceIndex>>,
    /// By region: whether a direct jump or a fall-through leads there.
    has_known_predecessor: Vec<bool>,
}

impl<'c> Code<'c> {
    /// Relates the coverage of a module to its code.
    pub fn new(map: &AddressMap, coverage: &'c ModuleCoverage) -> Self {
        let places = Places::of_map(map);
        let mut has_known_predecessor = vec![false; places.regions.len()];
        for next in places.regions.iter().flat_map(|region| &region.next) {
            if let Some(has) = has_known_predecessor.get_mut(*next as usize) {
                *has = true;
            }
        }
        let mut code = Self {
            probes: vec![Vec::new(); places.regions.len()],
            places,
            coverage,
            has_known_predecessor,
        };
        for probe in &map.probes {
            if let Some(region) = code.position(probe.address) {
                let instances = &mut code.probes[region];
                if matches!(probe.target, pleach_annotate::cfg::ProbeTarget::Block(_))
                    && !instances.contains(&probe.instance)
                {
                    instances.push(probe.instance);
                }
            }
        }
        code
    }

    fn position(&self, address: Address) -> Option<usize> {
        let after = self
            .places
            .regions
            .partition_point(|region| region.addresses.start <= address);
        let position = after.checked_sub(1)?;
        self.places.regions[position]
            .addresses
            .contains(&address)
            .then_some(position)
    }

    /// The region that a probe's instruction is in, with its number. `None`: it was not observed, or the probe's code
    /// may be elsewhere.
    pub fn region_of(&self, map: &AddressMap, probe: &Probe) -> Option<(u32, &'c Region)> {
        let position = self.position(probe.address)?;
        let symbol = map.binary.symbols.get(map.binary.symbol_at(probe.address)?)?;
        let region = self.coverage.regions.get(position)?;
        let offset = map.binary.offset_of_address(probe.address)?;
        let is_it = region.start <= offset && offset < region.end;
        (is_it && belongs(map, probe.instance, symbol)).then_some((position as u32, region))
    }

    fn is_absent(&self, region: u32) -> bool {
        let region = self.coverage.regions.get(region as usize);
        region.is_some_and(|region| region.state == RegionState::NotExecuted)
    }

    /// Where code may go from a region without passing another probe of the instance: the regions with its probes, and
    /// whether it may leave the function. `None`: too many regions.
    fn stops(&self, from: u32, instance: InlineInstanceIndex) -> Option<Stops> {
        let mut stops = Stops::default();
        let mut seen = FxHashSet::default();
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            let region = self.places.regions.get(at as usize)?;
            stops.jumps_indirectly |= region.jumps_indirectly;
            stops.leaves |= region.leaves;
            for &next in &region.next {
                if self.probes.get(next as usize)?.contains(&instance) {
                    stops.regions.push(next);
                } else if !self.is_absent(next) && seen.insert(next) {
                    if seen.len() > MAX_REGIONS {
                        return None;
                    }
                    waiting.push(next);
                }
            }
        }
        Some(stops)
    }

    /// Whether a region is entered from nowhere that is known: it may be the target of an indirect jump.
    fn is_entered_from_unknown(&self, region: u32) -> bool {
        !self.has_known_predecessor.get(region as usize).copied().unwrap_or(true)
    }
}

/// Where code may go.
#[derive(Debug, Default)]
struct Stops {
    regions: Vec<u32>,
    /// A return, or a jump out of the function.
    leaves: bool,
    jumps_indirectly: bool,
}

/// Regions that are searched between two probes of an instance, at most.
const MAX_REGIONS: usize = 256;

/// Turns blocks that may have been passed by into unknown ones. `regions`: by block, those with its probes.
pub(super) fn doubt(
    cfg: &Cfg,
    instance: InlineInstanceIndex,
    known: &mut [Known],
    regions: &[Vec<u32>],
    code: &Code<'_>,
) {
    let blocks = known.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks];
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            if !before[to.index()].contains(&from) {
                before[to.index()].push(from);
            }
        }
    }
    let mut faithful: Vec<Option<FxHashSet<usize>>> = vec![None; blocks];
    let mut in_doubt = vec![false; blocks];
    loop {
        let mut changed = false;
        for block in 0..blocks {
            if known[block] != Known::Absent {
                continue;
            }
            let is_certain = sources(block, &before, known).is_some_and(|sources| {
                sources.iter().all(|&from| {
                    let mut leads = || {
                        faithful[from]
                            .get_or_insert_with(|| followed(cfg, instance, from, known, regions, code))
                            .contains(&block)
                    };
                    !in_doubt[from] && (known[from] == Known::Absent || leads())
                })
            });
            if !is_certain {
                known[block] = Known::Unknown;
                in_doubt[block] = true;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The blocks to which all executed copies of a block lead, if these are as the graph says; otherwise none.
fn followed(
    cfg: &Cfg,
    instance: InlineInstanceIndex,
    from: usize,
    known: &[Known],
    regions: &[Vec<u32>],
    code: &Code<'_>,
) -> FxHashSet<usize> {
    let (expected, may_end) = next_probed(cfg, from, known);
    let mut all: Option<FxHashSet<usize>> = None;
    for &region in regions[from].iter().filter(|&&region| !code.is_absent(region)) {
        // Other probes of the same region follow one another without a branch.
        let Some(stops) = code.stops(region, instance) else {
            return FxHashSet::default();
        };
        let mut reached: FxHashSet<usize> = FxHashSet::default();
        for stop in &stops.regions {
            let blocks = (0..regions.len()).filter(|&block| regions[block].contains(stop));
            let blocks: Vec<usize> = blocks.collect();
            let is_expected = |block: &usize| expected.contains(block) || *block == 0;
            if !blocks.iter().any(is_expected) {
                return FxHashSet::default();
            }
            reached.extend(blocks);
        }
        if stops.leaves && !may_end {
            return FxHashSet::default();
        }
        if stops.jumps_indirectly {
            let is_target = |block: &&usize| {
                regions[**block]
                    .iter()
                    .any(|&region| code.is_entered_from_unknown(region))
            };
            reached.extend(expected.iter().filter(is_target));
        }
        all = Some(match all {
            None => reached,
            Some(before) => before.intersection(&reached).copied().collect(),
        });
    }
    all.unwrap_or_default()
}

/// The blocks with probes that come next in the graph, and whether an activation may end before.
fn next_probed(cfg: &Cfg, from: usize, known: &[Known]) -> (FxHashSet<usize>, bool) {
    let (mut found, mut seen, mut may_end) = (FxHashSet::default(), FxHashSet::default(), false);
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        may_end |= cfg.blocks[at].successors.is_empty();
        for to in cfg.blocks[at].successors.iter().map(|to| to.index()) {
            if known[to] != Known::NoProbe {
                found.insert(to);
            } else if seen.insert(to) {
                waiting.push(to);
            }
        }
    }
    (found, may_end)
}

/// The blocks with probes from which a block is reached through blocks without. `None`: the function's entry is one of
/// those without.
fn sources(block: usize, before: &[Vec<usize>], known: &[Known]) -> Option<Vec<usize>> {
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    let mut waiting = vec![block];
    while let Some(at) = waiting.pop() {
        if at == 0 && at != block {
            return None;
        }
        for &from in &before[at] {
            if known[from] != Known::NoProbe {
                if !found.contains(&from) {
                    found.push(from);
                }
            } else if seen.insert(from) {
                waiting.push(from);
            }
        }
    }
    Some(found)
}
