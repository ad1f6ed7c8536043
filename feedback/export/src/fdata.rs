//! BOLT's profile (`.fdata`), from raw vectors: the branches that were taken, and the ones that were not.
//!
//! ```text
//! is-symbol function offset  is-symbol function offset  mispredictions executions
//! 1 main 5a 1 main 6f 0 12
//! 0 [unknown] 0 1 main 0 0 1                             from another module
//! ```
//!
//! BOLT rejects a function's profile if one of its branches does not begin or end where BOLT's own blocks do. So a
//! transition without a taken branch is written only where BOLT must end a block: at conditional branches, and before
//! targets of jumps. Returns are no edges of a function.

use crate::taken::{Executed, Taken};
use pleach_annotate::binary::Binary;
use pleach_annotate::code::{Transfer, instruction_at, is_padding};
use pleach_annotate::machine::MachineFunction;
use pleach_annotate::probe::{Address, Symbol};
use pleach_collector::vector::{Branch, CodeAddress, ModuleId, VectorSet};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// An end of a branch: address in the binary, or elsewhere.
type End = Option<Address>;

/// The branches of one binary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Branches {
    /// By their ends.
    pub executed: BTreeMap<(End, End), Executed>,
}

impl Branches {
    /// The branches of a recording that begin or end in a module, whose file is `binary`.
    pub fn from_vectors(vectors: &VectorSet, module: ModuleId, binary: &Binary) -> Self {
        let taken = Taken::of(vectors);
        let mut converter = Converter {
            binary,
            module,
            functions: FxHashMap::default(),
            indirect_targets: taken.branches.keys().map(|branch| branch.to).collect(),
            found: Self::default(),
        };
        for (branch, executed) in &taken.branches {
            converter.branch(*branch, *executed);
        }
        for (&(start, end), &count) in &taken.fall_throughs {
            converter.fall_through(start, end, count);
        }
        converter.found
    }

    /// The text that `llvm-bolt -data` reads.
    pub fn to_text(&self, binary: &Binary) -> String {
        let names = names(binary);
        let mut lines: BTreeMap<(String, String), Executed> = BTreeMap::new();
        for (&(from, to), executed) in &self.executed {
            let (from, to) = (written(from, binary, &names), written(to, binary, &names));
            let sum = lines.entry((from, to)).or_default();
            sum.count += executed.count;
            sum.mispredicted += executed.mispredicted;
        }
        let mut out = String::new();
        for ((from, to), executed) in lines {
            writeln!(out, "{from} {to} {} {}", executed.mispredicted, executed.count)
                .expect("writing to a string cannot fail");
        }
        out
    }
}

/// A place where one block ends and the next one begins, by fall-through.
#[derive(Clone, Copy)]
struct Boundary {
    /// The last instruction of the block before.
    last: Address,
    /// The first instruction of the next one.
    next: Address,
}

struct Converter<'b> {
    binary: &'b Binary,
    module: ModuleId,
    /// Boundaries of a function's blocks in address order, by its symbol.
    functions: FxHashMap<usize, Vec<Boundary>>,
    /// Where branches led to. Those of jump tables are nowhere else.
    indirect_targets: FxHashSet<CodeAddress>,
    found: Branches,
}

