//! Columns of blocks, and the positions of code that was inlined before the graphs were taken, from debug information at
//! the blocks' probes.
//!
//! The compiler moves instructions, so the one at a probe may be of another block. What it tells is used only if it is on
//! the line on which the block begins.

use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_annotate::sources::{Locations, TextPosition};
use pleach_report::lines::BlockPlace;
use std::collections::HashMap;

/// Places by function and block.
pub type BlockPlaces = HashMap<(FunctionId, CfgHash), Vec<BlockPlace>>;

/// Adds the places of a binary's blocks. A block has probes in each copy of its function: its column is the first one in
/// any, and its inlined code that of the first copy that has any.
pub fn add_block_places(places: &mut BlockPlaces, map: &AddressMap, locations: &Locations) {
    for probe in &map.probes {
        let ProbeTarget::Block(block) = probe.target else {
            continue;
        };
        let function = map.function_of(probe.instance);
        let Some(of_graph) = function.cfg.blocks.get(block.index()) else {
            continue;
        };
        let stack = locations.text_at(probe.address);
        let Some(place) = place_in(&function.cfg.name, of_graph.line, &stack) else {
            continue;
        };
        let of_function = places.entry((function.cfg.id, function.hash)).or_default();
        of_function.resize(function.cfg.blocks.len(), BlockPlace::default());
        let known = &mut of_function[block.index()];
        known.column = match known.column {
            0 => place.column,
            column if place.column == 0 => column,
            column => column.min(place.column),
        };
        if known.inlined.is_empty() {
            known.inlined = place.inlined;
        }
    }
}

/// The place of a block of `function` that begins on a line, from the inline stack of an instruction.
fn place_in(function: &str, line: u32, stack: &[TextPosition]) -> Option<BlockPlace> {
    let own = stack.iter().rposition(|position| &*position.function == function)?;
    (stack[own].line == line).then(|| BlockPlace {
        column: stack[own].column,
        inlined: stack[own + 1..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn only_the_line_of_the_block_tells_its_place() {
        let position = |function: &str, line, column| TextPosition {
            function: function.into(),
            file: Path::new("/src/a.c").into(),
            line,
            column,
        };
        // `main` calls `scan`, which calls `next`; the graphs are of `scan`.
        let stack = [position("main", 20, 3), position("scan", 9, 7), position("next", 2, 10)];
        let place = place_in("scan", 9, &stack).unwrap();
        assert_eq!((place.column, place.inlined.len(), place.inlined[0].line), (7, 1, 2));
        assert_eq!(place_in("scan", 8, &stack), None);
        assert_eq!(place_in("other", 9, &stack), None);
        assert_eq!(place_in("next", 2, &stack).unwrap().inlined, []);
    }
}
