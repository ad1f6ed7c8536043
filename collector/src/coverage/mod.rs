//! Coverage by one-shot breakpoints, on the recorder's side.
//!
//! 1. [`plan`]: a module's sites become the file that its processes share.
//! 2. [`requests`]: processes ask for plans; a thread makes them.
//! 3. [`states`]: what the processes noted becomes the state of each segment.

mod plan;
mod requests;
mod states;

use crate::detached::TemporaryFolder;
use crate::vector::coverage::ModuleCoverage;
use crate::vector::{BuildId, Module, ModuleId, VectorSet};
use plan::{ModulePlan, Outcome};
use pleach_wire::coverage::{Failure, MODULES_EXTENSION};
use requests::Requests;
use std::collections::BTreeSet;
use std::io::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Modules that were not observed in some process although their plans do not record it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unseen {
    /// Libraries that it may have loaded later.
    pub libraries: bool,
    /// Libraries that it loaded later, for certain: the dynamic loader could not be watched.
    pub loader_not_watched: bool,
    /// Any of its modules.
    pub modules: bool,
    /// Any of its modules, because it ran in valgrind.
    pub in_valgrind: bool,
}

/// What the end of a recording tells about its coverage.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Notes for the user.
    pub remarks: Vec<String>,
    /// Processes asked for the plans of their files, and none of these is annotated.
    pub unannotated: bool,
}

/// The plans of a recording, for all its runs.
#[derive(Debug)]
pub(crate) struct Coverage {
    folder: Arc<TemporaryFolder>,
    requests: Requests,
}

impl Coverage {
    /// Makes the folder of the plans, and the plan of `program`, so that its first process need not wait for it.
    ///
    /// # Errors
    /// A temporary file cannot be made.
    pub(crate) fn begin(program: &Path) -> Result<Self> {
        let folder = Arc::new(TemporaryFolder::new()?);
        let requests = Requests::begin(Arc::clone(&folder))?;
        if let Ok(path) = program.canonicalize()
            && let Ok(metadata) = path.metadata()
        {
            requests.make(&path, metadata.ino());
        }
        Ok(Self { folder, requests })
    }

    /// Makes the plans known to the processes of a run, whose shards are in `directory`.
    ///
    /// # Errors
    /// The link cannot be made.
    pub(crate) fn link_into(&self, directory: &Path) -> Result<()> {
        let name = pleach_wire::coverage::FOLDER.to_string_lossy();
        std::os::unix::fs::symlink(self.folder.path(), directory.join(&*name))
    }

    /// Adds what was found to the vectors. `unobserved`: signatures of modules, with the number of processes that had them
    /// without breakpoints and did not note it themselves; `end`: CPU time of the program in all processes, in
    /// nanoseconds. `in_use`: files that processes still have mapped.
    pub(crate) fn finish(
        self,
        set: &mut VectorSet,
        mut unseen: Unseen,
        unobserved: &[(u64, u64)],
        in_use: &BTreeSet<PathBuf>,
        end: u64,
    ) -> Finished {
        let mut remarks = Vec::new();
        let folder = Arc::clone(&self.folder);
        let plans = self.requests.finish();
        // The first plan is the program's, which was made before the program asked for any.
        let unannotated = plans.len() > 1 && plans.iter().all(|(_, plan)| matches!(plan.outcome, Outcome::Nothing));
        for &(signature, processes) in unobserved {
            unseen.modules |= !note_unobserved(folder.path(), signature, processes, &plans);
        }
        for plan in plans.iter().filter(|(_, plan)| in_use.contains(&plan.path)) {
            if let Some(plan) = plan.1.plan() {
                plan.head().failures[Failure::Running as usize].fetch_add(1, Relaxed);
            }
        }
        if unseen.modules {
            remarks.push(format!(
                "a process could not read its module list or the breakpoint files: blocks without hits are unknown. \
                     Raise its open-file limit, or give it access to /proc and {}",
                std::env::temp_dir().display()
            ));
        }
        if unseen.loader_not_watched {
            remarks.push(
                "libraries loaded by dlopen have no breakpoints: the dynamic loader is unknown, or the kernel does not \
                 allow a breakpoint in it"
                    .to_owned(),
            );
        }
        for (_, plan) in plans {
            remarks.extend(add_module(set, &plan, unseen, end));
        }
        Finished { remarks, unannotated }
    }
}

/// Adds what processes noted in the plans that another recorder has left in a folder. What was not hit is unknown.
/// Returns notes for the user.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn add_left(folder: &Path, set: &mut VectorSet) -> Result<Vec<String>> {
    // Nobody knows which processes had which modules, and for how long.
    let unseen = Unseen {
        modules: true,
        ..Unseen::default()
    };
    let mut remarks = Vec::new();
    for plan in ModulePlan::left_in(folder)? {
        if let Some(plan) = plan.plan() {
            plan.note_failure(Failure::Running);
        }
        remarks.extend(add_module(set, &plan, unseen, 0));
    }
    Ok(remarks)
}

/// Adds the coverage of a module, if processes had it. Returns a note for the user.
fn add_module(set: &mut VectorSet, plan: &ModulePlan, unseen: Unseen, end: u64) -> Option<String> {
    match &plan.outcome {
        Outcome::Nothing => None,
        Outcome::Refused(reason) => Some(format!("{}: no breakpoints: {reason}", plan.path.display())),
        Outcome::Ready { .. } => {
            let module = module_of(set, plan);
            let coverage = states::of_plan(plan, module, unseen, end)?;
            let remark = remark(plan, &coverage);
            set.coverage.push(coverage);
            remark
        }
    }
}

/// Records in the plans of a module set that `processes` processes ran without breakpoints. False if the set is
/// unknown.
fn note_unobserved(folder: &Path, signature: u64, processes: u64, plans: &[(u64, ModulePlan)]) -> bool {
    let extension = MODULES_EXTENSION.to_string_lossy();
    let Ok(bytes) = std::fs::read(folder.join(format!("{signature:016x}{extension}"))) else {
        return false;
    };
    let (keys, []) = bytes.as_chunks() else { return false };
    keys.iter().all(|key| {
        let key = u64::from_le_bytes(*key);
        let plan = plans.iter().find(|(other, _)| *other == key);
        let Some(plan) = plan.and_then(|(_, plan)| plan.plan()) else {
            return false;
        };
        plan.head().begun.fetch_add(processes, Relaxed);
        plan.head().failures[Failure::Budget as usize].fetch_add(processes, Relaxed);
        true
    })
}

/// The module of a plan in a set, added if it is not there.
fn module_of(set: &mut VectorSet, plan: &ModulePlan) -> ModuleId {
    let build_id = plan.build_id.clone().map(BuildId);
    let is_it = |module: &Module| module.path == plan.path && module.build_id == build_id;
    let position = set.modules.iter().position(is_it).unwrap_or_else(|| {
        set.modules.push(Module {
            path: plan.path.clone(),
            build_id,
            mappings: Vec::new(),
        });
        set.modules.len() - 1
    });
    ModuleId(position as u32)
}

fn remark(plan: &ModulePlan, coverage: &ModuleCoverage) -> Option<String> {
    let reasons: Vec<String> = coverage
        .failures
        .iter()
        .map(|(failure, count)| format!("{} (in {count} of {} processes)", failure.text(), coverage.processes))
        .collect();
    (!reasons.is_empty()).then(|| {
        format!(
            "{}: blocks without hits are unknown: {}",
            plan.path.display(),
            reasons.join("; ")
        )
    })
}
