//! Applies a profile to IR. `pleach_decide::weights` makes the decisions.

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ir::frequencies::Frequencies;
use crate::ir::{FunctionIr, ModuleFacts};
use crate::ir::{attributes, metadata};
use crate::optimisation::Optimisation;
use crate::remarks::{self, Text, plural};
use crate::settings::Settings;
use crate::transform::{cold_blocks, placement};
use crate::use_profile::loops::mark_short_loops;
use crate::use_profile::path_metadata;
use crate::use_profile::recursion::CallGraph;
use crate::use_profile::source::Source;
use crate::use_profile::stale;
use crate::use_profile::unsampled;
use crate::{annotate, ffi};
use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::LLVMGetLinkage;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_decide::coldness::known_blocks;
use pleach_decide::early_inlining::inlines_only_call;
use pleach_decide::if_conversion::{function_is_worth_converting, typical_if_conversion_gain};
use pleach_decide::placement::split_cold_blocks;
use pleach_decide::stale::paths::OlderPaths;
use pleach_decide::stale::{MatchKind, Salvaged, evidence as stale_evidence};
use pleach_decide::weights::{
    FunctionTreatment, RecordingEvidence, cold_count, entry_count_from_frequency, function_treatment, hot_count,
    unpredictable_branches, unsampled_calls,
};
use pleach_profile::FunctionProfile;
use pleach_profile::file::Lookup;
use pleach_profile::summary::{HOT_CUTOFF, ProfileSummary};
use rustc_hash::FxHashMap;
use std::mem::MaybeUninit;

/// Why a function has no profile.
const STALE_PROFILE: &str =
    "its control flow changed too much since the profile was recorded: compiled without a profile";
const NO_PROFILE: &str = "not in the profile: the recorded program was built without it, or without annotations";
const OTHER_FUNCTION: &str =
    "the profile has functions of this name from other source files only: compiled without a profile";

/// The cut-off, in parts per million, whose minimum count is LLVM's threshold of coldness.
const COLD_CUTOFF: u32 = 999_999;

/// The result for a module: numbers of functions by treatment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Functions that got counts.
    pub sampled: usize,
    /// Functions that were executed never, or rarely.
    pub cold: usize,
    /// Functions without samples, placed in `.text.unlikely`.
    pub unlikely: usize,
    /// Functions without samples, where the profile is too small for a decision.
    pub unsampled: usize,
    /// Functions that changed since the profile was recorded, and got the counts of what they were.
    pub salvaged: usize,
    /// Functions whose graph changed since the profile was recorded, and which got no counts.
    pub not_matched: usize,
    /// Functions that are not in the profile.
    pub absent: usize,
    /// Indirect calls that got targets.
    pub indirect_calls: usize,
    /// Memory operations that got lengths.
    pub memory_operations: usize,
    /// Divisions that got divisors.
    pub divisions: usize,
}

impl Outcome {
    /// The line for `-pleach-summary`.
    pub fn line(&self, module: &str) -> String {
        format!(
            "pleach: {module}: profile used for {} functions ({} indirect calls, {} memory operations, {} divisions), {} cold, {} unlikely, {} not sampled, \
             {} salvaged, {} not matched, {} not in the profile",
            self.sampled,
            self.indirect_calls,
            self.memory_operations,
            self.divisions,
            self.cold,
            self.unlikely,
            self.unsampled,
            self.salvaged,
            self.not_matched,
            self.absent
        )
    }
}

/// Paths of older versions, by the function whose graph they fit now.
pub type OlderPathsOf = FxHashMap<FunctionId, OlderPaths>;

