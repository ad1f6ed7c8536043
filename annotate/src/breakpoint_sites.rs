//! Breakpoint sites: the fewest addresses of a module's code at which breakpoints show which probes ran (Agrawal,
//! *Dominators, super blocks, and program coverage*, POPL 1994, over machine code).
//!
//! A segment whose probes matter gets a site, unless whatever follows it shows that it ran: it has no call, and each of
//! its successors is reached through it only, and is itself shown to run. Calls, returns and jumps to unknown targets
//! may leave a function, so that segments before them need sites of their own. What a hit implies holds without any
//! assumption on how activations end: only dominators are used.

use crate::binary::Binary;
use crate::cfg::ProbeTarget;
use crate::machine::{MachineFunction, jumps_out};
use crate::map::{AddressMap, InlineInstanceIndex};
use crate::probe::{Address, Symbol};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

/// What a module's breakpoints can show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BreakpointSites {
    /// Segments of code with probes, in address order. They do not overlap.
    pub segments: Vec<ProbedSegment>,
    /// Number of emitted functions with segments.
    pub functions: u32,
    /// Why parts of the module, or all of it, cannot be observed.
    pub refused: Vec<Refused>,
    /// Code that may run before the sampler is ready: initialisers of a library, resolvers of indirect functions.
    pub runs_early: bool,
}

/// Instructions that run one after the other, with the probes among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbedSegment {
    /// Addresses.
    pub addresses: Range<Address>,
    /// Position of the emitted function.
    pub function: u32,
    /// Where its breakpoint is, if it has one.
    pub site: Option<Address>,
    /// Without a breakpoint of its own, those of other segments show that it ran, unless it was left midway.
    pub is_shown: bool,
    /// The segment that ran if this one did.
    pub dominator: Option<u32>,
    /// The segments that may be next in the function, treating calls as ordinary instructions.
    pub next: Vec<u32>,
    /// It ends in an indirect jump, whose targets are not among `next`.
    pub jumps_indirectly: bool,
    /// It may return, or jump out of the function.
    pub leaves: bool,
}

/// Why code cannot be observed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// System calls are made directly.
    #[error("{function} makes system calls without the C library, which may block signals")]
    SystemCalls {
        /// The function.
        function: String,
    },
    /// The bytes of a function are not instructions throughout.
    #[error("{function}: its code cannot be decoded")]
    Undecodable {
        /// The function.
        function: String,
    },
}

impl BreakpointSites {
    /// Chooses the sites of an annotated module.
    pub fn of_map(map: &AddressMap) -> Self {
        let mut sites = Self {
            runs_early: runs_early(&map.binary),
            ..Self::default()
        };
        let functions = functions_with_probes(map);
        let mut entries: BTreeSet<Address> = functions.iter().map(|(range, _)| range.start).collect();
        for (range, _) in &functions {
            entries.extend(jumps_out(&map.binary, range).into_iter().flatten());
        }
        for (range, symbol) in functions {
            let name = || map.binary.symbols[symbol].name.clone();
            match MachineFunction::new(&map.binary, &range, &entries) {
                None => sites.refused.push(Refused::Undecodable { function: name() }),
                Some(function) => {
                    if function.makes_system_calls {
                        sites.refused.push(Refused::SystemCalls { function: name() });
                    }
                    sites.add(map, &function);
                }
            }
        }
        sites
    }

    fn add(&mut self, map: &AddressMap, function: &MachineFunction) {
        let last_probes: Vec<Option<Address>> = function
            .segments
            .iter()
            .map(|segment| {
                let probes = map.probes_in(segment.start(), Address(segment.end.0 - 1));
                let blocks = probes
                    .iter()
                    .filter(|probe| matches!(probe.target, ProbeTarget::Block(_)));
                blocks.map(|probe| probe.address).max()
            })
            .collect();
        if last_probes.iter().all(Option::is_none) {
            return;
        }
        let dominators = function.immediate_dominators();
        let (needs, shown) = choose(function, &dominators, &last_probes);
        let first = self.segments.len() as u32;
        let number = self.functions;
        self.functions += 1;
        for (position, segment) in function.segments.iter().enumerate() {
            // The last probe's instruction: a hit proves that all of the segment's probes were passed.
            let site = needs[position].then(|| {
                let wanted = last_probes[position].filter(|address| segment.instructions.contains(address));
                wanted.unwrap_or(segment.start())
            });
            self.segments.push(ProbedSegment {
                addresses: segment.start()..segment.end,
                function: number,
                site,
                is_shown: shown[position] && !needs[position],
                dominator: dominators[position].map(|dominator| first + dominator as u32),
                next: segment.next.iter().map(|&next| first + next as u32).collect(),
                jumps_indirectly: segment.jumps_indirectly,
                leaves: segment.leaves,
            });
        }
    }
}

