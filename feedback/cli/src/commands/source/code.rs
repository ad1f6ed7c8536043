//! Lines with code of several blocks: a line is proved not to have been executed only if all of its code is.

use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, Probe};
use pleach_annotate::probe::Address;
use pleach_annotate::sources::visit_lines;
use pleach_profile::{Covered, FunctionProfile, Profile};
use pleach_report::lines::SourceFiles;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Makes those lines unknown of which no block that begins there was executed, but that have code of a block that may
/// have been. `file` has the debug information of `map`'s binary.
pub fn mark_uncertain_lines_unknown(
    lines: &mut SourceFiles,
    file: &Path,
    map: &AddressMap,
    profile: &Profile,
) -> io::Result<()> {
    let functions = profile.functions.iter();
    let functions = functions.map(|f| ((f.id, f.cfg_hash), f)).collect();
    let blocks = BlockStates { map, functions };
    visit_lines(file, &mut |source, line, addresses| {
        if lines.is_not_executed(source, line) && blocks.may_have_run(addresses) {
            lines.mark_unknown_if_not_executed(source, line);
        }
    })
}

/// The states of blocks by address.
struct BlockStates<'a> {
    map: &'a AddressMap,
    functions: HashMap<(FunctionId, CfgHash), &'a FunctionProfile>,
}

impl BlockStates<'_> {
    /// Whether some of this code may have run: the last probe before it is of a block that is not proved not to have
    /// been executed, or one in it is. Code of an emitted function without probes says nothing.
    fn may_have_run(&self, addresses: Range<Address>) -> bool {
        let probes = &self.map.probes;
        let inside = probes.partition_point(|probe| probe.address <= addresses.start);
        let last = probes[..inside]
            .last()
            .filter(|probe| self.is_in(probe, addresses.start));
        let before = last.map_or(inside, |last| {
            probes.partition_point(|probe| probe.address < last.address)
        });
        let relevant = probes[before..]
            .iter()
            .take_while(|probe| probe.address < addresses.end);
        relevant.into_iter().any(|probe| self.may_have_executed(probe))
    }

    /// Whether an address is in the emitted function of a probe.
    fn is_in(&self, probe: &Probe, address: Address) -> bool {
        let instance = self.map.inline_instances[probe.instance.index()];
        let symbol = self.map.binary.symbols.get(instance.symbol as usize);
        symbol.is_some_and(|symbol| address >= symbol.address && address.0 - symbol.address.0 < symbol.size)
    }

    fn may_have_executed(&self, probe: &Probe) -> bool {
        let function = self.map.function_of(probe.instance);
        let block = match probe.target {
            ProbeTarget::Block(block) => Some(block),
            ProbeTarget::Call(call) => function.cfg.calls.get(call.0 as usize).map(|call| call.block),
        };
        let profile = self.functions.get(&(function.cfg.id, function.hash));
        let state = block.and_then(|block| profile?.coverage.get(block.index()));
        state != Some(&Covered::NotExecuted)
    }
}
