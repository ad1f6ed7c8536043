//! A profile as text, complete: for diffs, for editing, and for programs that are not in Rust.
//!
//! Each line is a JSON object. The first one is the profile's head; each that follows is a function; paths to events
//! and raw vectors, where there are any, are the last. [`from_text`] reads it back: written to a file, it has the same
//! bytes as before.

mod lines;

use lines::{EventsLine, FunctionLine, HeadLine, VectorsLine};
use pleach_profile::Profile;
use std::borrow::Cow;

/// Version of the text form.
pub const TEXT_VERSION: u32 = 1;

/// How the text of a profile begins.
const BEGINNING: &str = "{\"pleach_profile_text\":";

/// Why text is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileTextError {
    /// The first line is another.
    #[error("not the text of a profile: its first line does not begin with {BEGINNING}")]
    NotAProfile,
    /// Another version.
    #[error("text form {found} of a profile, but this pleach reads form {TEXT_VERSION}: print it again")]
    Version {
        /// The version of the text.
        found: u32,
    },
    /// A line is not what it should be.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Raw vectors are not hexadecimal digits in pairs.
    #[error("line {line}: raw vectors are hexadecimal digits in pairs, in the last line")]
    Vectors {
        /// Its number, from 1 on.
        line: usize,
    },
}

/// Whether a file's first bytes are those of a profile's text.
pub fn is_profile_text(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING.as_bytes())
}

/// The text of a profile.
pub fn to_text(profile: &Profile) -> serde_json::Result<String> {
    let head = HeadLine {
        pleach_profile_text: TEXT_VERSION,
        anchor: profile.anchor,
        scale: profile.scale,
        provenance: Cow::Borrowed(&profile.provenance),
    };
    let mut out = serde_json::to_string(&head)? + "\n";
    for function in &profile.functions {
        out += &serde_json::to_string(&FunctionLine::from(function))?;
        out.push('\n');
    }
    if !profile.events.is_empty() {
        let events = Cow::Borrowed(&profile.events[..]);
        out += &serde_json::to_string(&EventsLine { events })?;
        out.push('\n');
    }
    if let Some(vectors) = &profile.vectors {
        let digits: String = vectors.iter().map(|byte| format!("{byte:02x}")).collect();
        out += &serde_json::to_string(&VectorsLine { vectors: digits.into() })?;
        out.push('\n');
    }
    Ok(out)
}

/// Reads the text of a profile. Empty lines are left out.
///
/// # Errors
/// It is no text of a profile, of another version, or a line is malformed. Whether a function's parts agree with each
/// other is found out when the profile is written and read.
pub fn from_text(text: &str) -> Result<Profile, ProfileTextError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let at = |line: usize| move |source| ProfileTextError::Line { line: line + 1, source };
    let first = lines.next().filter(|(_, line)| is_profile_text(line.as_bytes()));
    let (number, head) = first.ok_or(ProfileTextError::NotAProfile)?;
    let version = head[BEGINNING.len()..]
        .split([',', '}'])
        .next()
        .and_then(|digits| digits.trim().parse().ok());
    match version {
        Some(TEXT_VERSION) => {}
        Some(found) => return Err(ProfileTextError::Version { found }),
        None => return Err(ProfileTextError::NotAProfile),
    }
    let head: HeadLine<'_> = serde_json::from_str(head).map_err(at(number))?;
    let mut profile = Profile {
        provenance: head.provenance.into_owned(),
        scale: head.scale,
        anchor: head.anchor,
        functions: Vec::new(),
        events: Vec::new(),
        vectors: None,
    };
    for (number, line) in lines {
        if profile.vectors.is_some() {
            return Err(ProfileTextError::Vectors { line: number + 1 });
        }
        if line.starts_with("{\"events\":") {
            let line: EventsLine<'_> = serde_json::from_str(line).map_err(at(number))?;
            profile.events = line.events.into_owned();
            continue;
        }
        if line.starts_with("{\"vectors\":") {
            let line: VectorsLine<'_> = serde_json::from_str(line).map_err(at(number))?;
            let vectors = bytes_of(&line.vectors).ok_or(ProfileTextError::Vectors { line: number + 1 })?;
            profile.vectors = Some(vectors);
            continue;
        }
        let function: FunctionLine = serde_json::from_str(line).map_err(at(number))?;
        profile.functions.push(function.into());
    }
    Ok(profile)
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        })
        .collect()
}
