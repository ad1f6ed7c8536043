//! Identifiers that tie emitted code to IR.

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use std::fmt;

/// LLVM's identifier of a function: the first eight bytes, little-endian, of the MD5 of its linkage name.
///
/// This is the GUID that `.pseudo_probe` carries, so LLVM's own tools decode our probes. Two local functions
/// of one name share it; [`FunctionId`] tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionGuid(pub u64);

impl FunctionGuid {
    /// The GUID of a linkage name, taken as it is (no `filename:` prefix for local functions).
    pub fn of_name(linkage_name: &str) -> Self {
        let digest = Md5::digest(linkage_name.as_bytes());
        let mut low = [0; 8];
        low.copy_from_slice(&digest[..8]);
        Self(u64::from_le_bytes(low))
    }
}

impl fmt::Display for FunctionGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for FunctionGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionGuid({self})")
    }
}

/// Hash of the module that defines a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModuleHash(pub u32);

/// pleach's identifier of a function: unlike the GUID alone, it tells two local functions of one name apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct FunctionId {
    /// LLVM's identifier of the linkage name.
    pub guid: FunctionGuid,
    /// The defining module for a function of local linkage, `ModuleHash(0)` for every other.
    pub module: ModuleHash,
}

impl fmt::Display for FunctionId {
    /// `guid` for functions visible outside their module, `guid.module` for local ones, both in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.guid)?;
        if self.module.0 != 0 {
            write!(f, ".{:08x}", self.module.0)?;
        }
        Ok(())
    }
}

/// Hash of a function's control-flow graph at the anchor. A profile applies only to a graph with the same hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CfgHash(pub u64);

impl fmt::Display for CfgHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Position of a block in its function's block list at the anchor, from 0. The entry block is block 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockIndex(pub u32);

impl BlockIndex {
    /// The entry block.
    pub const ENTRY: Self = Self(0);

    /// As an index into a slice of blocks.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Position of a call in its function's list of calls at the anchor, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallIndex(pub u32);

impl CallIndex {
    /// As an index into a slice of calls.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_is_llvms() {
        // `llvm-profdata` and `.pseudo_probe` of stock clang give these for the same names.
        assert_eq!(FunctionGuid::of_name("main").0, 0xdb95_6436_e78d_d5fa);
        assert_eq!(FunctionGuid::of_name("foo").0, 6_699_318_081_062_747_564);
    }
}
