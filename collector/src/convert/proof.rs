//! Whether the program executed what shadow execution predicted.
//!
//! A burst that began while nothing but the program itself decided what came next (`BurstHead::alone`) shows what the
//! program did, as far as it went on at all: a burst passes no system call, so nothing can change that before its end.
//! That the program went to the burst's end is known
//! - where the thread was interrupted again, later, at an instruction that the burst does not execute: it is beyond;
//!   and
//! - where the process told its final figures, for which it makes system calls.
//!
//! A process that is killed tells nothing at its end: its last bursts, and those of the loop that it was killed in,
//! stay predictions. So do those that meet the vDSO, which reads clocks.

use crate::vector::Engine;
use pleach_wire::shard::RawBurst;

/// What is known of one burst.
#[derive(Debug)]
pub(super) enum Proof {
    /// Whether it is proved.
    Decided(bool),
    /// It is if the thread is met outside these addresses, both ends of each included; sorted.
    Beyond(Vec<(u64, u64)>),
}

impl Proof {
    /// When the burst was just read.
    pub(super) fn of(burst: &RawBurst) -> Self {
        match Engine::from_u8(burst.head.engine) {
            Some(Engine::RunAhead) if burst.head.alone => Self::Beyond(stretches(burst)),
            Some(Engine::RunAhead) | None => Self::Decided(false),
            Some(_) => Self::Decided(true),
        }
    }

    /// The thread was met later, at this address.
    pub(super) fn meet(&mut self, pc: u64) {
        if let Self::Beyond(stretches) = self {
            let next = stretches.partition_point(|(_, last)| *last < pc);
            if stretches.get(next).is_none_or(|(first, _)| pc < *first) {
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

    /// What is known so far, if that is final.
    pub(super) fn decided(&self) -> Option<bool> {
        match self {
            Self::Decided(proved) => Some(*proved),
            Self::Beyond(_) => None,
        }
    }
}

/// The addresses of all instructions that a burst executes, in few ranges.
fn stretches(burst: &RawBurst) -> Vec<(u64, u64)> {
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

    fn burst(engine: Engine, alone: bool) -> RawBurst {
        let head = BurstHead {
            engine: engine as u8,
            alone,
            start: 0x100,
            end: 0x210,
            ..BurstHead::default()
        };
        RawBurst {
            head,
            branches: vec![(0x108, 0x200), (0x20c, 0x104), (0x108, 0x200)],
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
            let mut proof = Proof::of(&burst(Engine::RunAhead, true));
            assert_eq!(proof.decided(), None);
            proof.meet(pc);
            assert_eq!(proof.decided(), proved.then_some(true), "{pc:#x}");
            proof.finish();
            assert_eq!(proof.decided(), Some(true));
        }
    }

    #[test]
    fn real_execution_is_proof_and_company_is_none() {
        assert_eq!(Proof::of(&burst(Engine::Step, false)).decided(), Some(true));
        let mut proof = Proof::of(&burst(Engine::RunAhead, false));
        proof.finish();
        assert_eq!(proof.decided(), Some(false));
    }
}