impl Converter<'_> {
    fn end(&self, at: CodeAddress) -> End {
        let inside = (at.module == self.module).then(|| self.binary.address_of_offset(at.offset));
        inside?.filter(|address| self.binary.symbol_at(*address).is_some())
    }

    fn branch(&mut self, branch: Branch, executed: Executed) {
        let (from, to) = (self.end(branch.from), self.end(branch.to));
        let transfer = from
            .and_then(|from| instruction_at(self.binary, from))
            .map(|one| one.transfer);
        match (from, to) {
            (None, None) => {}
            // What is elsewhere may as well be a return: only calls lead to a function's start.
            (None, Some(to)) if !self.is_start(to) => self.returned(to, executed),
            _ if transfer == Some(Transfer::Return) => {
                if let Some(to) = to {
                    self.returned(to, executed);
                }
            }
            // Whatever else is no branch comes from signals, or from damaged records.
            (Some(_), _) if matches!(transfer, None | Some(Transfer::Next | Transfer::Other | Transfer::Stop)) => {}
            ends => self.add(ends, executed),
        }
    }

    fn is_start(&self, at: Address) -> bool {
        let symbol = self.binary.symbol_at(at).map(|symbol| &self.binary.symbols[symbol]);
        symbol.is_some_and(|symbol| symbol.address == at)
    }

    /// A return to where a block begins: the call before ended one.
    fn returned(&mut self, to: Address, executed: Executed) {
        let boundary = self.boundaries(to).iter().find(|boundary| boundary.next == to).copied();
        if let Some(boundary) = boundary {
            self.add((Some(boundary.last), Some(to)), executed);
        }
    }

    /// Code that ran from `start` to the branch at `end`.
    fn fall_through(&mut self, start: CodeAddress, end: CodeAddress, count: u64) {
        let (Some(start), Some(end)) = (self.end(start), self.end(end)) else {
            return;
        };
        if end < start || self.binary.symbol_at(start) != self.binary.symbol_at(end) {
            return;
        }
        let boundaries = self.boundaries(start);
        let first = boundaries.partition_point(|boundary| boundary.last < start);
        let passed = boundaries[first..].iter().take_while(|boundary| boundary.next <= end);
        let passed: Vec<Boundary> = passed.copied().collect();
        let executed = Executed { mispredicted: 0, count };
        for boundary in passed {
            self.add((Some(boundary.last), Some(boundary.next)), executed);
        }
    }

    /// The boundaries of the function that an address lies in.
    fn boundaries(&mut self, at: Address) -> &[Boundary] {
        let Some(symbol) = self.binary.symbol_at(at) else {
            return &[];
        };
        if !self.functions.contains_key(&symbol) {
            let found = self.find_boundaries(&self.binary.symbols[symbol]);
            self.functions.insert(symbol, found);
        }
        &self.functions[&symbol]
    }

    fn find_boundaries(&self, symbol: &Symbol) -> Vec<Boundary> {
        let range = symbol.address..Address(symbol.address.0.saturating_add(symbol.size));
        let Some(code) = MachineFunction::new(self.binary, &range, &BTreeSet::new()) else {
            return Vec::new();
        };
        let mut targets: FxHashSet<Address> = FxHashSet::default();
        for (position, segment) in code.segments.iter().enumerate() {
            let jumps = segment.next.iter().filter(|next| **next != position + 1);
            targets.extend(jumps.map(|next| code.segments[*next].start()));
        }
        let any_indirect = code.segments.iter().any(|segment| segment.jumps_indirectly);
        let mut boundaries = Vec::new();
        let mut last = None;
        for address in code.segments.iter().flat_map(|segment| &segment.instructions) {
            let Some(instruction) = instruction_at(self.binary, *address) else {
                break;
            };
            if let Some((last, transfer)) = last
                && (transfer == Transfer::Conditional
                    || transfer != Transfer::Jump
                        && (targets.contains(address) || any_indirect && self.is_indirect_target(*address, transfer)))
            {
                boundaries.push(Boundary { last, next: *address });
            }
            last = match instruction.transfer {
                Transfer::Return | Transfer::Jump | Transfer::IndirectJump => None,
                // BOLT drops them: a block ends before.
                Transfer::Next if is_padding(self.binary, &instruction) => last,
                transfer => Some((*address, transfer)),
            };
        }
        boundaries
    }

    /// Whether a branch led there that is neither a call's return nor a jump to a known target.
    fn is_indirect_target(&self, at: Address, before: Transfer) -> bool {
        let is_call = matches!(before, Transfer::Call | Transfer::IndirectCall);
        let offset = self.binary.offset_of_address(at).filter(|_| !is_call);
        offset.is_some_and(|offset| {
            let module = self.module;
            self.indirect_targets.contains(&CodeAddress { module, offset })
        })
    }

    fn add(&mut self, ends: (End, End), executed: Executed) {
        let sum = self.found.executed.entry(ends).or_default();
        sum.count = sum.count.saturating_add(executed.count);
        sum.mispredicted = sum.mispredicted.saturating_add(executed.mispredicted);
    }
}

/// The names by which BOLT knows functions: local ones have their source file and a number.
fn names(binary: &Binary) -> Vec<String> {
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let mut name = |symbol: &Symbol| {
        if !symbol.local {
            return symbol.name.clone();
        }
        let file = symbol.file.and_then(|file| binary.files.get(file as usize));
        let name = match file {
            Some(file) => format!("{}/{file}", symbol.name),
            None => symbol.name.clone(),
        };
        let number = numbers.entry(name.clone()).or_default();
        *number += 1;
        format!("{name}/{number}")
    };
    binary.symbols.iter().map(&mut name).collect()
}

