//! The user's settings: compiler options, or environment variables for builds whose flags cannot be changed.

use crate::error::PassError;
use crate::ffi::{self, RawOptions};
use crate::optimisation::{Only, Optimisation};
use crate::stage::Stage;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::{Mode, NumberingOptions};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Environment variables that replace options. An option takes precedence over its variable.
const ANNOTATE_VARIABLE: &str = "PLEACH_ANNOTATE";
const USE_VARIABLE: &str = "PLEACH_USE";
const INSTRUMENT_VARIABLE: &str = "PLEACH_INSTRUMENT";
const ANCHOR_VARIABLE: &str = "PLEACH_ANCHOR";
const SUMMARY_VARIABLE: &str = "PLEACH_SUMMARY";
/// Other options of the plugin, as on a command line: for rustc, which loads it after it has read its own.
const OPTIONS_VARIABLE: &str = "PLEACH_OPTIONS";
/// What all of the plugin's options begin with.
const OPTION_PREFIX: &str = "pleach-";

/// The settings of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Give blocks identifiers.
    pub annotate: bool,
    /// Use the profiles of older versions of functions that changed.
    pub salvage: bool,
    /// Optimise with this profile.
    pub profile: Option<ProfileSource>,
    /// Place code by this profile, which was recorded at the late anchor of a build with `profile`.
    pub second_profile: Option<ProfileSource>,
    /// Give the blocks of optimised code identifiers: the recording becomes a second profile.
    pub annotate_late: bool,
    /// Count exactly.
    pub instrument: Option<NumberingOptions>,
    /// Place counters by this profile.
    pub weights: Option<PathBuf>,
    /// Where IR is identified.
    pub anchor: Anchor,
    /// Print one line per module.
    pub summary: bool,
    /// The stage that forms superblocks, if any.
    pub superblocks: Option<Stage>,
    /// Form superblocks wherever possible, for tests.
    pub superblocks_aggressive: bool,
    /// Minimum gain of a copied instruction, as a share of all executions, instead of the default.
    pub superblock_min_gain: Option<f64>,
    /// Minimum gain of a function's superblocks, as a share of its instructions, instead of the default.
    pub superblock_min_function_gain: Option<f64>,
    /// Check each function that superblocks changed.
    pub verify: bool,
    /// If-convert branches that are often mispredicted.
    pub if_conversion: bool,
    /// If-convert and branch wherever possible, for tests.
    pub if_conversion_aggressive: bool,
    /// Turn selects on loop-carried chains into branches.
    pub select_to_branch: bool,
    /// Compare with frequent cases of unpredictable switches.
    pub switches: bool,
    /// Leave joined conditions to instruction selection.
    pub unweight_logical_selects: bool,
    /// Do not inline rare calls that would make a hot function recursive.
    pub keep_recursive_calls: bool,
    /// Place code by the profile.
    pub placement: bool,
    /// Take only these decisions.
    pub only: Option<Only>,
    /// List decisions in this file.
    pub decisions: Option<PathBuf>,
}

/// The profile to optimise with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProfileSource {
    /// A recorded profile.
    File {
        /// The file.
        path: PathBuf,
        /// Shuffle the counts of paths by this seed.
        shuffle: Option<NonZeroU64>,
    },
    /// Random profiles with this seed.
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

/// The first word of [`OPTIONS_VARIABLE`] that is no option, once the others are set.
static UNKNOWN_OPTION: OnceLock<Option<String>> = OnceLock::new();

/// Sets the options that the environment has, once a process.
pub fn read_options_variable() {
    UNKNOWN_OPTION.get_or_init(|| {
        let text = std::env::var(OPTIONS_VARIABLE).unwrap_or_default();
        let mut words = text.split_whitespace();
        words.find(|word| !set_option(word)).map(str::to_owned)
    });
}

/// Sets an option, `-NAME` or `-NAME=VALUE`; returns whether it is one.
fn set_option(word: &str) -> bool {
    let option = word.trim_start_matches('-');
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    name.starts_with(OPTION_PREFIX) && ffi::set_host_option(name, value)
}

/// The profile named by option or environment.
fn profile(options: &RawOptions) -> Option<ProfileSource> {
    if let Some(seed) = NonZeroU64::new(options.random_profile) {
        return Some(ProfileSource::Random(seed));
    }
    let path = text(options.profile.to_owned(), USE_VARIABLE);
    let shuffle = NonZeroU64::new(options.random_paths);
    (!path.is_empty()).then(|| ProfileSource::File {
        path: path.into(),
        shuffle,
    })
}

