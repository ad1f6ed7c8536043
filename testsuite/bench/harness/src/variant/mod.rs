//! Variants: how a workload's sources become a binary.
//!
//! Some need nothing but flags; others build an instrumented or annotated binary first, run it on the training input
//! and build again with the profile. The result is always a [`Binary`], so that measuring does not depend on the
//! variant.

mod bolt;
mod exact;
mod pleach_use;
mod recording;
mod sample_pgo;

pub use bolt::{Bolt, BoltData};
pub use pleach_use::{PleachUse, random_order};
pub use recording::Recording;
pub use sample_pgo::{SamplePgo, SampleProfile};

use crate::bench::Bench;
use crate::build::{Binary, BuildConfig};
use crate::pleach_command::Pleach;
use crate::run::Invocation;
use crate::workload::Workload;
use anyhow::{Context, Result};
use pleach_ball_larus::Mode;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The level that all variants share.
pub const BASE_FLAGS: [&str; 1] = ["-O2"];

const NO_PREINLINE: [&str; 5] = [
    "-fprofile-generate",
    "-Xclang",
    "-mllvm",
    "-Xclang",
    "-disable-preinline",
];

/// How a workload is built.
#[derive(Clone, PartialEq, Debug)]
pub enum Variant {
    /// Plain `-O2`.
    O2,
    /// `-O2` and more flags, nothing trained.
    Flags {
        /// Short name.
        label: String,
        /// Flags of every compilation and of the link.
        cflags: Vec<String>,
        /// Flags of the link alone.
        ldflags: Vec<String>,
    },
    /// `-O2` with clang's own pseudo-probes, the peer of annotating.
    ClangProbes,
    /// `-O2` instrumented for IR-level profiles.
    IrPgoInstrumented,
    /// `-O2` guided by exact IR-level counts of the training input.
    IrPgo,
    /// The same, and then by counts of that build, which distinguish inlined copies.
    CsIrPgo,
    /// `-O2` instrumented to count paths or edges exactly.
    Counted(Pleach, Mode),
    /// `-O2` annotated: normal speed is the aim.
    Annotated(Pleach),
    /// `-O2` guided by what `pleach record` sampled on the training input.
    PleachUse(PleachUse),
    /// `-O2` guided by a sample profile of clang's own, from what `pleach record` sampled on the training input.
    SamplePgo(SamplePgo),
    /// Another variant, optimised by BOLT after linking.
    Bolt(Bolt),
}

impl Variant {
    /// [`Variant::IrPgoInstrumented`] without the inlining that clang does before it instruments, so that the functions
    /// that the early anchor sees are counted.
    pub fn instrumented_without_preinlining() -> Self {
        Self::Flags {
            label: format!("{}-no-preinline", Self::IrPgoInstrumented.label()),
            cflags: own(&NO_PREINLINE),
            ldflags: Vec::new(),
        }
    }

    /// `-O2` instrumented for source-based coverage (`llvm-cov`), the peer of coverage by breakpoints.
    pub fn source_coverage() -> Self {
        Self::Flags {
            label: "source-coverage".to_owned(),
            cflags: own(&["-fprofile-instr-generate", "-fcoverage-mapping"]),
            ldflags: Vec::new(),
        }
    }

    /// [`Variant::instrumented_without_preinlining`], with every function's first counter counting its calls.
    pub fn counting_calls() -> Self {
        let entries = ["-Xclang", "-mllvm", "-Xclang", "-pgo-instrument-entry"];
        Self::Flags {
            label: "ir-pgo-calls".to_owned(),
            cflags: own(&[&NO_PREINLINE[..], &entries].concat()),
            ldflags: Vec::new(),
        }
    }

    /// A short name for tables and folders.
    pub fn label(&self) -> String {
        match self {
            Self::O2 => "O2".to_owned(),
            Self::Flags { label, .. } => label.clone(),
            Self::ClangProbes => "clang-probes".to_owned(),
            Self::IrPgoInstrumented => "ir-pgo-instrumented".to_owned(),
            Self::IrPgo => "ir-pgo".to_owned(),
            Self::CsIrPgo => "cs-ir-pgo".to_owned(),
            Self::Counted(_, Mode::Paths) => "paths".to_owned(),
            Self::Counted(_, Mode::Edges) => "edges".to_owned(),
            Self::Annotated(_) => "annotated".to_owned(),
            Self::PleachUse(using) => using.label.clone(),
            Self::SamplePgo(peer) => peer.label().to_owned(),
            Self::Bolt(bolt) => bolt.label(),
        }
    }

    /// Whether training samples a running program: nothing else may run then.
    pub fn samples(&self) -> bool {
        match self {
            Self::PleachUse(_) | Self::SamplePgo(_) => true,
            Self::Bolt(bolt) => bolt.samples(),
            _ => false,
        }
    }

    /// Builds the workload, after training where the variant has any.
    pub fn produce(&self, bench: &Bench, workload: &Workload) -> Result<Binary> {
        let produced = match self {
            Self::Bolt(bolt) => bolt.produce(bench, workload),
            _ => self
                .config(bench, workload)
                .and_then(|config| bench.build(workload, &config)),
        };
        produced.with_context(|| format!("{} as '{}'", workload.name, self.label()))
    }

    /// How the workload is compiled and linked, after training where the variant has any.
    pub fn config(&self, bench: &Bench, workload: &Workload) -> Result<BuildConfig> {
        let mut config = bench.config(&self.label(), &BASE_FLAGS)?;
        config.cflags.extend(match self {
            Self::O2 => Vec::new(),
            Self::Flags { cflags, ldflags, .. } => {
                config.ldflags.clone_from(ldflags);
                cflags.clone()
            }
            Self::ClangProbes => own(&sample_pgo::PROBES),
            Self::IrPgoInstrumented => own(&["-fprofile-generate"]),
            Self::IrPgo => exact::ir_pgo_flags(bench, workload)?,
            Self::CsIrPgo => exact::cs_ir_pgo_flags(bench, workload)?,
            Self::Counted(pleach, Mode::Paths) => pleach.flags(&["instrument"])?,
            Self::Counted(pleach, Mode::Edges) => pleach.flags(&["instrument", "--edges"])?,
            Self::Annotated(pleach) => pleach.flags(&["annotate"])?,
            Self::PleachUse(using) => {
                config.ldflags = using.link_flags();
                using.flags(bench, workload)?
            }
            Self::SamplePgo(peer) => peer.flags(bench, workload)?,
            Self::Bolt(bolt) => return bolt.base_config(bench, workload),
        });
        Ok(config)
    }

    /// The flags of [`Variant::IrPgo`] beside `-O2`, after training.
    pub fn ir_pgo_flags(bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        exact::ir_pgo_flags(bench, workload)
    }
}

/// A file name for the result of training, equal for the same binary on the same input.
fn training_key(binary: &Binary, invocation: &Invocation) -> Result<String> {
    // The build's folder has the key of everything that went into the binary in its name.
    let folder = binary
        .path
        .parent()
        .and_then(Path::file_name)
        .context("a binary has a folder")?;
    let input = xxh3_64(format!("{invocation:?}").as_bytes());
    Ok(format!("{}-{input:016x}", folder.to_string_lossy()))
}

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