/// Applies a profile to a module.
///
/// # Errors
/// The profile cannot be read.
pub fn run(
    module: &Module<'_>,
    functions: &[FunctionIr<'_>],
    facts: &mut ModuleFacts,
    context: *mut ffi::RunContext,
    source: &Source,
    settings: &Settings,
) -> Result<(Outcome, OlderPathsOf), PassError> {
    let mut outcome = Outcome::default();
    // SAFETY: the module is alive.
    if unsafe { metadata::has_module_flag(module.as_mut_ptr(), "ProfileSummary") } {
        // The user gave clang another profile: two profiles in one module would contradict each other.
        return Ok((outcome, OlderPathsOf::default()));
    }
    let support = source.support()?;
    let is_empty = source.summary().total_count == 0 && source.path_flow() == 0.0;
    if is_empty && !support.weights() {
        // Of a program that ended at once, all is proved not to be executed: that says nothing about other runs.
        return Ok((outcome, OlderPathsOf::default()));
    }
    let evidence = source.evidence()?;
    set_summary(module, context, source.summary(), &evidence, settings.anchor);
    if !support.size() {
        cold_blocks::compile_for_speed(module);
    }
    if !support.trip_counts() {
        // SAFETY: the module is alive.
        unsafe { metadata::set_max_module_flag(module.as_mut_ptr(), FEW_BURSTS_FLAG, 1) };
    }
    let probed = settings.annotate || annotate::is_annotated(module);
    let mut decisions = Decisions::open(module, settings, source.summary().total_count)?;
    let salvaged = match source.file().filter(|_| settings.salvage) {
        Some(file) => {
            let values = module.get_functions();
            let names = values.map(|function| facts.guid(function.as_value_ref())).collect();
            stale::find(file, functions, &names)?
        }
        None => stale::Found::default(),
    };
    if settings.placement {
        // Addresses of probes are encoded as differences, which assemblers cannot compute across sections.
        let splits = !probed && !settings.annotate_late && split_cold_blocks(&support, source.samples());
        placement::request(module, splits && decisions.take(Optimisation::Splitting, "", None)?);
    }
    path_metadata::describe_profile(module, settings.anchor, source.path_flow());
    let mut applier = Applier {
        module,
        anchor: settings.anchor,
        probed,
        context,
        source,
        evidence,
        if_conversion: settings.if_conversion && support.if_conversion(),
        remarks: remarks::are_enabled(module.as_mut_ptr()),
        value_profile_ids: FxHashMap::default(),
        decisions,
        salvaged,
        call_graph: CallGraph::new(functions),
        cfgs: functions
            .iter()
            .map(|function| (function.cfg.id.guid, &function.cfg))
            .collect(),
    };
    applier.name_call_targets(facts);
    for function in functions {
        applier.function(function, &mut outcome)?;
    }
    if settings.anchor == Anchor::Early {
        unsampled::mark_only_callees(module);
        if settings.keep_recursive_calls {
            applier.keep_recursive_calls(functions)?;
        }
    }
    let salvaged = applier.salvaged.into_iter();
    let older = salvaged.filter_map(|(id, salvaged)| Some((id, salvaged.older_paths?)));
    Ok((outcome, older.collect()))
}

/// Attribute of functions that were not executed, until the profile is revealed to the inliner
/// (`PleachNotExecutedAttribute` in `cpp/pleach.h`).
const NOT_EXECUTED: &str = "pleach-not-executed";

/// Attribute of hot functions until the profile is revealed to the inliner (`PleachHotAttribute` in `cpp/pleach.h`).
const HOT_ATTRIBUTE: &str = "pleach-hot";
/// Attribute of calls that are inlined because they are a function's only ones (`PleachOnlyCallAttribute`).
const ONLY_CALL_ATTRIBUTE: &str = "pleach-only-call";

/// Marks a function cold for the inliner and for code generation, as clang does with its own profiles.
///
/// # Safety
/// The function must be alive.
unsafe fn mark_cold(function: LLVMValueRef) {
    // SAFETY: as the caller promises.
    unsafe {
        if !attributes::has(function, "hot") {
            attributes::add(function, "cold");
        }
    }
}

/// Sets the weights of branches.
///
/// # Safety
/// The function must be alive.
pub unsafe fn set_weights(function: &FunctionIr<'_>, branch_weights: &[(BlockIndex, Vec<u64>)]) {
    for (block, weights) in branch_weights {
        // SAFETY: as the caller promises.
        unsafe { unsampled::set_weights(function.terminators[block.index()], weights) };
    }
}

/// Makes both ways of branches equally likely that choose a minimum or maximum. Such a branch becomes one instruction, and
/// reductions by it are vectorised, unless it is predictable by its weights.
///
/// # Safety
/// The function must be alive.
unsafe fn level_extremes(function: &FunctionIr<'_>, branch_weights: &mut [(BlockIndex, Vec<u64>)]) {
    for (block, weights) in branch_weights {
        // SAFETY: as the caller promises.
        let chooses_extreme = unsafe { ffi::pleach_chooses_extreme(function.terminators[block.index()]) };
        if let ([first, second], true) = (&mut weights[..], chooses_extreme) {
            let half = (*first / 2 + *second / 2).max(1);
            (*first, *second) = (half, half);
        }
    }
}

/// Tells the host which counts are hot and which are cold.
pub fn set_summary(
    module: &Module<'_>,
    context: *mut ffi::RunContext,
    summary: &ProfileSummary,
    evidence: &RecordingEvidence,
    anchor: Anchor,
) {
    let cold = cold_count(evidence);
    let entries: Vec<_> = summary
        .cutoffs
        .iter()
        .map(|c| {
            let min_count = match c.ppm {
                COLD_CUTOFF => c.min_count.min(cold),
                HOT_CUTOFF => hot_count(c.min_count, evidence.hot_instance_count, evidence.scale),
                _ => c.min_count,
            };
            ffi::SummaryEntry {
                cutoff: c.ppm,
                min_count,
                num_counts: c.num_counts,
            }
        })
        .collect();
    let summary = ffi::Summary {
        total_count: summary.total_count,
        max_count: summary.max_count,
        max_internal_count: summary.max_internal_count,
        max_function_count: summary.max_function_count,
        num_counts: u32::try_from(summary.num_counts).unwrap_or(u32::MAX),
        num_functions: u32::try_from(summary.num_functions).unwrap_or(u32::MAX),
        entries: entries.as_ptr(),
        num_entries: entries.len(),
    };
    // SAFETY: module and context are those of this run; the shim copies the summary.
    unsafe { ffi::pleach_set_profile_summary(module.as_mut_ptr(), context, &summary, anchor == Anchor::Late) };
}

/// The remark on a profile that was matched to another graph.
fn describe(salvaged: &Salvaged, blocks: usize) -> String {
    let (matched, percent) = (salvaged.matched_blocks, 100.0 * salvaged.matched_flow);
    let of = plural(blocks, "block", "blocks");
    let fit = format!("{matched} of {blocks} {of} matched, with {percent:.0} % of the recorded executions");
    match &salvaged.match_kind {
        MatchKind::ChangedGraph => format!("; of an older version: {fit}"),
        MatchKind::OtherModule => "; profile of the copy in another module".into(),
        MatchKind::Renamed(name) => format!("; recorded as {name}: {fit}"),
        MatchKind::Unsampled => "; of an older version".into(),
        MatchKind::SameNameUnsampled => "; functions of this name in other files have no samples".into(),
    }
}

/// The module flag of `PleachFewBurstsFlag`.
const FEW_BURSTS_FLAG: &str = "pleach.few-bursts";

/// A branch that the profile calls unpredictable.
struct UnpredictableBranch {
    terminator: LLVMValueRef,
    /// Lower bound of the misprediction rate.
    rate: f64,
    /// Issue slots that converting it saves.
    slots: f64,
}

/// Whether several modules may have a copy of a function, as of inline functions.
fn may_be_elsewhere(function: LLVMValueRef) -> bool {
    // SAFETY: callers pass a function of the module being compiled.
    let linkage = unsafe { LLVMGetLinkage(function) };
    !matches!(
        linkage,
        LLVMLinkage::LLVMExternalLinkage | LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage
    )
}

pub(super) struct Applier<'a, 'ctx> {
    module: &'a Module<'ctx>,
    anchor: Anchor,
    /// The program will be recorded: its branches are not if-converted, so that the recording can measure them.
    probed: bool,
    context: *mut ffi::RunContext,
    source: &'a Source,
    evidence: RecordingEvidence,
    /// Branches may be if-converted later.
    if_conversion: bool,
    remarks: bool,
    /// Names of this module's local functions in LLVM's value profiles: they differ from their GUIDs.
    value_profile_ids: FxHashMap<FunctionGuid, u64>,
    pub(super) decisions: Decisions,
    /// Profiles of older versions, of functions that the profile does not have as they are.
    salvaged: stale::Found,
    /// The calls of functions that were sampled.
    call_graph: CallGraph,
    /// The graphs of this module's functions.
    cfgs: FxHashMap<FunctionGuid, &'a Cfg>,
}

impl Applier<'_, '_> {
    fn name_call_targets(&mut self, facts: &mut ModuleFacts) {
        for function in self.module.get_functions() {
            let value = function.as_value_ref();
            // SAFETY: the function belongs to the module.
            let id = unsafe { ffi::pleach_value_profile_id(value) };
            let guid = facts.guid(value);
            if id != guid.0 {
                self.value_profile_ids.insert(guid, id);
            }
        }
    }

    fn function(&mut self, function: &FunctionIr<'_>, outcome: &mut Outcome) -> Result<(), PassError> {
        let value = function.value.as_value_ref();
        let (mut how, mut evidence) = (String::new(), self.evidence);
        let profile = match (self.source.lookup(&function.cfg)?, self.salvaged.get(&function.cfg.id)) {
            (Lookup::Found(profile), _) => profile,
            (_, Some(salvaged)) => {
                outcome.salvaged += usize::from(salvaged.match_kind.has_samples());
                if self.remarks {
                    how = describe(salvaged, function.cfg.blocks.len());
                }
                evidence = stale_evidence(&evidence);
                salvaged.profile.clone()
            }
            (found, None) => {
                let is_known = matches!(found, Lookup::Stale { .. });
                outcome.not_matched += usize::from(is_known);
                outcome.absent += usize::from(!is_known);
                if self.remarks {
                    let has_namesake = self.source.has_only_namesakes(&function.cfg, may_be_elsewhere(value));
                    let (name, text) = match (is_known, has_namesake, annotate::why_not(&function.cfg)) {
                        (false, _, Some(too_large)) => ("FunctionTooLarge", too_large),
                        (_, true, _) => ("OtherFunction", OTHER_FUNCTION.to_owned()),
                        (true, false, _) => ("StaleProfile", STALE_PROFILE.to_owned()),
                        (false, false, None) => ("NoProfile", NO_PROFILE.to_owned()),
                    };
                    remarks::emit(value, false, name, text);
                }
                return Ok(());
            }
        };
        let known = if self.remarks {
            known_blocks(&function.cfg, &profile).map_or_else(String::new, |blocks| format!("; {blocks}"))
        } else {
            String::new()
        };
        let listed = path_metadata::list_paths(self.module, value, &profile.paths, self.source.path_flow());
        if profile.samples == 0 && !evidence.exact {
            // SAFETY: the function belongs to the module.
            unsafe { unsampled::mark_function(value) };
        }
        match function_treatment(&function.cfg, &profile, &evidence) {
            FunctionTreatment::Sampled {
                entry_count,
                entry_is_sampled,
                max_count,
                mut branch_weights,
            } => {
                outcome.sampled += 1;
                if self.anchor == Anchor::Early {
                    // SAFETY: the terminators belong to the module.
                    unsafe { level_extremes(function, &mut branch_weights) };
                }
                // SAFETY: the function and its terminators belong to the module.
                unsafe {
                    metadata::set_entry_count(value, entry_count);
                    set_weights(function, &branch_weights);
                    ffi::pleach_set_irreducible_headers(
                        self.module.as_mut_ptr(),
                        value,
                        profile.blocks.as_ptr(),
                        profile.blocks.len(),
                    );
                }
                let entry_count = if entry_is_sampled {
                    entry_count
                } else {
                    self.balance_entry(function, entry_count, max_count)
                };
                let unpredictable = self.mark_unpredictable(function, &profile)?;
                outcome.indirect_calls += self.call_targets(function, &profile)?;
                outcome.memory_operations += self.memory_lengths(function, &profile)?;
                outcome.divisions += self.divisors(function, &profile)?;
                self.switches(function, &profile);
                mark_short_loops(function, &profile, &mut self.decisions)?;
                for call in unsampled_calls(&function.cfg, &profile, &evidence) {
                    self.inline_only_call(function, call)?;
                }
                let is_hot = self.mark(function, entry_count, max_count)?;
                self.call_graph.add(function, &profile, is_hot);
                self.remark(value, true, "ProfileUsed", || {
                    let text = format!(
                        "profile used: entry count {entry_count}, maximum block count {max_count} (scaled estimates), {} {} weighted, \
                         {unpredictable} unpredictable, {listed} {} listed, from {} sampled block {}",
                        branch_weights.len(),
                        plural(branch_weights.len(), "branch", "branches"),
                        plural(listed, "path", "paths"),
                        profile.samples,
                        plural(profile.samples, "execution", "executions"),
                    );
                    Text::from(text).value("Origin", &how).text(known)
                });
            }
            FunctionTreatment::Cold { is_proved }
                if self.decisions.take(Optimisation::Size, &function.cfg.name, None)? =>
            {
                outcome.cold += 1;
                // SAFETY: the function belongs to the module.
                unsafe {
                    metadata::set_entry_count(value, 0);
                    mark_cold(value);
                }
                self.remark(value, true, "Cold", || {
                    let what = if is_proved { "not executed" } else { "no samples" };
                    format!("{what}: optimised for size{how}{known}").into()
                });
            }
            FunctionTreatment::Rare { branch_weights }
                if self.decisions.take(Optimisation::Size, &function.cfg.name, None)? =>
            {
                outcome.cold += 1;
                // SAFETY: the function and its terminators belong to the module.
                unsafe {
                    metadata::set_entry_count(value, 1);
                    set_weights(function, &branch_weights);
                }
                self.remark(value, true, "Rare", || {
                    format!("executed rarely: less is inlined into it{how}{known}").into()
                });
            }
            FunctionTreatment::Unlikely { is_proved }
                if self.decisions.take(Optimisation::Unlikely, &function.cfg.name, None)? =>
            {
                outcome.unlikely += 1;
                // SAFETY: the function belongs to the module.
                unsafe {
                    metadata::set_section_prefix(value, "unlikely");
                    if is_proved {
                        attributes::add_own(value, NOT_EXECUTED);
                    }
                }
                self.remark(value, true, "Unlikely", || {
                    let what = if is_proved { "not executed" } else { "no samples" };
                    format!("{what}: placed in .text.unlikely{how}{known}").into()
                });
            }
            FunctionTreatment::Cold { .. }
            | FunctionTreatment::Rare { .. }
            | FunctionTreatment::Unlikely { .. }
            | FunctionTreatment::Unknown => {
                outcome.unsampled += 1;
                self.remark(value, false, "NotSampled", || {
                    format!("no samples, and not known to be cold: compiled without a profile{how}{known}").into()
                });
            }
        }
        Ok(())
    }

    /// Sets and returns the entry count of a function without sampled calls, derived from its frequencies.
    fn balance_entry(&self, function: &FunctionIr<'_>, entry_count: u64, max_count: u64) -> u64 {
        let Some(known) = Frequencies::from_weights(function) else {
            return entry_count;
        };
        let entry_count =
            entry_count_from_frequency(entry_count, max_count, known.counts.iter().copied().fold(0.0, f64::max));
        // SAFETY: the function belongs to the module.
        unsafe { metadata::set_entry_count(function.value.as_value_ref(), entry_count) };
        entry_count
    }

    /// Sets the attributes that clang's own profiles set, in the same cases; returns whether the function is hot.
    fn mark(&mut self, function: &FunctionIr<'_>, entry_count: u64, max_count: u64) -> Result<bool, PassError> {
        let value = function.value.as_value_ref();
        // SAFETY: context and function are those of this run.
        unsafe {
            let is_hot = ffi::pleach_is_hot_count(self.context, entry_count);
            if is_hot {
                if self.decisions.take(Optimisation::HotCallee, &function.cfg.name, None)? {
                    attributes::add_own(value, HOT_ATTRIBUTE);
                }
            } else if ffi::pleach_is_cold_count(self.context, max_count) {
                mark_cold(value);
            }
            Ok(is_hot)
        }
    }

    /// Keeps rare calls from making hot functions recursive.
    fn keep_recursive_calls(&mut self, functions: &[FunctionIr<'_>]) -> Result<(), PassError> {
        for kept in self.call_graph.keep_calls(functions, &mut self.decisions)? {
            // SAFETY: the call belongs to the module.
            unsafe { attributes::remove_own_from_call(kept.call, ONLY_CALL_ATTRIBUTE) };
            let caller = functions[kept.caller].value.as_value_ref();
            self.remark(caller, true, "CallStays", || {
                "a rare call that leads back to this function is not inlined, so that this function can be inlined"
                    .to_owned()
                    .into()
            });
        }
        Ok(())
    }

    /// Requests inlining of an unsampled call if it is the only one of a local function, as LLVM would without a
    /// profile.
    fn inline_only_call(&self, caller: &FunctionIr<'_>, index: usize) -> Result<(), PassError> {
        let (call, mut facts) = (caller.calls[index], MaybeUninit::uninit());
        // SAFETY: the call belongs to the module; the shim writes the facts if it returns true.
        let facts: ffi::OnlyCall = unsafe {
            if !ffi::pleach_only_call(self.context, call, facts.as_mut_ptr()) {
                return Ok(());
            }
            facts.assume_init()
        };
        let callee = match caller.cfg.calls[index].callee {
            Callee::Direct(guid) => self.cfgs.get(&guid).map(|cfg| self.profile(cfg)).transpose()?.flatten(),
            _ => None,
        };
        if inlines_only_call(
            facts.instructions,
            facts.stack_bytes,
            callee.as_ref(),
            self.evidence.scale,
        ) {
            // SAFETY: the call belongs to the module.
            unsafe { attributes::add_own_to_call(call, ONLY_CALL_ATTRIBUTE) };
        }
        Ok(())
    }

    /// The profile of a function, if there is any.
    fn profile(&self, cfg: &Cfg) -> Result<Option<FunctionProfile>, PassError> {
        Ok(match self.source.lookup(cfg)? {
            Lookup::Found(profile) => Some(profile),
            _ => self.salvaged.get(&cfg.id).map(|salvaged| salvaged.profile.clone()),
        })
    }

    /// Marks unpredictable branches for if-conversion; returns how many.
    fn mark_unpredictable(&mut self, function: &FunctionIr<'_>, profile: &FunctionProfile) -> Result<usize, PassError> {
        if self.probed || !self.if_conversion {
            return Ok(0);
        }
        let branches: Vec<UnpredictableBranch> = unpredictable_branches(profile)
            .filter_map(|(block, rate)| {
                Some(UnpredictableBranch {
                    terminator: *function.terminators.get(block.index())?,
                    rate,
                    slots: profile.blocks[block.index()] as f64 * typical_if_conversion_gain(rate),
                })
            })
            .collect();
        let executions = self.source.summary().total_count as f64;
        if !function_is_worth_converting(branches.iter().map(|b| b.slots).sum(), executions) {
            return Ok(0);
        }
        let mut marked = 0;
        for UnpredictableBranch {
            terminator,
            rate,
            slots,
        } in branches
        {
            if self
                .decisions
                .take(Optimisation::IfConversion, &function.cfg.name, Some(slots))?
            {
                // SAFETY: the branch belongs to the module.
                let is_marked = unsafe { metadata::mark_unpredictable(terminator, (rate * 1000.0) as u32) };
                marked += usize::from(is_marked);
            }
        }
        Ok(marked)
    }

    fn call_targets(&mut self, function: &FunctionIr<'_>, profile: &FunctionProfile) -> Result<usize, PassError> {
        let mut set = 0;
        for site in &profile.call_targets {
            let index = site.call as usize;
            let indirect = function
                .cfg
                .calls
                .get(index)
                .is_some_and(|c| c.callee == Callee::Indirect);
            let Some(&call) = function.calls.get(index).filter(|_| indirect) else {
                continue;
            };
            if !self
                .decisions
                .take(Optimisation::CallPromotion, &function.cfg.name, None)?
            {
                continue;
            }
            let targets: Vec<(u64, u64)> = site
                .targets
                .iter()
                .map(|&(guid, count)| (self.value_profile_ids.get(&guid).copied().unwrap_or(guid.0), count))
                .collect();
            // SAFETY: the call belongs to the module.
            unsafe { metadata::set_call_targets(call, &targets) };
            set += 1;
        }
        Ok(set)
    }

    fn remark(&self, function: LLVMValueRef, passed: bool, name: &str, text: impl FnOnce() -> Text) {
        if self.remarks {
            remarks::emit(function, passed, name, text());
        }
    }
}
