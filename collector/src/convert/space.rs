//! The executable mappings of one process: which file an address belongs to.

use crate::vector::{CodeAddress, ModuleId};

/// A mapping and the module it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Located {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset in the file of the first byte.
    pub(crate) offset: u64,
    pub(crate) module: ModuleId,
}

impl Located {
    /// The file offset of an address of the mapping.
    pub(crate) fn code_address(&self, address: u64) -> CodeAddress {
        if self.module == ModuleId::EXTERNAL {
            return external(address);
        }
        CodeAddress {
            module: self.module,
            offset: address.wrapping_sub(self.start).wrapping_add(self.offset),
        }
    }

    /// The run-time address of an offset in the file, if the mapping has it.
    pub(crate) fn run_time_address(&self, offset: u64) -> Option<u64> {
        let into = offset.checked_sub(self.offset)?;
        (into < self.end - self.start).then(|| self.start + into)
    }
}

/// An address in no file.
pub(crate) fn external(address: u64) -> CodeAddress {
    CodeAddress {
        module: ModuleId::EXTERNAL,
        offset: address,
    }
}

/// Mappings in force at one time, by address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Space {
    mappings: Vec<Located>,
}

impl FromIterator<Located> for Space {
    fn from_iter<I: IntoIterator<Item = Located>>(mappings: I) -> Self {
        let mut space = Self::default();
        mappings.into_iter().for_each(|mapping| space.map(mapping));
        space
    }
}

impl Space {
    /// Adds a mapping. As in the kernel, it replaces those that it overlaps.
    pub(crate) fn map(&mut self, new: Located) {
        if new.start >= new.end {
            return;
        }
        let first = self.mappings.partition_point(|old| old.end <= new.start);
        let after = first + self.mappings[first..].partition_point(|old| old.start < new.end);
        let mut kept = Vec::with_capacity(3);
        if let Some(old) = self.mappings[first..after].first().filter(|old| old.start < new.start) {
            kept.push(Located { end: new.start, ..*old });
        }
        kept.push(new);
        if let Some(old) = self.mappings[first..after].last().filter(|old| old.end > new.end) {
            kept.push(Located {
                start: new.end,
                offset: old.offset.wrapping_add(new.end - old.start),
                ..*old
            });
        }
        self.mappings.splice(first..after, kept);
    }

    /// The mapping that contains an address.
    pub(crate) fn mapping(&self, address: u64) -> Option<&Located> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings
            .get(after.checked_sub(1)?)
            .filter(|mapping| address < mapping.end)
    }

    /// The code address of a run-time address; `None` if no mapping contains it.
    pub(crate) fn find(&self, address: u64) -> Option<CodeAddress> {
        self.mapping(address).map(|mapping| mapping.code_address(address))
    }

    /// Mappings of one module.
    pub(crate) fn of_module(&self, module: ModuleId) -> impl Iterator<Item = &Located> {
        self.mappings.iter().filter(move |mapping| mapping.module == module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The last mapping of an address is what the address means.
        #[test]
        fn later_mappings_hide_earlier_ones(
            list in prop::collection::vec((0u64..60, 1u64..30, 0u64..100, 0u32..3), 0..12),
        ) {
            let located: Vec<Located> = list
                .iter()
                .map(|&(start, length, offset, module)| {
                    let module = if module == 2 { ModuleId::EXTERNAL } else { ModuleId(module) };
                    Located { start, end: start + length, offset, module }
                })
                .collect();
            let space: Space = located.iter().copied().collect();
            for address in 0..100 {
                let last = located.iter().rev().find(|m| (m.start..m.end).contains(&address));
                prop_assert_eq!(space.find(address), last.map(|m| m.code_address(address)));
            }
            prop_assert!(space.mappings.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
