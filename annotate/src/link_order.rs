//! Which module an emitted function is of, by the order of the emitted functions.
//!
//! Linkers keep the code and the graphs of object files in the same order. Functions of one name and shape, which
//! nothing else tells apart, are therefore in the order of their modules, and each lies between functions whose modules
//! are known. Within a module, the order says nothing: code is generated bottom-up.

use crate::id::FunctionGuid;
use rustc_hash::FxHashMap;

/// An emitted function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emitted {
    /// Its name.
    pub name: FunctionGuid,
    /// The modules that it may be of, as positions in the order in which they were linked, without repetitions,
    /// ascending. One if it is known.
    pub modules: Vec<u32>,
}

/// One pair of neighbours in this number may be in another order, such as those of sections that linkers put first.
const MAX_DISORDER: usize = 20;

/// The modules of emitted functions, where they are certain. None where the linker was given another order.
pub fn modules_by_order(emitted: &[Emitted]) -> Vec<Option<u32>> {
    let mut modules: Vec<Option<u32>> = vec![None; emitted.len()];
    let known = |function: &Emitted| match function.modules[..] {
        [one] => Some(one),
        _ => None,
    };
    let order: Vec<u32> = emitted.iter().filter_map(known).collect();
    let descents = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    if descents * MAX_DISORDER > order.len() {
        return modules;
    }
    let mut by_name: FxHashMap<FunctionGuid, Vec<(usize, Vec<u32>)>> = FxHashMap::default();
    for (position, (function, (first, last))) in emitted.iter().zip(ranges(emitted, known)).enumerate() {
        let mut possible = function.modules.clone();
        if possible.len() > 1 {
            possible.retain(|module| (first..=last).contains(module));
        }
        by_name.entry(function.name).or_default().push((position, possible));
    }
    for functions in by_name.values().filter(|functions| functions.len() > 1) {
        for ((position, _), certain) in functions.iter().zip(certain(functions)) {
            modules[*position] = certain;
        }
    }
    modules
}

/// For each function, the modules of the last known one up to it and of the first known one from it on.
fn ranges(emitted: &[Emitted], known: impl Fn(&Emitted) -> Option<u32>) -> Vec<(u32, u32)> {
    let mut ranges = vec![(0, u32::MAX); emitted.len()];
    let mut first = 0;
    for (range, function) in ranges.iter_mut().zip(emitted) {
        first = known(function).unwrap_or(first);
        range.0 = first;
    }
    let mut last = u32::MAX;
    for (range, function) in ranges.iter_mut().zip(emitted).rev() {
        last = known(function).unwrap_or(last);
        range.1 = last;
    }
    ranges
}

/// The modules of functions of one name that are the same in every assignment that ascends.
fn certain(functions: &[(usize, Vec<u32>)]) -> Vec<Option<u32>> {
    let unknown = vec![None; functions.len()];
    let mut earliest = Vec::new();
    for (_, possible) in functions {
        let after = earliest.last().copied();
        match possible.iter().find(|&&module| after < Some(module)) {
            Some(&module) => earliest.push(module),
            None => return unknown,
        }
    }
    let mut latest = u32::MAX;
    let mut found = unknown;
    for (place, (_, possible)) in functions.iter().enumerate().rev() {
        // There is one, since the earliest ones ascend.
        latest = possible.iter().copied().rfind(|&module| module < latest).unwrap_or(0);
        found[place] = (latest == earliest[place]).then_some(latest);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(emitted: &[(u64, &[u32])]) -> Vec<Option<u32>> {
        let emitted = emitted.iter().map(|(name, modules)| Emitted {
            name: FunctionGuid(*name),
            modules: modules.to_vec(),
        });
        modules_by_order(&emitted.collect::<Vec<_>>())
    }

    #[test]
    fn as_many_as_there_are_modules() {
        // All four are emitted: the order alone tells.
        let step: (u64, &[u32]) = (7, &[0, 1, 2, 3]);
        assert_eq!(modules(&[step; 4]), [0, 1, 2, 3].map(Some));
        // One of them is not.
        assert_eq!(modules(&[step; 3]), [None; 3]);
        assert_eq!(modules(&[step; 5]), [None; 5]);
    }

    #[test]
    fn known_functions_around() {
        let step: (u64, &[u32]) = (7, &[0, 1, 2, 3]);
        // Names 1 to 3 are known: of modules 0, 2 and 3.
        let found = modules(&[step, (1, &[0]), step, (2, &[2]), (3, &[3]), step]);
        assert_eq!(found, [Some(0), None, None, None, None, Some(3)]);
        // The second is of module 1 or 2; of module 1 if another one before module 2's known function follows.
        let found = modules(&[step, (1, &[0]), step, step, (2, &[2]), (3, &[3])]);
        assert_eq!(found, [Some(0), None, Some(1), Some(2), None, None]);
        // One of the same name that is known.
        let found = modules(&[step, (7, &[1]), (2, &[2])]);
        assert_eq!(found, [Some(0), Some(1), None]);
    }

    #[test]
    fn another_order_tells_nothing() {
        let step: (u64, &[u32]) = (7, &[0, 1]);
        assert_eq!(modules(&[(1, &[1]), step, (2, &[0]), step]), [None; 4]);
    }
}
