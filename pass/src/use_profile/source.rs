//! The source of profiles: a file, or a random generator. All profiles are checked here.

use crate::error::PassError;
use crate::ir::FunctionIr;
use crate::settings::ProfileSource;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_decide::support::{MIN_BURSTS_FOR_SUPERBLOCKS, Support};
use pleach_decide::weights::RecordingEvidence;
use pleach_profile::FunctionProfile;
use pleach_profile::file::{Lookup, ProfileFile, SourceHash};
use pleach_profile::random_profile::{SCALE, random_profile, shuffled_paths};
use pleach_profile::summary::ProfileSummary;
use std::num::NonZeroU64;
use std::path::Path;

/// The profile of a program.
pub enum Source {
    /// A recorded profile.
    File {
        /// The file.
        file: ProfileFile,
        /// Shuffle the counts of paths by this seed.
        shuffle: Option<NonZeroU64>,
    },
    /// Random profiles of a module's functions, as if the module were the whole program.
    Random {
        /// The seed.
        seed: NonZeroU64,
        /// The summary of all functions.
        summary: ProfileSummary,
        /// Pretended number of sampled block entries.
        samples: u64,
        /// Executions of all paths.
        path_flow: f64,
    },
}

/// CPU time that a random profile pretends to come from.
const TYPICAL_CPU_SECONDS: f64 = 10.0;

impl Source {
    /// Opens the requested profile for a module with these functions.
    ///
    /// # Errors
    /// The file cannot be read, or is for another anchor.
    pub fn open(wanted: &ProfileSource, anchor: Anchor, functions: &[FunctionIr<'_>]) -> Result<Self, PassError> {
        let (path, shuffle) = match wanted {
            ProfileSource::File { path, shuffle } => (path, *shuffle),
            ProfileSource::Random(seed) => return Ok(Self::random(*seed, functions)),
        };
        let file = ProfileFile::open(path)?;
        if file.anchor() != anchor {
            return Err(PassError::Anchor {
                path: path.clone(),
                recorded: file.anchor(),
                used: anchor,
            });
        }
        Ok(Self::File { file, shuffle })
    }

    /// Opens a profile for the placement of counters, which may be for either anchor: functions with other graphs are
    /// ignored.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open_for_weights(path: &Path) -> Result<Self, PassError> {
        Ok(Self::File {
            file: ProfileFile::open(path)?,
            shuffle: None,
        })
    }

