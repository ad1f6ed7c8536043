//! What the user asked for: compiler options, or environment variables where a build's flags can't be changed.

use crate::{Stage, ffi};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::{Mode, NumberingOptions};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Prefix of the environment variables that stand in for options. An option beats its variable.
const ANNOTATE_VARIABLE: &str = "PLEACH_ANNOTATE";
const USE_VARIABLE: &str = "PLEACH_USE";
const INSTRUMENT_VARIABLE: &str = "PLEACH_INSTRUMENT";
const ANCHOR_VARIABLE: &str = "PLEACH_ANCHOR";
const SUMMARY_VARIABLE: &str = "PLEACH_SUMMARY";

/// NumberingOptions of one compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Give blocks identifiers.
    pub annotate: bool,
    /// Optimise with this profile.
    pub profile: Option<Wanted>,
    /// Count exactly.
    pub instrument: Option<NumberingOptions>,
    /// Place counters by this profile.
    pub weights: Option<PathBuf>,
    /// Where IR is identified.
    pub anchor: Anchor,
    /// Print one line per module.
    pub summary: bool,
    /// Form superblocks, and where in the pipeline.
    pub superblocks: Option<Stage>,
}

/// Which profile to optimise with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// A file's.
    File {
        /// The file.
        path: PathBuf,
        /// Shuffle the counts of paths by this seed.
        shuffle: Option<NonZeroU64>,
    },
    /// Random ones, by this seed.
    Random(NonZeroU64),
}

fn flag(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|v| !v.is_empty() && v != "0")
}

fn text(option: String, variable: &str) -> String {
    if option.is_empty() {
        std::env::var(variable).unwrap_or_default()
    } else {
        option
    }
}

/// The profile named by option or environment.
fn profile() -> Option<Wanted> {
    if let Some(seed) = NonZeroU64::new(ffi::pleach_option_random()) {
        return Some(Wanted::Random(seed));
    }
    let path = text(ffi::pleach_option_use().to_owned(), USE_VARIABLE);
    let shuffle = NonZeroU64::new(ffi::pleach_option_random_paths());
    (!path.is_empty()).then(|| Wanted::File {
        path: path.into(),
        shuffle,
    })
}

/// What to count, by option or environment.
fn instrument() -> Result<Option<NumberingOptions>, String> {
    let mode = match text(ffi::pleach_option_instrument().to_owned(), INSTRUMENT_VARIABLE).as_str() {
        "" | "0" => return Ok(None),
        "paths" | "1" => Mode::Paths,
        "edges" => Mode::Edges,
        other => return Err(format!("pleach: cannot count '{other}': it is 'paths' or 'edges'")),
    };
    let iterations = ffi::pleach_option_iterations();
    if !(1..=4).contains(&iterations) {
        return Err(format!("pleach: {iterations} iterations: it is 1 to 4"));
    }
    Ok(Some(NumberingOptions {
        mode,
        iterations: iterations as u8,
        ..NumberingOptions::default()
    }))
}

/// Where superblocks are formed, if they are. Not before the anchor, where paths become known.
fn superblocks(anchor: Anchor) -> Option<Stage> {
    let stage = match (anchor, ffi::pleach_option_superblock_stage()) {
        (Anchor::Early, 0) => Stage::EarlySimplification,
        (Anchor::Early, 1) => Stage::OptimizerEarly,
        _ => Stage::OptimizerLast,
    };
    ffi::pleach_option_superblocks().then_some(stage)
}

/// Whether a profile was asked for: decides which passes of clang's profile pipeline are scheduled.
pub extern "C" fn uses_profile() -> bool {
    profile().is_some()
}

impl Settings {
    /// Whether there is anything to do at the anchor.
    pub fn does_something(&self) -> bool {
        self.annotate || self.profile.is_some() || self.instrument.is_some()
    }

    /// Reads them; an unknown anchor is an error.
    pub fn read() -> Result<Self, String> {
        let anchor = match text(ffi::pleach_option_anchor().to_owned(), ANCHOR_VARIABLE).as_str() {
            "" | "early" => Anchor::Early,
            "late" => Anchor::Late,
            other => return Err(format!("pleach: unknown anchor '{other}': it is 'early' or 'late'")),
        };
        Ok(Self {
            annotate: ffi::pleach_option_annotate() || flag(ANNOTATE_VARIABLE),
            profile: profile(),
            instrument: instrument()?,
            weights: Some(ffi::pleach_option_weights().to_owned())
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            anchor,
            summary: ffi::pleach_option_summary() || flag(SUMMARY_VARIABLE),
            superblocks: superblocks(anchor),
        })
    }
}
