//! The second profile: of a program that was built with a first one and recorded at the late anchor. Its counts are of
//! the code as it is after inlining, unrolling and superblocks, so code generation places that code by them.
//!
//! The first profile decided everything that comes before. The same decisions give the same code, so the graphs are
//! those that were recorded. Where they are not, the weights of the first profile remain.

use super::apply::{set_summary, set_weights};
use super::source::Source;
use crate::error::PassError;
use crate::ffi;
use crate::ir::{FunctionIr, metadata};
use crate::remarks::{self, plural};
use crate::settings::ProfileSource;
use crate::transform::placement;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::manifest::Anchor;
use pleach_decide::placement::split_cold_blocks;
use pleach_decide::weights::{FunctionTreatment, function_treatment};
use pleach_profile::file::Lookup;

/// What was done with a module's functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Functions that got counts.
    pub used: usize,
    /// Functions that were never executed, or have no samples.
    pub unsampled: usize,
    /// Functions whose code is not the recorded one.
    pub differ: usize,
}

impl Outcome {
    /// The line for `-pleach-summary`.
    pub fn line(&self, module: &str) -> String {
        format!(
            "pleach: {module}: second profile used for {} functions; {} have no samples; {} differ from the recorded code",
            self.used, self.unsampled, self.differ
        )
    }
}

/// Applies the second profile. `first`: the first one, which was applied at the early anchor.
///
/// # Errors
/// A profile cannot be read, or the second one is not of the late anchor.
pub fn run(
    module: &Module<'_>,
    functions: &[FunctionIr<'_>],
    context: *mut ffi::RunContext,
    first: &ProfileSource,
    second: &ProfileSource,
    splits: bool,
) -> Result<Outcome, PassError> {
    let mut outcome = Outcome::default();
    if !placement::is_requested(module) {
        // clang has a profile of its own, or the user wants no placement.
        return Ok(outcome);
    }
    let source = Source::open(second, Anchor::Late, functions)?;
    let evidence = source.evidence()?;
    placement::request(
        module,
        splits && split_cold_blocks(&source.support()?, source.samples()),
    );
    let scale = scale(&source, &Source::open(first, Anchor::Early, &[])?);
    set_summary(module, context, source.summary(), &evidence, Anchor::Late);
    let remark = |value, passed, name: &str, text: &dyn Fn() -> String| {
        if remarks::are_enabled(module.as_mut_ptr()) {
            remarks::emit(value, passed, name, text());
        }
    };
    for function in functions {
        let value = function.value.as_value_ref();
        let Lookup::Found(profile) = source.lookup(&function.cfg)? else {
            outcome.differ += 1;
            // SAFETY: the function belongs to the module.
            unsafe {
                if let Some(count) = metadata::entry_count(value).filter(|&count| count > 0) {
                    metadata::set_entry_count(value, ((count as f64 * scale) as u64).max(1));
                }
            }
            remark(value, false, "OtherCode", &|| {
                "its code is not the recorded one: placed by the first profile".into()
            });
            continue;
        };
        // SAFETY: the function and its terminators belong to the module.
        unsafe {
            match function_treatment(&function.cfg, &profile, &evidence) {
                FunctionTreatment::Sampled {
                    entry_count,
                    branch_weights,
                    ..
                } => {
                    outcome.used += 1;
                    metadata::set_entry_count(value, entry_count);
                    set_weights(function, &branch_weights);
                    ffi::pleach_set_irreducible_headers(
                        module.as_mut_ptr(),
                        value,
                        profile.blocks.as_ptr(),
                        profile.blocks.len(),
                    );
                    remark(value, true, "SecondProfileUsed", &|| {
                        format!(
                            "second profile used: entry count {entry_count} (scaled), {} {} weighted, from {} sampled block {}",
                            branch_weights.len(),
                            plural(branch_weights.len(), "branch", "branches"),
                            profile.samples,
                            plural(profile.samples, "execution", "executions"),
                        )
                    });
                }
                FunctionTreatment::Rare { branch_weights } => {
                    outcome.used += 1;
                    metadata::set_entry_count(value, 1);
                    set_weights(function, &branch_weights);
                }
                FunctionTreatment::Cold { .. } | FunctionTreatment::Unlikely { .. } => {
                    outcome.unsampled += 1;
                    metadata::set_section_prefix(value, "unlikely");
                }
                FunctionTreatment::Unknown => outcome.unsampled += 1,
            }
        }
    }
    Ok(outcome)
}

/// What a count of the first profile is in the unit of the second.
fn scale(second: &Source, first: &Source) -> f64 {
    match first.summary().total_count {
        0 => 1.0,
        total => second.summary().total_count as f64 / total as f64,
    }
}
