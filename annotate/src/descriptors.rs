//! Decodes `.pseudo_probe_desc`: the functions that have probes.
//!
//! The section is a sequence of records: GUID, hash of the graph (64 bits each), length of the linkage name (unsigned
//! LEB128), linkage name. Linkers concatenate the sections of several objects, so records may repeat.

use crate::id::FunctionGuid;
use gimli::{EndianSlice, LittleEndian, Reader};
use rustc_hash::FxHashMap;

/// Name of the section.
pub const SECTION: &str = ".pseudo_probe_desc";

/// A function that has probes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeDescriptor {
    /// The compiler's hash of the graph whose blocks and calls the probes number.
    pub checksum: u64,
    /// Linkage name.
    pub name: String,
}

/// That the section ends inside a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("section {SECTION}, offset {offset:#x}: the section ends inside a record")]
pub struct DescriptorError {
    /// Offset of the record in the section, in bytes.
    pub offset: usize,
}

/// Decodes a section. Of functions of one GUID, the first counts.
///
/// # Errors
/// Fails if the section is truncated.
pub fn decode(section: &[u8]) -> Result<FxHashMap<FunctionGuid, ProbeDescriptor>, DescriptorError> {
    let mut input = EndianSlice::new(section, LittleEndian);
    let mut found = FxHashMap::default();
    while !input.is_empty() {
        let offset = section.len() - input.len();
        let (guid, descriptor) = record(&mut input).map_err(|_| DescriptorError { offset })?;
        found.entry(guid).or_insert(descriptor);
    }
    Ok(found)
}

fn record(input: &mut EndianSlice<'_, LittleEndian>) -> gimli::Result<(FunctionGuid, ProbeDescriptor)> {
    let guid = FunctionGuid(input.read_u64()?);
    let checksum = input.read_u64()?;
    let length = input.read_uleb128()? as usize;
    let name = input.split(length)?;
    let name = String::from_utf8_lossy(name.slice()).into_owned();
    Ok((guid, ProbeDescriptor { checksum, name }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_read_one_after_the_other() {
        let mut section = Vec::new();
        for (guid, checksum, name) in [(1u64, 7u64, "f"), (2, 8, "main"), (1, 9, "f")] {
            section.extend(guid.to_le_bytes());
            section.extend(checksum.to_le_bytes());
            section.push(name.len() as u8);
            section.extend(name.as_bytes());
        }
        let found = decode(&section).expect("well-formed");
        let main = ProbeDescriptor {
            checksum: 8,
            name: "main".into(),
        };
        assert_eq!((found.len(), &found[&FunctionGuid(2)]), (2, &main));
        assert_eq!(found[&FunctionGuid(1)].checksum, 7);
        let error = decode(&section[..section.len() - 1]).expect_err("truncated");
        assert_eq!(error.offset, 18 + 21);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(found) = decode(&bytes) {
                prop_assert!(found.len() <= bytes.len() / 17);
            }
        }
    }
}
