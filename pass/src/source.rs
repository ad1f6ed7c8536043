//! Where profiles come from: a file, or chance.

use crate::ir::FunctionIr;
use crate::settings::Wanted;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_feedback::profile::FunctionProfile;
use pleach_feedback::profile::file::{Lookup, ProfileFile};
use pleach_feedback::profile::summary::Summary;
use pleach_feedback::random_profile::{SCALE, random_profile, shuffled_paths};
use pleach_feedback::support::Support;
use pleach_feedback::weights::Recorded;
use std::num::NonZeroU64;

/// The profile of a program.
pub enum Source {
    /// A recorded one.
    File {
        /// The file.
        file: ProfileFile,
        /// Shuffle the counts of paths by this seed.
        shuffle: Option<NonZeroU64>,
    },
    /// Random ones of a module's functions, as if they were the whole program.
    Random {
        /// The seed.
        seed: NonZeroU64,
        /// Numbers about all of them.
        summary: Summary,
        /// Sampled block entries that they claim to rest on.
        samples: u64,
        /// Executions of all paths.
        path_flow: f64,
    },
}

impl Source {
    /// Opens the profile that is wanted, for a module with these functions.
    ///
    /// # Errors
    /// Text for the user, where a file cannot be read or is for another anchor.
    pub fn open(wanted: &Wanted, anchor: Anchor, functions: &[FunctionIr<'_>]) -> Result<Self, String> {
        let (path, shuffle) = match wanted {
            Wanted::File { path, shuffle } => (path, *shuffle),
            Wanted::Random(seed) => return Ok(Self::random(*seed, functions)),
        };
        let file = ProfileFile::open(path).map_err(|e| format!("pleach: {e}"))?;
        if file.anchor() != anchor {
            return Err(format!(
                "pleach: {}: recorded at the {} anchor, but used at the {} anchor: give both builds the same --anchor",
                path.display(),
                file.anchor().name(),
                anchor.name()
            ));
        }
        Ok(Self::File { file, shuffle })
    }

    fn random(seed: NonZeroU64, functions: &[FunctionIr<'_>]) -> Self {
        let profiles: Vec<FunctionProfile> = functions.iter().map(|f| random_profile(&f.cfg, seed.get())).collect();
        Self::Random {
            seed,
            summary: Summary::of(&profiles),
            samples: profiles.iter().map(|p| p.samples).sum(),
            path_flow: profiles.iter().flat_map(|p| &p.paths).map(|p| p.count).sum(),
        }
    }

    /// What there is about a function.
    ///
    /// # Errors
    /// Text for the user, where a file is damaged.
    pub fn lookup(&self, cfg: &Cfg) -> Result<Lookup, String> {
        let (file, shuffle) = match self {
            Self::File { file, shuffle } => (file, shuffle),
            Self::Random { seed, .. } => return Ok(Lookup::Found(random_profile(cfg, seed.get()))),
        };
        let found = file.lookup(cfg.id, cfg.hash()).map_err(|e| format!("pleach: {e}"))?;
        Ok(match (found, shuffle) {
            (Lookup::Found(profile), Some(seed)) => Lookup::Found(shuffled_paths(profile, seed.get())),
            (found, _) => found,
        })
    }

    /// What a file says about a function that is no longer there as it was recorded; chance says nothing about those.
    ///
    /// # Errors
    /// Text for the user, where the file is damaged.
    pub fn recall(&self, id: FunctionId, hash: CfgHash) -> Result<Option<FunctionProfile>, String> {
        let Self::File { file, shuffle } = self else {
            return Ok(None);
        };
        Ok(match file.lookup(id, hash).map_err(|e| format!("pleach: {e}"))? {
            Lookup::Found(profile) => Some(match shuffle {
                Some(seed) => shuffled_paths(profile, seed.get()),
                None => profile,
            }),
            Lookup::Stale { .. } | Lookup::Absent => None,
        })
    }

    /// Factor from samples to counts.
    pub fn scale(&self) -> f64 {
        match self {
            Self::File { file, .. } => file.scale(),
            Self::Random { .. } => SCALE,
        }
    }

    /// Sampled block entries behind all functions.
    pub fn samples(&self) -> u64 {
        match self {
            Self::File { file, .. } => file.samples(),
            Self::Random { samples, .. } => *samples,
        }
    }

    /// What the profile rests on.
    ///
    /// # Errors
    /// Text for the user, where a file is damaged.
    pub fn recorded(&self) -> Result<Recorded, String> {
        let (bursts, hot_in_copies) = match self {
            Self::File { file, .. } => {
                let provenance = file.provenance().map_err(|e| format!("pleach: {e}"))?;
                (provenance.bursts, provenance.hot_in_copies)
            }
            // As many as a recording of so many samples has, or as in one large enough to say what is cold.
            Self::Random { seed, samples, .. } if seed.get().is_multiple_of(2) => (samples / 1000, 0),
            Self::Random { samples, .. } => (*samples, 0),
        };
        Ok(Recorded {
            scale: self.scale(),
            samples: self.samples(),
            bursts,
            exact: matches!(self, Self::File { .. }) && self.support()?.exact,
            hot_in_copies,
        })
    }

    /// Which decisions the profile supports; random ones are for trying all.
    ///
    /// # Errors
    /// Text for the user, where a file is damaged.
    pub fn support(&self) -> Result<Support, String> {
        match self {
            Self::File { file, .. } => {
                let provenance = file.provenance().map_err(|e| format!("pleach: {e}"))?;
                Ok(Support::of(&provenance))
            }
            Self::Random { .. } => Ok(Support::EXACT),
        }
    }

    /// The same of the profile that is wanted.
    ///
    /// # Errors
    /// Text for the user, where a file cannot be read.
    pub fn support_of(wanted: &Wanted) -> Result<Support, String> {
        let Wanted::File { path, .. } = wanted else {
            return Ok(Support::EXACT);
        };
        let provenance = ProfileFile::open(path).and_then(|file| file.provenance());
        Ok(Support::of(&provenance.map_err(|e| format!("pleach: {e}"))?))
    }

    /// Executions of all paths of all functions.
    pub fn path_flow(&self) -> f64 {
        match self {
            Self::File { file, .. } => file.path_flow(),
            Self::Random { path_flow, .. } => *path_flow,
        }
    }

    /// Numbers about the whole profile.
    pub fn summary(&self) -> &Summary {
        match self {
            Self::File { file, .. } => file.summary(),
            Self::Random { summary, .. } => summary,
        }
    }
}
