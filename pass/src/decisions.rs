//! Single decisions: taking only some of them, and listing all.
//!
//! A *decision* is one use of an optimisation at one place: this branch is if-converted, these blocks are copied.
//! `-pleach-only` takes only the decisions that it names, so that the effect of one can be measured;
//! `-pleach-decisions` lists all with the gain that the optimisation's cost model predicts. Branch weights are set in
//! any case.

use crate::error::PassError;
use crate::ir::ModuleFacts;
use crate::optimisation::{Only, Optimisation};
use crate::settings::Settings;
use inkwell::module::Module;
use pleach_decide::if_conversion::SLOTS_PER_BLOCK;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

/// The decisions of one run on a module.
pub struct Decisions {
    only: Option<Only>,
    list: Option<(PathBuf, File)>,
    source_file: String,
    /// Issue slots of the whole program.
    program: f64,
    /// By optimisation and function, the number of the next decision.
    next: FxHashMap<(Optimisation, String), u32>,
}

impl Decisions {
    /// The decisions of a run. `executions`: of all blocks of the program.
    ///
    /// # Errors
    /// The list cannot be opened.
    pub fn open(module: &Module<'_>, settings: &Settings, executions: u64) -> Result<Self, PassError> {
        let open = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| PassError::Decisions(path.clone(), error))?;
            Ok::<_, PassError>((path.clone(), file))
        };
        Ok(Self {
            only: settings.only.clone(),
            list: settings.decisions.as_ref().map(open).transpose()?,
            source_file: ModuleFacts::from_module(module).source_file,
            program: executions as f64 * SLOTS_PER_BLOCK,
            next: FxHashMap::default(),
        })
    }

    /// Whether the next decision about a function is to be taken. `slots`: the issue slots that it saves as its cost
    /// model predicts; `None` where there is no model.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn take(&mut self, optimisation: Optimisation, function: &str, slots: Option<f64>) -> Result<bool, PassError> {
        let next = self.next.entry((optimisation, function.to_owned())).or_default();
        let number = *next;
        *next += 1;
        if let Some((path, file)) = &mut self.list {
            let gain = slots.map_or_else(
                || "-".to_owned(),
                |slots| format!("{:.6}", slots / self.program.max(1.0)),
            );
            // One write, so that lines of parallel compilations do not mix.
            let line = format!("{}\t{optimisation}\t{function}\t{number}\t{gain}\n", self.source_file);
            file.write_all(line.as_bytes())
                .map_err(|error| PassError::Decisions(path.clone(), error))?;
        }
        Ok(self
            .only
            .as_ref()
            .is_none_or(|only| only.names(optimisation, function, number)))
    }
}
