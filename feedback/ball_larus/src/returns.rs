//! Which calls inside a module always return.
//!
//! At the early anchor the compiler has not yet inferred which functions return, so a small leaf function looks as if
//! it might call `exit`. The property here is weaker than LLVM's `willreturn`: control leaves the callee only by
//! returning, but it may also stay there for ever.

use super::calls::may_not_return;
use pleach_annotate::cfg::{Callee, Cfg, Terminator};
use pleach_annotate::id::FunctionGuid;
use rustc_hash::FxHashMap;

/// Clears [`may_not_return`](pleach_annotate::cfg::Call::may_not_return) of calls that always return: calls of
/// functions of the same module that raise no exception and, directly or indirectly, call only functions that always
/// return.
///
/// `replaceable` says of a function, by position, whether the linker may replace it by another definition.
pub fn mark_returning_calls(functions: &mut [Cfg], replaceable: impl Fn(usize) -> bool) {
    let position: FxHashMap<FunctionGuid, usize> = functions
        .iter()
        .enumerate()
        .filter(|&(i, _)| !replaceable(i))
        .map(|(i, cfg)| (cfg.id.guid, i))
        .collect();
    let callee = |callee| match callee {
        Callee::Direct(guid) => position.get(&guid).copied(),
        _ => None,
    };
    let mut leaves = vec![false; functions.len()];
    let mut callers = vec![Vec::new(); functions.len()];
    let mut work = Vec::new();
    for (caller, cfg) in functions.iter().enumerate() {
        let mut by_itself = cfg.blocks.iter().any(|b| b.terminator == Terminator::Resume);
        for call in cfg.calls.iter().filter(|call| may_not_return(call)) {
            match callee(call.callee) {
                Some(known) => callers[known].push(caller),
                None => by_itself = true,
            }
        }
        if by_itself {
            leaves[caller] = true;
            work.push(caller);
        }
    }
    while let Some(left) = work.pop() {
        for &caller in &callers[left] {
            if !std::mem::replace(&mut leaves[caller], true) {
                work.push(caller);
            }
        }
    }
    for cfg in functions {
        for call in &mut cfg.calls {
            if callee(call.callee).is_some_and(|known| !leaves[known]) {
                call.may_not_return = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Block, Call};
    use pleach_annotate::id::{BlockIndex, FunctionId, ModuleHash};

    fn function(name: &str, calls: &[&str]) -> Cfg {
        Cfg {
            id: FunctionId {
                guid: FunctionGuid::of_name(name),
                module: ModuleHash(0),
            },
            module: ModuleHash(1),
            name: name.into(),
            source_file: "a.c".into(),
            blocks: vec![Block {
                successors: vec![],
                terminator: Terminator::Return,
                is_eh_pad: false,
                instructions: 1,
                line: 0,
            }],
            calls: calls
                .iter()
                .map(|name| Call {
                    block: BlockIndex(0),
                    callee: Callee::Direct(FunctionGuid::of_name(name)),
                    may_not_return: true,
                })
                .collect(),
        }
    }

    #[test]
    fn a_call_comes_back_unless_it_reaches_one_that_may_not() {
        let mut functions = [
            function("leaf", &[]),
            function("even", &["odd", "leaf"]),
            function("odd", &["even"]),
            function("outside", &["elsewhere"]),
            function("above", &["outside", "even"]),
            function("weak", &[]),
            function("uses_weak", &["weak"]),
        ];
        mark_returning_calls(&mut functions, |i| i == 5);
        let flags = |i: usize| functions[i].calls.iter().map(|c| c.may_not_return).collect::<Vec<_>>();
        assert_eq!(flags(1), [false, false]);
        assert_eq!(flags(2), [false]);
        assert_eq!(flags(3), [true]);
        assert_eq!(flags(4), [true, false]);
        assert_eq!(flags(6), [true]);
    }
}
