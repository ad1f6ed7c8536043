//! Forms superblocks. `pleach_decide::superblock` chooses them; this module duplicates the blocks.
//!
//! For each function, in order:
//! 1. [`weights`] restores recorded branch weights, corrects loop exits, and reads frequencies; where no superblock is
//!    formed, the weights are put back;
//! 2. [`evidence`] collects recorded paths and facts about the function's blocks, and asks for a decision;
//! 3. [`apply`] duplicates the blocks and prevents code generation from merging them again;
//! 4. [`verify`] checks the result, on request;
//! 5. [`explain`] reports it in remarks.

mod apply;
mod evidence;
mod explain;
mod verify;
mod weights;

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ir::frequencies::Frequencies;
use crate::ir::{self, FunctionIr, ModuleFacts};
use crate::optimisation::Optimisation;
use crate::settings::Settings;
use crate::transform::markers::{self, Found, Table};
use crate::use_profile::source::Source;
use crate::{ffi, remarks};
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::id::BlockIndex;
use pleach_decide::growth::growth_budget;
use pleach_decide::stale::paths::OlderPaths;
use pleach_decide::superblock::{Candidates, Formation, SuperblockOptions};
use pleach_profile::{CallCrossingPath, EstimatedPath, FunctionProfile, PathWindow};
use rustc_hash::FxHashMap;
use weights::Saved;

/// Forms superblocks in all functions of a module that have markers, and removes the markers. Returns whether anything
/// changed.
///
/// `last`: only code generation follows. Otherwise copies must not prevent inlining and vectorisation.
pub fn run(module: &Module<'_>, settings: &Settings, last: bool) -> Result<bool, PassError> {
    let table = markers::table(module);
    let Some(profile) = settings.profile.as_ref().filter(|_| !table.is_empty()) else {
        return Ok(false);
    };
    let mut facts = ModuleFacts::from_module(module);
    // All markers are removed first, because they must not be copied.
    let functions: Vec<_> = module.get_functions().filter(|f| f.count_basic_blocks() > 0).collect();
    let found: Vec<Found> = functions
        .iter()
        .map(|f| markers::take(f.as_value_ref(), &table))
        .collect();
    markers::remove_table(module);
    let functions: Vec<FunctionIr<'_>> = functions.into_iter().map(|f| ir::read(f, &mut facts)).collect();
    let source = Source::open(profile, settings.anchor, &functions)?;
    let size: u32 = functions
        .iter()
        .flat_map(|f| &f.cfg.blocks)
        .map(|b| b.instructions)
        .sum();
    let budget = match (settings.superblocks_aggressive, source.support()?.superblocks()) {
        (true, _) => size,
        (false, true) => growth_budget(size),
        // Too little evidence for duplication.
        (false, false) => return Ok(true),
    };

    let mut former = Former {
        decisions: Decisions::open(module, settings, source.summary().total_count)?,
        facts,
        table,
        total: source.summary().total_count as f64,
        source,
        profiles: FxHashMap::default(),
        early: !last,
        aggressive: settings.superblocks_aggressive,
        verify: settings.verify,
        budget,
        options: options(settings),
        remarks: remarks::are_enabled(module.as_mut_ptr()),
    };
    let (mut superblocks, mut changed, mut copied) = (0, 0, 0);
    for (function, found) in functions.iter().zip(&found) {
        if let Some(formation) = former.form_in(function, found)? {
            superblocks += formation.superblocks.len();
            changed += 1;
            copied += formation.copied;
        }
    }
    if settings.summary {
        let grown = f64::from(copied) / f64::from(size.max(1)) * 100.0;
        remarks::print(&format!(
            "pleach: {}: {superblocks} superblocks in {changed} functions, {copied} instructions copied (+{grown:.1} %)",
            former.facts.source_file
        ));
    }
    Ok(true)
}

fn options(settings: &Settings) -> SuperblockOptions {
    let mut options = if settings.superblocks_aggressive {
        SuperblockOptions::aggressive()
    } else {
        SuperblockOptions::default()
    };
    if let Some(min_gain) = settings.superblock_min_gain {
        options.min_gain = min_gain;
    }
    if let Some(min_gain) = settings.superblock_min_function_gain {
        options.min_function_gain = min_gain;
    }
    options
}

/// What was recorded of a function, by the blocks of its graph at the anchor.
struct Recorded {
    /// Executions of each block; `None`, or beyond the end, where they are unknown.
    counts: Vec<Option<u64>>,
    paths: Vec<EstimatedPath>,
    windows: Vec<PathWindow>,
    called: Vec<CallCrossingPath>,
}

impl Recorded {
    fn new(profile: FunctionProfile) -> Self {
        Self {
            counts: profile.blocks.into_iter().map(Some).collect(),
            paths: profile.paths,
            windows: profile.windows,
            called: profile.called,
        }
    }

