//! From vectors to an estimated path profile, in the ways that are compared.

use crate::accuracy::independent::independent;
use crate::analyse::{AnalysisError, analyse};
use crate::path_profile::PathProfile;
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::cfg::Cfg;
use pleach_collector::vector::VectorSet;
use std::collections::HashMap;

/// How what was seen is credited to paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Crediting {
    /// Not to paths but to edges, which are then taken to be independent of each other: the baseline.
    #[default]
    Independent,
}

impl Crediting {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Independent];

    /// The name on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "edge-independent",
        }
    }

    /// Whether estimates come with intervals.
    pub fn has_intervals(self) -> bool {
        self != Self::Independent
    }
}

/// Estimates paths.
pub fn estimate(program: &Program, vectors: &VectorSet, crediting: Crediting) -> Result<PathProfile, AnalysisError> {
    match crediting {
        Crediting::Independent => {
            let analysis = analyse(program, vectors, &Weights::equal())?;
            let functions = program.annotated().flat_map(|(_, map)| &map.functions);
            let cfgs: HashMap<_, &Cfg> = functions.map(|f| ((f.cfg.id, f.hash), &f.cfg)).collect();
            Ok(independent(&analysis.profile, |f| {
                cfgs.get(&(f.id, f.cfg_hash)).copied()
            }))
        }
    }
}
