//! From vectors to an estimated path profile.

use crate::analyse::AnalysisError;
use crate::credit::{Crediting, credit};
use crate::partial::gather;
use crate::path_profile::PathProfile;
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_collector::vector::VectorSet;

/// What an estimate is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimator {
    /// How what was seen is credited to paths.
    pub crediting: Crediting,
    /// Bursts are cut into vectors of so many branches, which know nothing of each other; left whole if `None`.
    pub vector_length: Option<usize>,
}

impl Estimator {
    /// Estimates paths.
    pub fn estimate(self, program: &Program, vectors: &VectorSet) -> Result<PathProfile, AnalysisError> {
        let anchor = program.annotated().map(|(_, map)| map.anchor).next();
        let anchor = anchor.ok_or(AnalysisError::NotAnnotated)?;
        let evidence = gather(program, vectors, &Weights::clocked(vectors), self.vector_length);
        Ok(credit(&evidence, anchor, self.crediting))
    }
}
