//! The machine code of a function, grouped by block.

use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::code::{Instruction, instruction_at, text_at};
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, Probe};
use pleach_annotate::probe::{Address, Symbol};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Instructions of a function that are listed.
const MAX_INSTRUCTIONS: usize = 4000;

/// A function's machine code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Assembly {
    /// Symbol of the emitted function that the code is in.
    pub symbol: String,
    /// The function was only inlined: this is one of its copies, in a function of another name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copy: bool,
    /// Code in the order of addresses, cut where the block changes.
    pub parts: Vec<Part>,
    /// Number of instructions that are not listed.
    pub hidden: usize,
}

/// Consecutive instructions of a block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// The function's block; `None` before the first probe.
    pub block: Option<u32>,
    /// The block is of this function, which was inlined there: linkage name and block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<(String, u32)>,
    /// Address and text of each instruction.
    pub instructions: Vec<(u64, String)>,
}

/// A block of the shown function, and of the function that was inlined there.
type Place = (Option<u32>, Option<(String, u32)>);

/// Where the code after a probe belongs.
enum Belongs {
    /// To a block of the shown function.
    To(Place),
    /// To other code around an inlined copy.
    Elsewhere,
    /// The optimiser did not keep track of the call that was inlined: to the same as the code before.
    Unknown,
}

/// Disassembles functions of a binary.
pub struct Disassembler<'a> {
    map: &'a AddressMap,
    /// By function, the instance with the most probes of those that were inlined.
    copies: FxHashMap<(FunctionId, CfgHash), InlineInstanceIndex>,
}

impl<'a> Disassembler<'a> {
    /// A disassembler of a binary.
    pub fn new(map: &'a AddressMap) -> Self {
        let mut probes = vec![0u32; map.inline_instances.len()];
        for probe in &map.probes {
            probes[probe.instance.index()] += 1;
        }
        let mut copies: FxHashMap<(FunctionId, CfgHash), InlineInstanceIndex> = FxHashMap::default();
        for (at, instance) in map.inline_instances.iter().enumerate() {
            if map.body(instance).is_some() || probes[at] == 0 {
                continue;
            }
            let instance = InlineInstanceIndex(at as u32);
            let function = map.function_of(instance);
            let largest = copies.entry((function.cfg.id, function.hash)).or_insert(instance);
            if probes[at] > probes[largest.index()] {
                *largest = instance;
            }
        }
        Self { map, copies }
    }

    /// The code of a function: as it was emitted by itself, else its largest inlined copy. `None` if there is no code.
    pub fn function(&self, id: FunctionId, hash: CfgHash) -> Option<Assembly> {
        let bodies = self
            .map
            .inline_instances
            .iter()
            .filter_map(|instance| self.map.body(instance));
        let emitted = bodies
            .filter(|(_, function)| (function.cfg.id, function.hash) == (id, hash))
            .max_by_key(|(symbol, _)| symbol.size);
        if let Some((symbol, _)) = emitted {
            return self.code(symbol, None);
        }
        let copy = *self.copies.get(&(id, hash))?;
        let symbol = self.map.inline_instances[copy.index()].symbol;
        self.code(self.map.binary.symbols.get(symbol as usize)?, Some(copy))
    }

    /// The code of an emitted function, or that of a copy in it.
    fn code(&self, symbol: &Symbol, copy: Option<InlineInstanceIndex>) -> Option<Assembly> {
        let binary = &self.map.binary;
        let (mut parts, mut number): (Vec<Part>, usize) = (Vec::new(), 0);
        let end = Address(symbol.address.0 + symbol.size.saturating_sub(1));
        let mut probes = self.map.probes_in(symbol.address, end).iter().peekable();
        // An emitted function begins before its first probe.
        let mut place: Option<Place> = copy.is_none().then_some((None, None));
        let mut goes_on = false;
        let mut at = symbol.address;
        while at <= end && symbol.size > 0 {
            let (address, instruction) = (at, instruction_at(binary, at));
            at = instruction.map_or(Address(address.0 + 1), |instruction| instruction.next());
            while let Some(probe) = probes.next_if(|probe| probe.address <= address) {
                match self.belongs(probe, copy) {
                    Belongs::To(block) => place = Some(block),
                    Belongs::Elsewhere => place = None,
                    Belongs::Unknown => {}
                }
            }
            let Some(place) = &place else {
                goes_on = false;
                continue;
            };
            number += 1;
            if number > MAX_INSTRUCTIONS {
                continue;
            }
            let same = |part: &Part| (part.block, &part.inlined) == (place.0, &place.1);
            if !(goes_on && parts.last().is_some_and(same)) {
                parts.push(Part {
                    block: place.0,
                    inlined: place.1.clone(),
                    instructions: Vec::new(),
                });
            }
            goes_on = true;
            let text = text_at(binary, address)? + &self.target(instruction);
            if let Some(part) = parts.last_mut() {
                part.instructions.push((address.0, text));
            }
        }
        Some(Assembly {
            symbol: symbol.name.clone(),
            copy: copy.is_some(),
            parts,
            hidden: number.saturating_sub(MAX_INSTRUCTIONS),
        })
    }

    /// The function and offset that an instruction jumps to or calls.
    fn target(&self, instruction: Option<Instruction>) -> String {
        let Some(target) = instruction.and_then(|instruction| instruction.target) else {
            return String::new();
        };
        let symbols = &self.map.binary.symbols;
        let symbol = self.map.binary.symbol_at(target).and_then(|at| symbols.get(at));
        match symbol {
            None => String::new(),
            Some(symbol) => match target.0 - symbol.address.0 {
                0 => format!(" <{}>", symbol.name),
                offset => format!(" <{}+{offset:#x}>", symbol.name),
            },
        }
    }

    /// Where the code after a probe belongs: `copy` is the shown copy; otherwise, the emitted function is shown.
    fn belongs(&self, probe: &Probe, copy: Option<InlineInstanceIndex>) -> Belongs {
        let block_of = |at: InlineInstanceIndex, target| match target {
            ProbeTarget::Block(block) => Some(block.0),
            ProbeTarget::Call(call) => Some(self.map.function_of(at).cfg.calls.get(call.index())?.block.0),
        };
        let Some(own) = block_of(probe.instance, probe.target) else {
            return Belongs::Unknown;
        };
        let (mut at, mut block) = (probe.instance, Some(own));
        while Some(at) != copy {
            let Some((parent, call)) = self.map.inline_instances[at.index()].parent else {
                break;
            };
            block = call.and_then(|call| block_of(parent, ProbeTarget::Call(call)));
            at = parent;
        }
        if copy.is_some_and(|copy| copy != at) {
            return Belongs::Elsewhere;
        }
        let Some(block) = block else { return Belongs::Unknown };
        let inlined = (at != probe.instance).then(|| (self.map.function_of(probe.instance).cfg.name.clone(), own));
        Belongs::To((Some(block), inlined))
    }
}
