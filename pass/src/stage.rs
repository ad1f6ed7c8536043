//! The stages of the pipeline at which the plugin runs.

use pleach_annotate::manifest::Anchor;

/// The stage of a run: `PleachStage` in `cpp/pleach.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before inlining.
    EarlySimplification,
    /// After everything but code generation.
    OptimizerLast,
    /// After inlining, before vectorisation.
    OptimizerEarly,
    /// Last: compares before switches, then applies a second profile, or annotates code for one.
    OptimizerEnd,
    /// One of the passes that `opt -passes=` runs alone.
    Only(NamedPass),
}

/// A pass that `opt -passes=` runs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedPass {
    /// `pleach-annotate`
    Annotate,
    /// `pleach-use`
    Use,
    /// `pleach-instrument`
    Instrument,
    /// `pleach-if-conversion`
    IfConversion,
    /// `pleach-select-to-branch`
    SelectToBranch,
    /// `pleach-superblocks`
    Superblocks,
    /// `pleach-function-order`
    FunctionOrder,
    /// `pleach-inherited-weights`
    InheritedWeights,
    /// `pleach-switches`
    Switches,
}

impl Stage {
    /// By its number in the C++ half.
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::EarlySimplification,
            1 => Self::OptimizerLast,
            2 => Self::OptimizerEarly,
            3 => Self::Only(NamedPass::Annotate),
            4 => Self::Only(NamedPass::Use),
            5 => Self::Only(NamedPass::Instrument),
            6 => Self::Only(NamedPass::IfConversion),
            7 => Self::Only(NamedPass::SelectToBranch),
            8 => Self::Only(NamedPass::Superblocks),
            9 => Self::Only(NamedPass::FunctionOrder),
            10 => Self::Only(NamedPass::InheritedWeights),
            11 => Self::OptimizerEnd,
            12 => Self::Only(NamedPass::Switches),
            other => unreachable!("the C++ half has no stage {other}"),
        }
    }
}

/// `llvm::ThinOrFullLTOPhase`, in its declaration order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LtoPhase {
    /// Without link-time optimisation.
    None,
    /// Before a thin link.
    ThinPreLink,
    /// After it.
    ThinPostLink,
    /// Before a full link.
    FullPreLink,
    /// After it.
    FullPostLink,
}

impl LtoPhase {
    /// By its number in LLVM.
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::ThinPreLink,
            2 => Self::ThinPostLink,
            3 => Self::FullPreLink,
            _ => Self::FullPostLink,
        }
    }

    /// Whether the link is still to come.
    pub fn is_pre_link(self) -> bool {
        matches!(self, Self::ThinPreLink | Self::FullPreLink)
    }

    /// Whether the module is linked already.
    pub fn is_post_link(self) -> bool {
        matches!(self, Self::ThinPostLink | Self::FullPostLink)
    }
}

/// Whether this run is the one at the anchor. The early anchor is before linking, the late one is the last run before
/// code generation.
pub fn is_at_anchor(anchor: Anchor, stage: Stage, phase: LtoPhase) -> bool {
    match anchor {
        Anchor::Early => stage == Stage::EarlySimplification && !phase.is_post_link(),
        Anchor::Late => stage == Stage::OptimizerLast && !phase.is_pre_link(),
    }
}