    fn random(seed: NonZeroU64, functions: &[FunctionIr<'_>]) -> Self {
        let profiles: Vec<FunctionProfile> = functions.iter().map(|f| random_profile(&f.cfg, seed.get())).collect();
        Self::Random {
            seed,
            summary: ProfileSummary::from_functions(&profiles),
            samples: profiles.iter().map(|p| p.samples).sum(),
            path_flow: profiles.iter().flat_map(|p| &p.paths).map(|p| p.count).sum(),
        }
    }

    /// The profile of a function, checked against its graph.
    ///
    /// # Errors
    /// The file is damaged, or the record does not have the graph's shape.
    pub fn lookup(&self, cfg: &Cfg) -> Result<Lookup, PassError> {
        let (file, shuffle) = match self {
            Self::File { file, shuffle } => (file, shuffle),
            Self::Random { seed, .. } => return Ok(Lookup::Found(random_profile(cfg, seed.get()))),
        };
        let found = file.lookup(cfg.id, cfg.hash())?;
        if let Lookup::Found(profile) = &found {
            profile.check_shape(cfg).map_err(|what| PassError::Shape {
                function: cfg.name.clone(),
                what,
            })?;
        }
        Ok(match (found, shuffle) {
            (Lookup::Found(profile), Some(seed)) => Lookup::Found(shuffled_paths(profile, seed.get())),
            (found, _) => found,
        })
    }

    /// Whether the profile has functions of this one's name, but only of other source files. Of an inline function,
    /// which `anywhere` says, the source file is that of any module that has a copy.
    pub fn has_only_namesakes(&self, cfg: &Cfg, anywhere: bool) -> bool {
        let Some(file) = self.file().filter(|_| !anywhere) else {
            return false;
        };
        let source = SourceHash::of_name(&cfg.source_file);
        let mut keys = file.keys_of(cfg.id.guid).peekable();
        keys.peek().is_some() && keys.all(|key| key.source.is_some_and(|of| of != source))
    }

    /// The file, if the profile is a recorded one.
    pub fn file(&self) -> Option<&ProfileFile> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Random { .. } => None,
        }
    }

    /// The profile of a function with this graph at the anchor, after the graph has changed. Random profiles have none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn recall(&self, id: FunctionId, hash: CfgHash) -> Result<Option<FunctionProfile>, PassError> {
        let Self::File { file, shuffle } = self else {
            return Ok(None);
        };
        Ok(match file.lookup(id, hash)? {
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

    /// Number of sampled block entries of all functions.
    pub fn samples(&self) -> u64 {
        match self {
            Self::File { file, .. } => file.samples(),
            Self::Random { samples, .. } => *samples,
        }
    }

    /// The evidence behind the profile.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn evidence(&self) -> Result<RecordingEvidence, PassError> {
        let (bursts, hot_instance_count, cpu_seconds) = match self {
            Self::File { file, .. } => {
                let provenance = file.provenance()?;
                (
                    provenance.bursts,
                    provenance.hot_instance_count,
                    provenance.program_cpu_seconds,
                )
            }
            // Even seeds: a typical number for this many samples. Odd seeds: enough for every decision.
            Self::Random { seed, samples, .. } if seed.get().is_multiple_of(2) => {
                (samples / 1000, 0, TYPICAL_CPU_SECONDS)
            }
            Self::Random { samples, .. } => (*samples, 0, TYPICAL_CPU_SECONDS),
        };
        Ok(RecordingEvidence {
            scale: self.scale(),
            samples: self.samples(),
            bursts,
            cpu_seconds,
            exact: matches!(self, Self::File { .. }) && self.support()?.exact,
            hot_instance_count,
        })
    }

    /// The decisions that the profile supports. Random profiles are for tests: depending on the seed, they support all
    /// decisions, or those up to superblocks.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn support(&self) -> Result<Support, PassError> {
        match self {
            Self::File { file, .. } => Ok(Support::from_provenance(&file.provenance()?)),
            Self::Random { seed, .. } => Ok(random_support(*seed)),
        }
    }

    /// The decisions that a profile supports, without opening it for a module.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn support_of(profile: &ProfileSource) -> Result<Support, PassError> {
        match profile {
            ProfileSource::File { path, .. } => Ok(Support::from_provenance(&ProfileFile::open(path)?.provenance()?)),
            ProfileSource::Random(seed) => Ok(random_support(*seed)),
        }
    }

    /// Executions of all blocks of the program, as a profile estimates them; 0 of a random profile.
    ///
    /// # Errors
    /// The profile cannot be opened.
    pub fn executions_of(profile: &ProfileSource) -> Result<u64, PassError> {
        match profile {
            ProfileSource::File { path, .. } => Ok(ProfileFile::open(path)?.summary().total_count),
            ProfileSource::Random(_) => Ok(0),
        }
    }

    /// Executions of all paths of all functions.
    pub fn path_flow(&self) -> f64 {
        match self {
            Self::File { file, .. } => file.path_flow(),
            Self::Random { path_flow, .. } => *path_flow,
        }
    }

    /// The summary of the whole profile.
    pub fn summary(&self) -> &ProfileSummary {
        match self {
            Self::File { file, .. } => file.summary(),
            Self::Random { summary, .. } => summary,
        }
    }
}

fn random_support(seed: NonZeroU64) -> Support {
    if seed.get().is_multiple_of(2) {
        Support::sampled(MIN_BURSTS_FOR_SUPERBLOCKS)
    } else {
        Support::EXACT
    }
}