    /// Callers are recorded by what they were.
    fn of_older(profile: &FunctionProfile, older: &OlderPaths) -> Self {
        Self {
            counts: older.counts(&profile.blocks),
            paths: older.paths(&profile.paths),
            windows: older.windows(&profile.windows),
            called: Vec::new(),
        }
    }

    fn count(&self, block: BlockIndex) -> Option<u64> {
        self.counts.get(block.index()).copied().flatten()
    }
}

/// Forms a module's superblocks.
struct Former {
    facts: ModuleFacts,
    table: Table,
    source: Source,
    /// Profiles of marked functions, by key.
    profiles: FxHashMap<u64, Option<Recorded>>,
    /// Executions of all blocks of the program.
    total: f64,
    /// Other IR passes follow.
    early: bool,
    aggressive: bool,
    verify: bool,
    /// Instructions that may still be added to the module.
    budget: u32,
    options: SuperblockOptions,
    remarks: bool,
    decisions: Decisions,
}

impl Former {
    /// Forms the superblocks of a function; `None` if there are none.
    fn form_in(&mut self, function: &FunctionIr<'_>, found: &Found) -> Result<Option<Formation>, PassError> {
        let value = function.value.as_value_ref();
        // SAFETY: the function belongs to the module.
        if found.keys.is_empty() || unsafe { !ffi::pleach_may_duplicate(value, self.aggressive) } {
            return Ok(None);
        }
        let Some(before) = Frequencies::from_weights(function) else {
            return Ok(None);
        };
        let before_restoration = Saved::from_function(function);
        let known = self.restore_branch_weights(function, found, &before.probabilities)?;
        self.scale_loop_exits(function, found, &known)?;
        let Some(mut frequencies) = Frequencies::from_weights(function) else {
            before_restoration.put_back();
            return Ok(None);
        };
        weights::floor_edge_probabilities(function, &mut frequencies);
        self.clamp_counts(found, &mut frequencies.counts)?;
        let formation = self.chosen(function, found, &frequencies)?;
        let formed = !formation.superblocks.is_empty();
        if formed {
            self.budget -= formation.copied;
            self.apply(function, &formation, &frequencies)?;
        } else {
            before_restoration.put_back();
        }
        if self.verify {
            verify::well_formed(function)?;
        }
        if self.remarks {
            explain::explain(function, found, &formation, self.total);
        }
        Ok(Some(formation).filter(|_| formed))
    }

    /// Duplicates the blocks of a function as decided.
    fn apply(
        &mut self,
        function: &FunctionIr<'_>,
        formation: &Formation,
        frequencies: &Frequencies,
    ) -> Result<(), PassError> {
        apply::duplicate_blocks(function, &formation.graph, &frequencies.probabilities)?;
        if self.verify {
            verify::flow(function, &mut self.facts, &formation.graph, frequencies)?;
        }
        if !self.early {
            let min_executions = self.options.min_gain * self.total;
            apply::prevent_tail_merge(function, &formation.graph, &frequencies.counts, min_executions);
        }
        // SAFETY: the function belongs to the module.
        unsafe { ffi::pleach_remove_dead_blocks(function.value.as_value_ref()) };
        Ok(())
    }

    /// The superblocks of a function, or those of them that `-pleach-only` names.
    fn chosen(
        &mut self,
        function: &FunctionIr<'_>,
        found: &Found,
        frequencies: &Frequencies,
    ) -> Result<Formation, PassError> {
        let all = self.decide(function, found, frequencies, Candidates::All)?;
        let mut taken = Vec::new();
        for superblock in &all.superblocks {
            if self
                .decisions
                .take(Optimisation::Superblock, &function.cfg.name, Some(superblock.gain))?
            {
                taken.push((superblock.from, superblock.trace[0]));
            }
        }
        match taken[..] {
            _ if taken.len() == all.superblocks.len() => Ok(all),
            [] => self.decide(function, found, frequencies, Candidates::None),
            [(from, to), ..] => self.decide(function, found, frequencies, Candidates::Edge { from, to }),
        }
    }

    /// What was recorded of the function with this key in the table.
    fn recorded(&mut self, key: u64) -> Result<Option<&Recorded>, PassError> {
        if !self.profiles.contains_key(&key) {
            let marked = &self.table[&key];
            let found = match &marked.older {
                None => self.source.recall(marked.id, marked.cfg_hash)?.map(Recorded::new),
                Some(older) => {
                    let profile = self.source.recall(older.id, older.cfg_hash)?;
                    profile.map(|profile| Recorded::of_older(&profile, older))
                }
            };
            self.profiles.insert(key, found);
        }
        Ok(self.profiles[&key].as_ref())
    }
}
