//! The conditional jumps that decide the next block of the graph.

use super::selects::Place;
use crate::program::Program;
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::probe::Address;
use pleach_collector::vector::{Branch, CodeAddress};
use rustc_hash::FxHashMap;

/// A decision of a conditional jump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    /// The conditional jump that decided.
    pub jump: CodeAddress,
    /// Whether it was taken.
    pub taken: bool,
    /// Number of taken branches before it: its own position, if it was taken.
    pub before: usize,
}

/// Finds decisions in the code between taken branches.
pub(super) struct Decisions<'p> {
    program: &'p Program,
    /// By start and exclusive end: the last conditional jump between them.
    last: FxHashMap<(CodeAddress, Address), Option<CodeAddress>>,
    /// By an address in the module, start and exclusive end: all conditional jumps between them.
    conditionals: FxHashMap<(CodeAddress, Address, Address), Option<Vec<CodeAddress>>>,
    transfers: FxHashMap<CodeAddress, Option<Transfer>>,
}

impl<'p> Decisions<'p> {
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            last: FxHashMap::default(),
            conditionals: FxHashMap::default(),
            transfers: FxHashMap::default(),
        }
    }

    /// The last decision of a conditional jump before an address that was passed after the branch at `position` and
    /// before the next one; `None` if no known conditional jump decided.
    pub fn before(&mut self, branches: &[Branch], position: usize, address: Address) -> Option<Decision> {
        self.last_choice(branches, position, address)
            .and_then(|(decision, transfer)| (transfer == Transfer::Conditional).then_some(decision))
    }

    /// The last decision of a conditional or an indirect jump, as [`Self::before`], and which of them it is.
    ///
    /// Unconditional jumps decide nothing; the decision is before them.
    pub fn last_choice(
        &mut self,
        branches: &[Branch],
        mut position: usize,
        mut address: Address,
    ) -> Option<(Decision, Transfer)> {
        loop {
            let branch = branches[position];
            if let Some(jump) = self.last_conditional(branch.to, address) {
                let decision = Decision {
                    jump,
                    taken: false,
                    before: position + 1,
                };
                return Some((decision, Transfer::Conditional));
            }
            match self.transfer(branch.from)? {
                transfer @ (Transfer::Conditional | Transfer::IndirectJump) => {
                    let decision = Decision {
                        jump: branch.from,
                        taken: true,
                        before: position,
                    };
                    return Some((decision, transfer));
                }
                Transfer::Jump => {
                    position = position.checked_sub(1)?;
                    address = self.program.locate(branch.from)?.1;
                }
                _ => return None,
            }
        }
    }

    /// The decisions between two places, in order; `None` if control left the code between them, or it is not known.
    pub fn between(&mut self, branches: &[Branch], from: Place, to: Place) -> Option<Vec<Decision>> {
        let mut found = Vec::new();
        let mut at = from.address;
        for position in from.position..=to.position {
            let next = branches.get(position + 1).filter(|_| position < to.position);
            let until = match next {
                Some(next) => self.program.locate(next.from)?.1,
                None => to.address,
            };
            let passed = self.conditionals(branches.get(position)?.to, at, until)?;
            found.extend(passed.iter().map(|&jump| Decision {
                jump,
                taken: false,
                before: position + 1,
            }));
            let Some(next) = next else { break };
            match self.transfer(next.from)? {
                Transfer::Conditional => found.push(Decision {
                    jump: next.from,
                    taken: true,
                    before: position + 1,
                }),
                Transfer::Jump => {}
                _ => return None,
            }
            at = self.program.locate(next.to)?.1;
        }
        Some(found)
    }

    /// The conditional jumps from one address to another, of which `near` is in the same module.
    fn conditionals(&mut self, near: CodeAddress, from: Address, until: Address) -> Option<&[CodeAddress]> {
        let program = self.program;
        let known = self.conditionals.entry((near, from, until)).or_insert_with(|| {
            let (map, start) = program.locate(near)?;
            let (mut at, mut found) = (from, Vec::new());
            while at < until {
                let instruction = instruction_at(&map.binary, at)?;
                match instruction.transfer {
                    Transfer::Conditional => found.push(CodeAddress {
                        offset: near.offset.wrapping_add(at.0).wrapping_sub(start.0),
                        ..near
                    }),
                    Transfer::Next => {}
                    _ => return None,
                }
                at = Address(at.0 + u64::from(instruction.len));
            }
            Some(found)
        });
        known.as_deref()
    }

    fn transfer(&mut self, at: CodeAddress) -> Option<Transfer> {
        let program = self.program;
        *self.transfers.entry(at).or_insert_with(|| {
            let (map, address) = program.locate(at)?;
            Some(instruction_at(&map.binary, address)?.transfer)
        })
    }

    fn last_conditional(&mut self, from: CodeAddress, until: Address) -> Option<CodeAddress> {
        let program = self.program;
        *self.last.entry((from, until)).or_insert_with(|| {
            let (map, start) = program.locate(from)?;
            let (mut at, mut last) = (start, None);
            while at < until {
                let instruction = instruction_at(&map.binary, at)?;
                if instruction.transfer == Transfer::Conditional {
                    last = Some(CodeAddress {
                        offset: from.offset + (at.0 - start.0),
                        ..from
                    });
                }
                at = Address(at.0 + u64::from(instruction.len));
            }
            last
        })
    }
}
