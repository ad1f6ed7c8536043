//! Decode yield: how much of the vectors the address maps explain.

use crate::decode::same_function;
use crate::program::Program;
use pleach_annotate::map::AddressMap;
use pleach_annotate::probe::Address;
use pleach_collector::vector::{Branch, CodeAddress, ModuleId, VectorSet};
use rustc_hash::{FxHashMap, FxHashSet};

/// Taken branches from or to functions of annotated files. Code without a symbol (linkage tables) is of no function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decoded {
    /// All of them, with multiplicity.
    pub branches: u64,
    /// Those that lead into a function with probes and are followed there by a possible fall-through range: from the
    /// branch's target, inside one function, to the next branch or the end of the burst. Also those that leave a
    /// function with probes for code outside any function or annotated file.
    pub explained: u64,
}

impl Decoded {
    /// Explained ÷ all; `None` if there are no branches.
    pub fn share(&self) -> Option<f64> {
        (self.branches > 0).then(|| self.explained as f64 / self.branches as f64)
    }
}

/// Counts every branch of every burst, and of every window of a compressed recording.
pub fn decoded(program: &Program, vectors: &VectorSet) -> Decoded {
    let code = Code::new(program);
    let mut sum = Decoded::default();
    for burst in &vectors.bursts {
        code.add(&mut sum, &burst.branches, burst.end, burst.count);
    }
    for window in vectors.compressed.iter().flat_map(|compressed| &compressed.windows) {
        code.add(&mut sum, &window.branches, window.end, window.weight);
    }
    sum
}

/// A function's code.
#[derive(Clone, Copy)]
struct Place<'p> {
    map: &'p AddressMap,
    address: Address,
    has_probes: bool,
}

struct Code<'p> {
    program: &'p Program,
    /// By module: positions of symbols that have probes.
    probed: FxHashMap<ModuleId, FxHashSet<usize>>,
}

impl<'p> Code<'p> {
    fn new(program: &'p Program) -> Self {
        let symbols = |map: &AddressMap| {
            let at = map.probes.iter().filter_map(|p| map.binary.symbol_at(p.address));
            at.collect::<FxHashSet<_>>()
        };
        let probed = program
            .annotated()
            .map(|(module, map)| (module, symbols(map)))
            .collect();
        Self { program, probed }
    }

    fn place(&self, at: CodeAddress) -> Option<Place<'p>> {
        let (map, address) = self.program.locate(at)?;
        let symbol = map.binary.symbol_at(address)?;
        let has_probes = self.probed.get(&at.module).is_some_and(|p| p.contains(&symbol));
        Some(Place {
            map,
            address,
            has_probes,
        })
    }

    fn add(&self, sum: &mut Decoded, branches: &[Branch], end: Option<CodeAddress>, count: u64) {
        for (position, branch) in branches.iter().enumerate() {
            let next = branches.get(position + 1).map(|next| next.from).or(end);
            let is_explained = match (self.place(branch.from), self.place(branch.to)) {
                (None, None) => continue,
                (_, Some(to)) => to.has_probes && fits(to, branch.to, next),
                (Some(from), None) => from.has_probes,
            };
            sum.branches += count;
            sum.explained += if is_explained { count } else { 0 };
        }
    }
}

/// Whether execution can be straight from a place to the next observed address. True if that is unknown.
fn fits(to: Place<'_>, at: CodeAddress, next: Option<CodeAddress>) -> bool {
    let Some(next) = next else { return true };
    let last = (next.module == at.module)
        .then(|| to.map.binary.address_of_offset(next.offset))
        .flatten();
    last.is_some_and(|last| last >= to.address && same_function(to.map, to.address, last))
}
