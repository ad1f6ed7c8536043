//! Exceptions: the edges by which a throw reaches its handler.
//!
//! From the throw to the handler the unwinder takes more branches than a burst has, so that the two are hardly ever seen
//! together. The throw alone tells the edges: those of the calls on the stack with a landing pad, up to the nearest one
//! that may end the unwinding. (A handler of another type of exception, which lets it pass, is taken for the one that
//! catches it.)

use crate::program::Program;
use pleach_annotate::call_kinds::never_return_nor_throw;
use pleach_annotate::cfg::{Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, CallIndex, FunctionGuid};
use pleach_annotate::map::InlineInstanceIndex;
use pleach_collector::vector::{CodeAddress, ModuleId};

/// Blocks of code that cleans up, at most; code of more blocks is taken for a handler.
const MAX_CLEAN_UP: usize = 64;

/// An unwind edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct UnwindEdge {
    pub module: ModuleId,
    pub instance: InlineInstanceIndex,
    /// The block that ends in the call.
    pub from: BlockIndex,
    /// The landing pad.
    pub to: BlockIndex,
}

/// Whether the call that would return to an address never does, so that it throws.
pub(crate) fn throws(program: &Program, return_to: CodeAddress) -> bool {
    let call = || {
        let (module, instance, call) = program.call_before_return(return_to)?;
        Some(never_returns(&program.map(module)?.function_of(instance).cfg, call))
    };
    call().unwrap_or(false)
}

fn never_returns(cfg: &Cfg, call: CallIndex) -> bool {
    let Some(Call { block, callee, .. }) = cfg.calls.get(call.index()) else {
        return false;
    };
    let block = &cfg.blocks[block.index()];
    let goes_nowhere = match block.terminator {
        Terminator::Unreachable => true,
        Terminator::Invoke => {
            let normally = block.successors.first().map(|to| &cfg.blocks[to.index()]);
            normally.is_some_and(|to| to.terminator == Terminator::Unreachable)
        }
        _ => false,
    };
    let can_throw = match callee {
        Callee::Direct(guid) => !never_return_nor_throw().any(|name| FunctionGuid::of_name(name) == *guid),
        Callee::Indirect => true,
        Callee::InlineAsm | Callee::Memory => false,
    };
    goes_nowhere && can_throw && is_last(cfg, call)
}

/// Whether a call is the last of its block. Memory operations are listed behind all calls, and throw nothing.
fn is_last(cfg: &Cfg, call: CallIndex) -> bool {
    let block = cfg.calls[call.index()].block;
    let mut later = cfg.calls[call.index() + 1..].iter();
    !later.any(|other| other.block == block && other.callee != Callee::Memory)
}

/// The edges that a throw takes under these calls, given by where they would return to, innermost first; and whether
/// they lead to a handler.
pub(crate) fn unwind_edges(program: &Program, mut calls: impl Iterator<Item = CodeAddress>) -> (Vec<UnwindEdge>, bool) {
    let mut edges = Vec::new();
    let is_complete = calls.any(|return_to| unwind_call(program, return_to, &mut edges).is_some());
    (edges, is_complete)
}

/// Adds the landing pads of a call, and of the calls by which the function around it was inlined. `Some` if one of them
/// may end the unwinding.
fn unwind_call(program: &Program, return_to: CodeAddress, edges: &mut Vec<UnwindEdge>) -> Option<()> {
    let (module, mut instance, mut call) = program.call_before_return(return_to)?;
    let map = program.map(module)?;
    loop {
        let cfg = &map.function_of(instance).cfg;
        if let Some((from, to)) = landing_pad(cfg, call) {
            edges.push(UnwindEdge {
                module,
                instance,
                from,
                to,
            });
            if !only_cleans_up(cfg, to) {
                return Some(());
            }
        }
        let (parent, of_parent) = map.inline_instances[instance.index()].parent?;
        (instance, call) = (parent, of_parent?);
    }
}

/// The block that ends in a call, and the call's landing pad.
fn landing_pad(cfg: &Cfg, call: CallIndex) -> Option<(BlockIndex, BlockIndex)> {
    let from = cfg.calls.get(call.index())?.block;
    let block = &cfg.blocks[from.index()];
    let mut successors = block.successors.iter();
    let pad = *successors.find(|to| cfg.blocks[to.index()].is_eh_pad)?;
    (block.terminator == Terminator::Invoke && is_last(cfg, call)).then_some((from, pad))
}

/// Whether all ways from a landing pad go on unwinding.
fn only_cleans_up(cfg: &Cfg, pad: BlockIndex) -> bool {
    let mut seen = vec![pad];
    let mut at = 0;
    while let Some(&block) = seen.get(at) {
        let block = &cfg.blocks[block.index()];
        let may_end = !matches!(
            block.terminator,
            Terminator::Branch | Terminator::Switch | Terminator::Invoke | Terminator::Resume | Terminator::Unreachable
        );
        if may_end || seen.len() > MAX_CLEAN_UP {
            return false;
        }
        for &to in &block.successors {
            if !seen.contains(&to) {
                seen.push(to);
            }
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;

    /// 0 invokes something that throws, 1 is never reached, 2 is the landing pad.
    fn throwing() -> Cfg {
        let mut cfg = cfg(&[&[1, 2], &[], &[]]);
        cfg.blocks[0].terminator = Terminator::Invoke;
        cfg.blocks[1].terminator = Terminator::Unreachable;
        cfg.blocks[2].is_eh_pad = true;
        let call = |callee| Call {
            block: BlockIndex(0),
            callee,
            may_not_return: true,
        };
        cfg.calls = vec![
            call(Callee::Indirect),
            call(Callee::Direct(FunctionGuid::of_name("__cxa_throw"))),
            call(Callee::Memory),
        ];
        cfg
    }

    #[test]
    fn the_last_call_before_unreachable_code_throws() {
        let mut cfg = throwing();
        assert!(!never_returns(&cfg, CallIndex(0)));
        assert!(never_returns(&cfg, CallIndex(1)));
        assert!(!never_returns(&cfg, CallIndex(2)));
        assert!(!never_returns(&cfg, CallIndex(3)));
        cfg.calls[1].callee = Callee::Direct(FunctionGuid::of_name("longjmp"));
        assert!(!never_returns(&cfg, CallIndex(1)));
    }

    #[test]
    fn code_that_cleans_up_resumes() {
        // 1 cleans up in a loop and resumes; 3 catches, and goes on in 5.
        let mut cfg = cfg(&[&[1], &[1, 2], &[], &[4, 5], &[], &[]]);
        cfg.blocks[2].terminator = Terminator::Resume;
        cfg.blocks[4].terminator = Terminator::Resume;
        assert!(only_cleans_up(&cfg, BlockIndex(1)));
        assert!(!only_cleans_up(&cfg, BlockIndex(3)));
    }

    #[test]
    fn landing_pads_are_of_the_last_call() {
        let cfg = throwing();
        assert_eq!(landing_pad(&cfg, CallIndex(1)), Some((BlockIndex(0), BlockIndex(2))));
        assert_eq!(landing_pad(&cfg, CallIndex(0)), None);
        assert_eq!(landing_pad(&cfg, CallIndex(7)), None);
    }

    #[test]
    fn a_call_that_may_return_does_not_throw() {
        let mut cfg = throwing();
        cfg.blocks[1].terminator = Terminator::Return;
        assert!(!never_returns(&cfg, CallIndex(1)));
    }
}
