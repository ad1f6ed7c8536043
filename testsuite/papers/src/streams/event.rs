//! Events of profiles (§2.1), and how bursts are read as streams of them.

use pleach_collector::stream::{Tuple, word};
use pleach_collector::vector::{Branch, Burst, CodeAddress};
use pleach_wire::x86::{Instruction, Kind};

/// An event of one of several profiles, which may be collected at the same time by one compressor (§5.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// Edge profile: a branch that is no call, and where it went.
    Edge(Branch),
    /// Call-target profile: a call.
    CallTarget(Branch),
    /// Load-value profile: what a load returned.
    LoadValue {
        /// The load.
        pc: CodeAddress,
        /// The loaded value, zero-extended.
        value: u64,
    },
}

impl Tuple for Event {
    fn words(&self) -> (u64, u64) {
        match self {
            Self::Edge(branch) => (word(branch.from), word(branch.to)),
            // Apart from the same branch's edge: what is in one substream disturbs each other.
            Self::CallTarget(branch) => (!word(branch.from), word(branch.to)),
            Self::LoadValue { pc, value } => (word(*pc), *value),
        }
    }
}

/// The edge and call-target profiles' events of a burst, in order: calls, all other branches that were taken, and
/// conditional ones that were not. `code` knows the instruction at an address; where it does not, only what was taken
/// is told.
pub fn control_flow(
    burst: &Burst,
    code: &mut impl FnMut(CodeAddress) -> Option<Instruction>,
    sink: &mut impl FnMut(Event),
) {
    for (position, branch) in burst.branches.iter().enumerate() {
        let is_call = code(branch.from).is_some_and(|i| matches!(i.kind, Kind::Call | Kind::IndirectCall));
        sink(if is_call {
            Event::CallTarget(*branch)
        } else {
            Event::Edge(*branch)
        });
        let next = burst.branches.get(position + 1).map(|next| next.from);
        if let Some(end) = next.or(burst.end) {
            fallen_through(branch.to, end, code, sink);
        }
    }
}

/// The conditional branches in front of `end`: none was taken.
fn fallen_through(
    mut at: CodeAddress,
    end: CodeAddress,
    code: &mut impl FnMut(CodeAddress) -> Option<Instruction>,
    sink: &mut impl FnMut(Event),
) {
    while at.module == end.module && at.offset < end.offset {
        let Some(instruction) = code(at) else { return };
        let from = at;
        at.offset += u64::from(instruction.length);
        if instruction.kind == Kind::Conditional {
            sink(Event::Edge(Branch { from, to: at }));
        }
    }
}
