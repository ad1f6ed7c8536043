//! The sampled program: the address maps of its modules.

use pleach_annotate::binary::{Binary, BinaryError};
use pleach_annotate::map::{AddressMap, MapError};
use pleach_annotate::probe::Address;
use pleach_collector::vector::{CodeAddress, Module, ModuleId};
use std::path::{Path, PathBuf};

/// The modules of a program that pleach can map to IR.
#[derive(Debug, Default)]
pub struct Program {
    /// By [`ModuleId`]; `None` for files without a manifest.
    maps: Vec<Option<AddressMap>>,
    /// Modules that should have been usable but are not, and why.
    pub problems: Vec<ModuleProblem>,
}

/// Why a module's samples cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleProblem {
    /// The file on disk is not the one that ran.
    #[error(
        "{}: changed since it was recorded (build-id {recorded}, now {found}): record again, or point --binary at the \
         recorded file",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Build-id when recorded.
        recorded: String,
        /// Build-id now.
        found: String,
    },
    /// The file is gone or unreadable.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The file is annotated but cannot be mapped.
    #[error(transparent)]
    Map(MapError),
}

fn hex(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(
        || "none".into(),
        |b| b.iter().map(|byte| format!("{byte:02x}")).collect(),
    )
}

impl Program {
    /// Reads the maps of all modules of a recording. `replacement`, where given, is read instead of the module that has
    /// the same build-id or, failing that, the same file name.
    pub fn read(modules: &[Module], replacement: Option<&Path>) -> Self {
        let mut program = Self::default();
        let replacement = replacement.map(|path| (path, Binary::open(path)));
        for module in modules {
            let map = match program.read_module(module, replacement.as_ref()) {
                Ok(map) => map,
                Err(problem) => {
                    program.problems.push(problem);
                    None
                }
            };
            program.maps.push(map);
        }
        if let Some((_, Err(error))) = replacement {
            program.problems.push(error.into());
        }
        program
    }

    fn read_module(
        &self,
        module: &Module,
        replacement: Option<&(&Path, Result<Binary, BinaryError>)>,
    ) -> Result<Option<AddressMap>, ModuleProblem> {
        let recorded = module.build_id.as_ref().map(|id| id.0.as_slice());
        let replaced = replacement.and_then(|(path, binary)| {
            let binary = binary.as_ref().ok()?;
            let same_build = recorded.is_some() && binary.build_id.as_deref() == recorded;
            let same_name = path.file_name() == module.path.file_name();
            (same_build || same_name).then(|| binary.clone())
        });
        let binary = match replaced {
            Some(binary) => binary,
            None if !is_file_path(&module.path) => return Ok(None),
            None => Binary::open(&module.path)?,
        };
        if binary.build_id.as_deref() != recorded {
            return Err(ModuleProblem::Changed {
                path: module.path.clone(),
                recorded: hex(recorded),
                found: hex(binary.build_id.as_deref()),
            });
        }
        match AddressMap::from_binary(binary) {
            Ok(map) => Ok(Some(map)),
            Err(MapError::NotAnnotated { .. }) => Ok(None),
            Err(error) => Err(ModuleProblem::Map(error)),
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
}

/// `[vdso]`, `[heap]` and deleted files have no contents to read.
fn is_file_path(path: &Path) -> bool {
    path.is_absolute() && !path.as_os_str().to_string_lossy().ends_with(" (deleted)")
}
