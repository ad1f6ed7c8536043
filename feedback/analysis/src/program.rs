//! The sampled program: the address maps of its modules.

use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::code::instruction_at;
use pleach_annotate::find::{FindError, Finder};
use pleach_annotate::id::{BlockIndex, CallIndex};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, MapError, Probe};
use pleach_annotate::probe::Address;
use pleach_collector::vector::{CodeAddress, Module, ModuleId};
use std::path::Path;

/// The longest instruction, in bytes.
const MAX_INSTRUCTION: u64 = 15;

/// A block of an inline instance of a module.
pub type Site = (ModuleId, InlineInstanceIndex, BlockIndex);

/// The modules of a program that pleach can map to IR.
#[derive(Debug, Default)]
pub struct Program {
    /// By [`ModuleId`]; `None` for files without a manifest.
    maps: Vec<Option<AddressMap>>,
    /// Modules that should have been usable but are not, and why; each reason once.
    pub problems: Vec<ModuleProblem>,
}

/// Why a module's samples cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleProblem {
    /// The file is nowhere, or not the one that ran.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The file is annotated but cannot be mapped.
    #[error(transparent)]
    Map(MapError),
}

impl Program {
    /// Reads the maps of all modules of a recording, from where `finder` finds them.
    pub fn read(modules: &[Module], finder: &Finder) -> Self {
        let mut program = Self::default();
        for module in modules {
            let map = read_module(module, finder).unwrap_or_else(|problem| {
                program.add_problem(problem);
                None
            });
            program.maps.push(map);
        }
        program
    }

    /// Several modules may be of one file: one that was replaced, or is gone.
    fn add_problem(&mut self, problem: ModuleProblem) {
        let text = problem.to_string();
        if self.problems.iter().all(|known| known.to_string() != text) {
            self.problems.push(problem);
        }
    }

    /// The map of a module, if it is annotated.
    pub fn map(&self, module: ModuleId) -> Option<&AddressMap> {
        self.maps.get(module.0 as usize)?.as_ref()
    }

    /// Annotated modules.
    pub fn annotated(&self) -> impl Iterator<Item = (ModuleId, &AddressMap)> {
        self.maps
            .iter()
            .enumerate()
            .filter_map(|(i, m)| Some((ModuleId(i as u32), m.as_ref()?)))
    }

    /// The annotated module and address that a sampled address lies in.
    pub fn locate(&self, address: CodeAddress) -> Option<(&AddressMap, Address)> {
        let map = self.map(address.module)?;
        Some((map, map.binary.address_of_offset(address.offset)?))
    }

    /// The block that a call instruction belongs to. Control was in other inlined code before, where that ended without
    /// another probe.
    pub fn block_of_call(&self, from: CodeAddress) -> Option<Site> {
        let (map, address) = self.locate(from)?;
        let mut probes = map.probes_in(address, address).iter();
        probes.find_map(|probe| called_in(map, from.module, probe))
    }

    /// The block whose call returns to an address.
    pub fn block_before_return(&self, to: CodeAddress) -> Option<Site> {
        let (map, probe) = self.probe_before_return(to)?;
        called_in(map, to.module, probe)
    }

    /// The call that returns to an address, with its module and inline instance.
    pub fn call_before_return(&self, to: CodeAddress) -> Option<(ModuleId, InlineInstanceIndex, CallIndex)> {
        match self.probe_before_return(to)?.1 {
            &Probe {
                instance,
                target: ProbeTarget::Call(call),
                ..
            } => Some((to.module, instance, call)),
            _ => None,
        }
    }

    fn probe_before_return(&self, to: CodeAddress) -> Option<(&AddressMap, &Probe)> {
        let (map, address) = self.locate(to)?;
        let first = Address(address.0.checked_sub(MAX_INSTRUCTION)?);
        let mut probes = map.probes_in(first, Address(address.0 - 1)).iter().rev();
        let probe = probes.find(|probe| {
            let length = || Some(instruction_at(&map.binary, probe.address)?.len);
            called_in(map, to.module, probe).is_some()
                && length().is_some_and(|length| probe.address.0 + u64::from(length) == address.0)
        })?;
        Some((map, probe))
    }
}

/// The block of the call that a probe marks.
fn called_in(map: &AddressMap, module: ModuleId, probe: &Probe) -> Option<Site> {
    let ProbeTarget::Call(call) = probe.target else {
        return None;
    };
    let call = map.function_of(probe.instance).cfg.calls.get(call.index())?;
    Some((module, probe.instance, call.block))
}

/// Libraries of the sampler, which each recorded process has loaded.
const SAMPLER: [&str; 2] = ["libpleach_preload.so", "libpleach_stub.so"];

/// The map of a module; `None` if it is not annotated.
fn read_module(module: &Module, finder: &Finder) -> Result<Option<AddressMap>, ModuleProblem> {
    let build_id = module.build_id.as_ref().map(|id| id.0.as_slice());
    if !is_file_path(&module.path) && !finder.names(&module.path, build_id) {
        return Ok(None);
    }
    // Another version of the sampler than the one that recorded is nothing to warn of.
    if module
        .path
        .file_name()
        .is_some_and(|name| SAMPLER.iter().any(|sampler| name == *sampler))
    {
        return Ok(None);
    }
    match AddressMap::from_binary(finder.open(&module.path, build_id)?) {
        Ok(map) => Ok(Some(map)),
        Err(MapError::NotAnnotated { .. }) => Ok(None),
        Err(error) => Err(ModuleProblem::Map(error)),
    }
}

/// `[vdso]`, `[heap]` and deleted files have no contents to read.
fn is_file_path(path: &Path) -> bool {
    path.is_absolute() && !path.as_os_str().to_string_lossy().ends_with(" (deleted)")
}
