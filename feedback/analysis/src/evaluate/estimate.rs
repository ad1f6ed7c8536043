//! From vectors to an estimated path profile.

use crate::analyse::{AnalysisError, analyse};
use crate::credit::{Crediting, Flows, credit};
use crate::partial_paths::{PartialPathOptions, collect_partial_paths};
use crate::program::Program;
use crate::time_bias::{Model, Weights};
use pleach_collector::vector::VectorSet;
use pleach_profile::path_profile::PathProfile;

/// Parameters of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimator {
    /// How partial paths are credited to paths.
    pub crediting: Crediting,
    /// Length in taken branches of the independent vectors that bursts are cut into; bursts are left whole if `None`.
    pub vector_length: Option<usize>,
    /// Whether the time bias is corrected.
    pub time_bias: TimeBias,
}

/// Whether the time bias is corrected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TimeBias {
    /// It is not.
    Uncorrected,
    /// It is, where the recording measured the time of branches.
    #[default]
    Corrected,
}

impl Estimator {
    /// Estimates paths.
    ///
    /// # Errors
    /// No module is annotated.
    pub fn estimate(self, program: &Program, vectors: &VectorSet) -> Result<PathProfile, AnalysisError> {
        let anchor = program.annotated().map(|(_, map)| map.anchor).next();
        let anchor = anchor.ok_or(AnalysisError::NotAnnotated)?;
        let is_timed = vectors.bursts.iter().any(|burst| burst.timing.is_some());
        let weights = match self.time_bias {
            TimeBias::Corrected if is_timed => Weights::from_vectors(vectors, &Model::default()),
            _ => Weights::equal(),
        };
        let evidence = collect_partial_paths(
            program,
            vectors,
            &weights,
            &PartialPathOptions {
                vector_length: self.vector_length,
                ..PartialPathOptions::default()
            },
        );
        // Vectors that are cut are to be judged without what whole bursts say.
        let flows = match self.vector_length {
            None => Flows::from_profile(&analyse(program, vectors, &weights)?.profile),
            Some(_) => Flows::default(),
        };
        Ok(credit(&evidence, anchor, self.crediting, &flows))
    }
}