/// The second profile.
fn second_profile(options: &RawOptions) -> Option<ProfileSource> {
    let path = PathBuf::from(options.second_profile.to_owned());
    (!path.as_os_str().is_empty()).then_some(ProfileSource::File { path, shuffle: None })
}

/// What to count, by option or environment.
fn instrument(options: &RawOptions) -> Result<Option<NumberingOptions>, PassError> {
    let mode = match text(options.instrument.to_owned(), INSTRUMENT_VARIABLE).as_str() {
        "" | "0" => return Ok(None),
        "paths" | "1" => Mode::Paths,
        "edges" => Mode::Edges,
        other => return Err(PassError::UnknownCounting(other.into())),
    };
    if !(1..=4).contains(&options.iterations) {
        return Err(PassError::Iterations(options.iterations));
    }
    Ok(Some(NumberingOptions {
        mode,
        iterations: options.iterations as u8,
        ..NumberingOptions::default()
    }))
}

/// The stage that forms superblocks, if any: not before the anchor, where the graph is the recorded one.
fn superblocks(options: &RawOptions, anchor: Anchor) -> Option<Stage> {
    let stage = match (anchor, options.superblock_stage) {
        (Anchor::Early, 0) => Stage::EarlySimplification,
        (Anchor::Early, 1) => Stage::OptimizerEarly,
        _ => Stage::OptimizerLast,
    };
    options.superblocks.then_some(stage)
}

/// Whether a profile is used: decides which passes of clang's profile pipeline are scheduled.
pub extern "C" fn uses_profile() -> bool {
    profile(&ffi::options()).is_some()
}

/// Whether blocks get identifiers.
pub fn annotates() -> bool {
    let options = ffi::options();
    options.annotate || options.annotate_late || flag(ANNOTATE_VARIABLE)
}

impl Settings {
    /// Whether there is anything to do at the anchor.
    pub fn has_work_at_anchor(&self) -> bool {
        self.annotate || self.profile.is_some() || self.instrument.is_some()
    }

    /// Whether branches are if-converted: those that the profile or the programmer marks unpredictable.
    pub fn converts_branches(&self) -> bool {
        self.if_conversion
            && self
                .only
                .as_ref()
                .is_none_or(|only| only.may_name(Optimisation::IfConversion))
    }

    /// Reads the options and the environment, once a run.
    ///
    /// # Errors
    /// A value that is unknown or out of range.
    pub fn read() -> Result<Self, PassError> {
        if let Some(Some(word)) = UNKNOWN_OPTION.get() {
            return Err(PassError::UnknownOption(word.clone()));
        }
        let options = ffi::options();
        let anchor = match text(options.anchor.to_owned(), ANCHOR_VARIABLE).as_str() {
            "" | "early" => Anchor::Early,
            "late" => Anchor::Late,
            other => return Err(PassError::UnknownAnchor(other.into())),
        };
        let (second_profile, annotate_late) = (second_profile(&options), options.annotate_late);
        if (second_profile.is_some() || annotate_late) && (profile(&options).is_none() || anchor == Anchor::Late) {
            return Err(PassError::SecondAlone);
        }
        if annotate_late && (options.annotate || flag(ANNOTATE_VARIABLE)) {
            return Err(PassError::AnnotatedTwice);
        }
        Ok(Self {
            annotate: options.annotate || flag(ANNOTATE_VARIABLE),
            salvage: options.salvage,
            profile: profile(&options),
            second_profile,
            annotate_late,
            instrument: instrument(&options)?,
            weights: Some(options.weights.to_owned())
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            anchor,
            summary: options.summary || flag(SUMMARY_VARIABLE),
            superblocks: superblocks(&options, anchor),
            superblocks_aggressive: options.superblocks_aggressive,
            superblock_min_gain: Some(options.superblock_min_gain).filter(|&gain| gain >= 0.0),
            superblock_min_function_gain: Some(options.superblock_min_function_gain).filter(|&gain| gain >= 0.0),
            verify: options.verify,
            if_conversion: options.if_conversion,
            if_conversion_aggressive: options.if_conversion_aggressive,
            select_to_branch: options.select_to_branch,
            switches: options.switches,
            unweight_logical_selects: options.unweight_logical_selects,
            keep_recursive_calls: options.keep_recursive_calls,
            placement: options.placement,
            only: Some(options.only.to_owned())
                .filter(|only| !only.is_empty())
                .map(|only| only.parse())
                .transpose()?,
            decisions: Some(options.decisions.to_owned())
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
        })
    }
}
