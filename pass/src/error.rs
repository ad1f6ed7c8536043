//! Errors of the plugin. Each becomes a diagnostic of the host, whose exit status is then 1.

use pleach_annotate::manifest::Anchor;
use pleach_profile::error::ProfileError;
use std::path::PathBuf;

/// Why a module cannot be compiled with the given options.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// `-pleach-anchor` has an unknown value.
    #[error("pleach: unknown anchor '{0}': expected 'early' or 'late'")]
    UnknownAnchor(String),
    /// `PLEACH_OPTIONS` has a word that is no option.
    #[error(
        "pleach: PLEACH_OPTIONS: '{0}' is not an option of pleach, or has a wrong value; an example is -pleach-superblocks=0"
    )]
    UnknownOption(String),
    /// `-pleach-instrument` has an unknown value.
    #[error("pleach: -pleach-instrument={0}: expected 'paths' or 'edges'")]
    UnknownCounting(String),
    /// `-pleach-iterations` is out of range.
    #[error("pleach: -pleach-iterations={0}: expected 1 to 4")]
    Iterations(u32),
    /// `-pleach-only` has an unknown value.
    #[error(
        "pleach: unknown decision '{0}': expected 'none' or OPTIMISATION[:FUNCTION[:NUMBER]], as -pleach-decisions=FILE lists them"
    )]
    UnknownDecision(String),
    /// The list of decisions cannot be written.
    #[error("pleach: cannot write the decisions to {}: {}", .0.display(), .1)]
    Decisions(PathBuf, std::io::Error),
    /// A pass that needs a profile runs alone and was given none.
    #[error("pleach: this pass needs a profile: give -pleach-use or -pleach-random")]
    NoProfile,
    /// The object format has no sections of the kind that pleach needs.
    #[error("pleach: only ELF targets are supported")]
    NotElf,
    /// GNU as does not know `.pseudoprobe`.
    #[error("pleach: only LLVM's own assembler knows what annotated code needs: compile without -fno-integrated-as")]
    OtherAssembler,
    /// There is no counting runtime for the architecture.
    #[error("pleach: exact counting needs a target of x86-64 or AArch64")]
    NoRuntime,
    /// A profile cannot be read.
    #[error("pleach: {0}")]
    Profile(#[from] ProfileError),
    /// A profile was recorded at the other anchor.
    #[error("pleach: {path}: recorded at the {} anchor, but used at the {} anchor: give both builds the same --anchor; the profile of a build with `annotate --after FIRST` is a second one, for `pleach flags use FIRST SECOND`", .recorded.name(), .used.name(), path = .path.display())]
    Anchor {
        /// The profile.
        path: PathBuf,
        /// The anchor of the recorded program.
        recorded: Anchor,
        /// The anchor of this build.
        used: Anchor,
    },
    /// A second profile, or annotation for one, without a first profile at the early anchor.
    #[error(
        "pleach: -pleach-use-second and -pleach-annotate-late require -pleach-use with a profile of the early anchor"
    )]
    SecondAlone,
    /// With link-time optimisation, the code is not final before the link, which does not know the options.
    #[error(
        "pleach: a second profile cannot be used with -flto: compile without -flto, or with the first profile only"
    )]
    SecondWithLto,
    /// Blocks cannot have two identifiers.
    #[error("pleach: -pleach-annotate and -pleach-annotate-late exclude each other")]
    AnnotatedTwice,
    /// A record has the graph's hash but not its shape.
    #[error("pleach: the profile of '{function}' is damaged: {what}")]
    Shape {
        /// The function's linkage name.
        function: String,
        /// The part that does not match.
        what: &'static str,
    },
    /// The counting runtime cannot be linked with the module.
    #[error("{0}")]
    Runtime(String),
    /// A bug.
    #[error("pleach: internal error, please report it: {0}")]
    Internal(String),
}