/// An end as BOLT writes it.
fn written(end: End, binary: &Binary, names: &[String]) -> String {
    let Some((address, symbol)) = end.and_then(|address| Some((address, binary.symbol_at(address)?))) else {
        return "0 [unknown] 0".to_owned();
    };
    let offset = address.0 - binary.symbols[symbol].address.0;
    // Spaces separate fields.
    let name = names[symbol].replace('\\', "\\\\").replace(' ', "\\ ");
    format!("1 {name} {offset:x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::binary::{Architecture, ExecutableSegment};
    use pleach_collector::vector::{BranchFacts, Burst, EndReason, Engine, EventId, HardwareSample, Prediction};

    const MODULE: ModuleId = ModuleId(0);

    fn at(offset: u64) -> CodeAddress {
        CodeAddress { module: MODULE, offset }
    }

    /// `f`: a loop with a branch around a call, behind padding. `g` returns.
    fn binary() -> Binary {
        let symbol = |name: &str, address, size, file: Option<u32>| Symbol {
            address: Address(address),
            size,
            name: name.to_owned(),
            file,
            local: file.is_some(),
        };
        let mut bytes = vec![
            0x31, 0xc0, // 0: xor eax, eax
            0x66, 0x90, // 2: nop
            0x74, 0x05, // 4: je 11
            0xe8, 0x10, 0, 0, 0, // 6: call 27
            0xff, 0xc0, // 11: inc eax
            0x75, 0xf5, // 13: jne 4
            0xc3, // 15: ret
        ];
        bytes.resize(27, 0xcc);
        bytes.push(0xc3);
        Binary {
            path: "none".into(),
            build_id: None,
            symbols: vec![symbol("f", 0, 16, None), symbol("g", 27, 1, Some(0))],
            files: vec!["a b.c".to_owned()],
            code: vec![ExecutableSegment {
                address: Address(0),
                file_offset: 0,
                bytes,
            }],
            manifest: Vec::new(),
            probes: Vec::new(),
            probe_descriptors: Vec::new(),
            block_addresses: Vec::new(),
            architecture: Architecture::X86_64,
            is_program: true,
            debug_file: None,
        }
    }

    #[test]
    fn branches_that_were_not_taken_are_in_it() {
        let binary = binary();
        let elsewhere = CodeAddress {
            module: ModuleId::EXTERNAL,
            offset: 9,
        };
        let branch = |from, to| Branch { from, to };
        let branches = [
            branch(elsewhere, at(0)),
            branch(at(6), at(27)),
            branch(at(27), at(11)),
            branch(at(13), at(4)),
            branch(at(4), at(11)),
            branch(at(15), elsewhere),
        ];
        let mut vectors = VectorSet::default();
        vectors.bursts.push(burst(&branches));
        let found = Branches::from_vectors(&vectors, MODULE, &binary);
        // Into the loop; past `je`; a call; behind it; the loop; its end.
        insta::assert_snapshot!(found.to_text(&binary), @r"
        0 [unknown] 0 1 f 0 0 3
        1 f 0 1 f 4 0 3
        1 f 4 1 f 6 0 3
        1 f 4 1 f b 3 3
        1 f 6 1 f b 0 3
        1 f 6 1 g/a\ b.c/1 0 0 3
        1 f d 1 f 4 0 3
        1 f d 1 f f 0 3
        ");
    }

    /// Three equal bursts, whose fifth branch was mispredicted.
    fn burst(branches: &[Branch]) -> Burst {
        let facts = (0..branches.len()).map(|position| BranchFacts {
            prediction: match position {
                4 => Prediction::Mispredicted,
                _ => Prediction::Predicted,
            },
            cycles: 0,
        });
        Burst {
            process: 0,
            thread: 1,
            time_ns: 0,
            engine: Engine::Lbr,
            start: None,
            branches: branches.to_vec(),
            values: Vec::new(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count: 3,
            proved: false,
            system_call: None,
            hardware: Some(Box::new(HardwareSample {
                event: EventId(0),
                ip: at(0),
                facts: facts.collect(),
            })),
            timing: None,
        }
    }
}
