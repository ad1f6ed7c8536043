//! ELF files, and the address map made of one.

use crate::input::with_file;
use pleach_annotate::binary::Binary;
use pleach_annotate::code::instruction_at;
use pleach_annotate::map::AddressMap;

/// Any file behind the magic of ELF.
pub fn elf(data: &[u8]) {
    let bytes = [b"\x7fELF", data].concat();
    with_file(&bytes, |path| {
        let Ok(binary) = Binary::open(path) else { return };
        assert!(binary.symbols.is_sorted_by_key(|symbol| symbol.address));
        let code: usize = binary.code.iter().map(|segment| segment.bytes.len()).sum();
        assert!(code <= bytes.len());
        for symbol in binary.symbols.iter().take(16) {
            let _ = (
                instruction_at(&binary, symbol.address),
                binary.symbol_at(symbol.address),
            );
            if let Some(offset) = binary.offset_of_address(symbol.address) {
                assert!(binary.address_of_offset(offset).is_some());
            }
        }
        let Ok(map) = AddressMap::from_binary(binary) else {
            return;
        };
        assert!(map.probes.is_sorted_by_key(|probe| probe.address));
        assert!(
            map.probes
                .iter()
                .all(|probe| probe.instance.index() < map.inline_instances.len())
        );
        for (position, node) in map.inline_instances.iter().enumerate() {
            assert!((node.function.0 as usize) < map.functions.len());
            assert!(node.parent.is_none_or(|(parent, _)| parent.index() < position));
            let _ = map.body(node);
        }
    });
}
