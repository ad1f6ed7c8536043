//! The machine code of a function, grouped by block.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, Probe};
use pleach_annotate::probe::Address;
use serde::Serialize;

/// Instructions of a function that are listed.
const MAX_INSTRUCTIONS: usize = 4000;

/// A function's machine code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Assembly {
    /// The emitted function's symbol.
    pub symbol: String,
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

/// The block of the emitted function, and of the function that was inlined there.
type Place = (Option<u32>, Option<(String, u32)>);

/// Disassembles functions of a binary, in AT&T syntax.
pub struct Disassembler<'a> {
    map: &'a AddressMap,
}

impl<'a> Disassembler<'a> {
    /// A disassembler of a binary.
    pub fn new(map: &'a AddressMap) -> Self {
        Self { map }
    }

    /// The code of a function that was emitted by itself; `None` if it was only inlined.
    pub fn function(&self, id: FunctionId, hash: CfgHash) -> Option<Assembly> {
        let bodies = self
            .map
            .inline_instances
            .iter()
            .filter_map(|instance| self.map.body(instance));
        let (symbol, _) = bodies
            .filter(|(_, function)| (function.cfg.id, function.hash) == (id, hash))
            .max_by_key(|(symbol, _)| symbol.size)?;
        let code = self.map.binary.code_at(symbol.address)?;
        let code = &code[..code.len().min(usize::try_from(symbol.size).ok()?)];
        let mut decoder = Decoder::with_ip(64, code, symbol.address.0, DecoderOptions::NONE);
        let mut formatter = GasFormatter::new();
        formatter.options_mut().set_branch_leading_zeros(false);
        let (mut parts, mut number): (Vec<Part>, usize) = (Vec::new(), 0);
        let end = Address(symbol.address.0 + symbol.size.saturating_sub(1));
        let mut probes = self.map.probes_in(symbol.address, end).iter().peekable();
        let mut place: Place = (None, None);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let address = Address(instruction.ip());
            while let Some(probe) = probes.next_if(|probe| probe.address <= address) {
                place = self.place(probe).unwrap_or(place);
            }
            number += 1;
            if number > MAX_INSTRUCTIONS {
                continue;
            }
            if parts
                .last()
                .is_none_or(|part| (part.block, &part.inlined) != (place.0, &place.1))
            {
                parts.push(Part {
                    block: place.0,
                    inlined: place.1.clone(),
                    instructions: Vec::new(),
                });
            }
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            text += &self.target(&instruction);
            if let Some(part) = parts.last_mut() {
                part.instructions.push((address.0, text));
            }
        }
        Some(Assembly {
            symbol: symbol.name.clone(),
            parts,
            hidden: number.saturating_sub(MAX_INSTRUCTIONS),
        })
    }
    /// The function and offset that an instruction jumps to or calls.
    fn target(&self, instruction: &Instruction) -> String {
        let target = instruction.near_branch_target();
        let symbols = &self.map.binary.symbols;
        let symbol = self
            .map
            .binary
            .symbol_at(Address(target))
            .and_then(|at| symbols.get(at));
        match symbol.filter(|_| target != 0) {
            None => String::new(),
            Some(symbol) => match target - symbol.address.0 {
                0 => format!(" <{}>", symbol.name),
                offset => format!(" <{}+{offset:#x}>", symbol.name),
            },
        }
    }

    /// The block of the emitted function that a probe is in, and the inlined function's block. `None` if the optimiser
    /// did not keep track of the call that was inlined.
    fn place(&self, probe: &Probe) -> Option<Place> {
        let block_of = |at: pleach_annotate::map::InlineInstanceIndex, target| match target {
            ProbeTarget::Block(block) => Some(block.0),
            ProbeTarget::Call(call) => Some(self.map.function_of(at).cfg.calls.get(call.index())?.block.0),
        };
        let own = block_of(probe.instance, probe.target)?;
        let (mut at, mut block) = (probe.instance, own);
        while let Some((parent, call)) = self.map.inline_instances[at.index()].parent {
            block = block_of(parent, ProbeTarget::Call(call?))?;
            at = parent;
        }
        let inlined = (at != probe.instance).then(|| (self.map.function_of(probe.instance).cfg.name.clone(), own));
        Some((Some(block), inlined))
    }
}