/// Which segments get a site, and which are shown to run, by their own site or those of others.
fn choose(
    function: &MachineFunction,
    dominators: &[Option<usize>],
    probes: &[Option<Address>],
) -> (Vec<bool>, Vec<bool>) {
    let count = function.segments.len();
    let mut children = vec![Vec::new(); count];
    for (position, dominator) in dominators.iter().enumerate() {
        if let Some(dominator) = dominator {
            children[*dominator].push(position);
        }
    }
    // Dominated segments before their dominators.
    let mut order = Vec::with_capacity(count);
    let mut waiting: Vec<usize> = (0..count).filter(|&position| dominators[position].is_none()).collect();
    while let Some(position) = waiting.pop() {
        order.push(position);
        waiting.extend(&children[position]);
    }
    let (mut needs, mut shown) = (vec![false; count], vec![false; count]);
    for &position in order.iter().rev() {
        let successors = function.segments[position].successors.as_deref().unwrap_or_default();
        let follows = |&to: &usize| dominators[to] == Some(position) && shown[to];
        let is_implied = !successors.is_empty() && successors.iter().all(follows);
        needs[position] = !is_implied && probes[position].is_some();
        shown[position] = is_implied || needs[position];
    }
    (needs, shown)
}

/// Address ranges of the emitted functions that have probes, with the positions of their symbols.
fn functions_with_probes(map: &AddressMap) -> Vec<(Range<Address>, usize)> {
    let mut functions: Vec<(Range<Address>, usize)> = Vec::new();
    for (position, symbol) in map.binary.symbols.iter().enumerate() {
        let range = symbol.address..Address(symbol.address.0.saturating_add(symbol.size));
        let is_new = functions.last().is_none_or(|(last, _)| last.end <= range.start);
        if !range.is_empty() && is_new && !map.probes_in(range.start, Address(range.end.0 - 1)).is_empty() {
            functions.push((range, position));
        }
    }
    functions
}

/// Whether an inline instance's code may lie in a function: in its own symbol, or in a part that was split off from it.
pub fn belongs(map: &AddressMap, instance: InlineInstanceIndex, symbol: &Symbol) -> bool {
    let own = map
        .inline_instances
        .get(instance.index())
        .and_then(|i| map.binary.symbols.get(i.symbol as usize));
    own.is_some_and(|own| own.address == symbol.address || symbol.name.starts_with(&own.name))
}

/// Sizes of pointers in the arrays of initialisers: the C runtime has one of its own.
const RUNTIME_INITIALISERS: u64 = 8;

/// Whether code of the module may run before the sampler's initialiser.
fn runs_early(binary: &Binary) -> bool {
    has_early_code(&binary.path, binary.is_program).unwrap_or(true)
}

fn has_early_code(path: &Path, is_program: bool) -> Option<bool> {
    let data = std::fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let size = |name: &str| file.section_by_name(name).map_or(0, |section| section.size());
    let has_resolvers = file.symbols().chain(file.dynamic_symbols()).any(|symbol| {
        use object::ObjectSymbol;
        match symbol.flags() {
            object::SymbolFlags::Elf { st_info, .. } => {
                symbol.is_definition() && st_info.st_type() == object::elf::STT_GNU_IFUNC
            }
            _ => false,
        }
    });
    let initialises = match is_program {
        true => size(".preinit_array") > 0,
        false => size(".init_array") > RUNTIME_INITIALISERS || size(".ctors") > 0,
    };
    Some(has_resolvers || initialises)
}
