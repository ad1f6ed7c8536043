//! What the user asked for: compiler options, or environment variables where a build's flags can't be changed.

use crate::ffi;
use pleach_annotate::manifest::Anchor;
use std::path::PathBuf;

/// Prefix of the environment variables that stand in for options. An option beats its variable.
const ANNOTATE_VARIABLE: &str = "PLEACH_ANNOTATE";
const USE_VARIABLE: &str = "PLEACH_USE";
const ANCHOR_VARIABLE: &str = "PLEACH_ANCHOR";
const SUMMARY_VARIABLE: &str = "PLEACH_SUMMARY";

/// Options of one compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Give blocks identifiers.
    pub annotate: bool,
    /// Optimise with this profile.
    pub profile: Option<PathBuf>,
    /// Where IR is identified.
    pub anchor: Anchor,
    /// Print one line per module.
    pub summary: bool,
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
fn profile() -> Option<PathBuf> {
    let path = text(ffi::pleach_option_use().to_owned(), USE_VARIABLE);
    (!path.is_empty()).then(|| path.into())
}

/// Whether a profile was asked for: decides which passes of clang's profile pipeline are scheduled.
pub extern "C" fn uses_profile() -> bool {
    profile().is_some()
}

impl Settings {
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
            anchor,
            summary: ffi::pleach_option_summary() || flag(SUMMARY_VARIABLE),
        })
    }
}
