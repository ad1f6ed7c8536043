//! The functions that call stacks name: their modules, names and source files.

use pleach_analysis::program::Program;
use pleach_analysis::stacks::Key;
use pleach_annotate::cfg::Cfg;
use pleach_collector::vector::ModuleId;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFunction {
    /// The module that has it.
    pub module: ModuleId,
    /// Name for people.
    pub name: String,
    /// Linkage name.
    pub linkage_name: String,
    /// Its source file, where debug information tells.
    pub file: Option<PathBuf>,
    /// First known line of its entry block; 0 if unknown.
    pub line: u32,
}

/// Functions by identifier and graph.
pub type Functions = BTreeMap<Key, NamedFunction>;

/// The functions of a program. `shown` makes a name for people of a linkage name; `file_of` finds source files.
pub fn functions(
    program: &Program,
    shown: &dyn Fn(&str) -> String,
    file_of: &dyn Fn(&Cfg) -> Option<PathBuf>,
) -> Functions {
    let mut found = Functions::new();
    for (module, map) in program.annotated() {
        for function in &map.functions {
            let cfg = &function.cfg;
            found.entry((cfg.id, function.hash)).or_insert_with(|| NamedFunction {
                module,
                name: shown(&cfg.name),
                linkage_name: cfg.name.clone(),
                file: file_of(cfg),
                line: cfg.blocks.first().map_or(0, |entry| entry.line),
            });
        }
    }
    found
}
