//! Whether the program executed what shadow execution predicted.
//!
//! A burst that began in isolation (`BurstHead::is_isolated`) is what the program executed, provided that the program
//! reached the burst's end: a burst contains no system call, so nothing else can change the control flow. It is proved
//! that the program reached the burst's end
//! - if the thread was later interrupted at an instruction that the burst does not execute; or
//! - if the process reported its final figures, for which it makes system calls.
//!
//! A process that is killed reports nothing: its last bursts, and those of the loop in which it was killed, remain
//! predictions. So do bursts that enter the vDSO, which reads clocks.

use crate::vector::Engine;
use pleach_wire::shard::RawBurst;

/// The state of the proof of one burst.
#[derive(Debug)]
pub(super) enum Proof {
    /// Whether it is proved.
    Decided(bool),
    /// It is proved once the thread is interrupted outside these inclusive address ranges, which are sorted.
    Beyond(Vec<(u64, u64)>),
}

impl Proof {
    /// The initial state for a burst.
    pub(super) fn from_burst(burst: &RawBurst) -> Self {
        match Engine::from_u8(burst.head.engine) {
            Some(Engine::RunAhead) if burst.head.is_isolated => Self::Beyond(fall_throughs(burst)),
            Some(Engine::RunAhead) | None => Self::Decided(false),
            Some(_) => Self::Decided(true),
        }
    }

    /// Updates the state: the thread was later interrupted at this address.
    pub(super) fn interrupted_at(&mut self, pc: u64) {
        if let Self::Beyond(fall_throughs) = self {
            let next = fall_throughs.partition_point(|(_, last)| *last < pc);
            if fall_throughs.get(next).is_none_or(|(first, _)| pc < *first) {
                *self = Self::Decided(true);
            }
        }
    }

    /// The process made system calls later.
    pub(super) fn finish(&mut self) {
        if matches!(self, Self::Beyond(_)) {
            *self = Self::Decided(true);
        }
    }

    /// Whether the burst is proved; `None` while that is not decided.
    pub(super) fn decided(&self) -> Option<bool> {
        match self {
            Self::Decided(proved) => Some(*proved),
            Self::Beyond(_) => None,
        }
    }
}

/// The addresses of all instructions that a burst executes, in few ranges.
fn fall_throughs(burst: &RawBurst) -> Vec<(u64, u64)> {
    let starts = std::iter::once(burst.head.start).chain(burst.branches.iter().map(|(_, to)| *to));
    let ends = burst.branches.iter().map(|(from, _)| *from);
    // The instruction at the end is not executed.
    let mut all: Vec<(u64, u64)> = starts.zip(ends.chain(burst.head.end.checked_sub(1))).collect();
    all.retain(|(first, last)| first <= last);
    all.sort_unstable();
    all.dedup_by(|next, before| {
        let joins = next.0 <= before.1.saturating_add(1);
        if joins {
            before.1 = before.1.max(next.1);
        }
        joins
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_wire::shard::BurstHead;

    fn burst(engine: Engine, is_isolated: bool) -> RawBurst {
        let head = BurstHead {
            engine: engine as u8,
            is_isolated,
            start: 0x100,
            end: 0x210,
            ..BurstHead::default()
        };
        RawBurst {
            head,
            branches: vec![(0x108, 0x200), (0x20c, 0x104), (0x108, 0x200)],
            values: Vec::new(),
        }
    }

    #[test]
    fn what_is_met_beyond_proves() {
        for (pc, proved) in [
            (0x100, false),
            (0x108, false),
            (0x109, true),
            (0x20f, false),
            (0x210, true),
        ] {
            let mut proof = Proof::from_burst(&burst(Engine::RunAhead, true));
            assert_eq!(proof.decided(), None);
            proof.interrupted_at(pc);
            assert_eq!(proof.decided(), proved.then_some(true), "{pc:#x}");
            proof.finish();
            assert_eq!(proof.decided(), Some(true));
        }
    }

    #[test]
    fn real_execution_is_proof_and_company_is_none() {
        assert_eq!(Proof::from_burst(&burst(Engine::Step, false)).decided(), Some(true));
        let mut proof = Proof::from_burst(&burst(Engine::RunAhead, false));
        proof.finish();
        assert_eq!(proof.decided(), Some(false));
    }
}
