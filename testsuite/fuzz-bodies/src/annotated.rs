//! The sections that annotated binaries carry, and LLVM's basic-block address map.

use crate::input::Input;
use pleach_annotate::manifest::{self, Anchor};
use pleach_annotate::probe::{self, Address, Symbol};
use pleach_export::propeller::address_map;
use xxhash_rust::xxh3::xxh3_64;

const ENTRY_HEADER: usize = 16;

/// Raw bytes; or the entry of a graph, changed in some places, its checksum put right.
pub fn manifest(data: &[u8]) {
    let mut input = Input(data);
    if input.u8() % 2 == 0 {
        return check_manifest(input.0);
    }
    let mut section = Vec::new();
    for _ in 0..input.u8() % 3 + 1 {
        let mut entry = manifest::encode(&input.cfg(), Anchor::Late);
        for _ in 0..input.u8() % 4 {
            let at = input.u32() as usize % entry.len();
            entry[at] = input.u8();
        }
        let payload = u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]) as usize;
        if let Some(payload) = entry.get(ENTRY_HEADER..).and_then(|rest| rest.get(..payload)) {
            let check = xxh3_64(payload) as u32;
            entry[12..16].copy_from_slice(&check.to_le_bytes());
        }
        section.extend(entry);
    }
    check_manifest(&section);
}

fn check_manifest(section: &[u8]) {
    let (entries, errors) = manifest::decode(section);
    assert!(entries.len() + errors.len() <= section.len() / 8 + 1);
    for entry in entries {
        assert_eq!(entry.cfg.hash(), entry.hash);
        let written = manifest::encode(&entry.cfg, entry.anchor);
        let (read, errors) = manifest::decode(&written);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(read, [entry]);
    }
}

/// LLVM's basic-block address map: any bytes.
pub fn block_addresses(data: &[u8]) {
    let Ok(functions) = address_map::decode(data) else {
        return;
    };
    assert!(functions.iter().map(Vec::len).sum::<usize>() <= data.len() / 4);
    for blocks in functions {
        assert!(!blocks.is_empty() && blocks.iter().all(|block| block.code.start <= block.code.end));
    }
}

/// Any section beside a few symbols, two of which are of one name.
pub fn pseudo_probe(data: &[u8]) {
    let symbol = |name: &str, address| Symbol {
        address: Address(address),
        size: 64,
        name: name.into(),
        file: None,
        local: false,
    };
    let symbols = [
        symbol("a", 0x1000),
        symbol("b", 0x1040),
        symbol("a", 0x1080),
        symbol("main", u64::MAX),
    ];
    let Ok(forest) = probe::decode(data, &symbols) else {
        return;
    };
    // A node takes ten bytes at least, a probe three.
    assert!(forest.instances.len() <= data.len() / 10 && forest.probes.len() <= data.len() / 3);
    for (position, node) in forest.instances.iter().enumerate() {
        assert!(node.parent.is_none_or(|(parent, _)| (parent.0 as usize) < position));
        assert!(node.symbol == u32::MAX || (node.symbol as usize) < symbols.len());
    }
    assert!(
        forest
            .probes
            .iter()
            .all(|probe| (probe.instance.0 as usize) < forest.instances.len())
    );
}
