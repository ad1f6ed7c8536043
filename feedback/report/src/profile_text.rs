//! A profile as text, complete: for diffs, for editing, and for programs that are not in Rust.
//!
//! Each line is a JSON object. The first one is the profile's head; each that follows is a function; raw vectors, if
//! they are kept, are the last. [`from_text`] reads it back: written to a file, it has the same bytes as before.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Path;
use pleach_profile::{
    BranchPrediction, CallTargets, CalledPath, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    MemoryLengths, PathWindow, Profile, Provenance,
};
use serde::{Deserialize, Serialize};
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine<'a> {
    pleach_profile_text: u32,
    anchor: Anchor,
    scale: f64,
    provenance: Cow<'a, Provenance>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionLine {
    function: String,
    id: FunctionId,
    cfg_hash: CfgHash,
    samples: u64,
    blocks: Vec<u64>,
    edges: Vec<u64>,
    /// Call, then targets and counts.
    call_targets: Vec<(u32, Vec<(FunctionGuid, u64)>)>,
    memory_lengths: Vec<MemoryLine>,
    paths: Vec<PathLine>,
    windows: Vec<(Vec<Path>, Number)>,
    called: Vec<CalledLine>,
    /// Block, watched, mispredicted, lower end of mispredicted.
    predictions: Vec<(BlockIndex, Number, Number, Number)>,
    coverage: Vec<Covered>,
    counted: Vec<Executions>,
    graph: Option<Box<Cfg>>,
}

/// Call, bursts, lengths and their counts, count of other lengths.
type MemoryLine = (u32, u64, Vec<(u64, u64)>, u64);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathLine {
    path: Path,
    count: Number,
    low: Number,
    high: Number,
    effective: Number,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CalledLine {
    caller: FunctionId,
    caller_cfg_hash: CfgHash,
    before: Vec<BlockIndex>,
    path: Path,
    count: Number,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VectorsLine<'a> {
    vectors: Cow<'a, str>,
}

/// A number that may be infinite, which JSON has no form for: `null`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(from = "Option<f64>", into = "Option<f64>")]
struct Number(f64);

impl From<Option<f64>> for Number {
    fn from(value: Option<f64>) -> Self {
        Self(value.unwrap_or(f64::INFINITY))
    }
}

impl From<Number> for Option<f64> {
    fn from(Number(value): Number) -> Self {
        value.is_finite().then_some(value)
    }
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
        vectors: None,
    };
    for (number, line) in lines {
        if profile.vectors.is_some() {
            return Err(ProfileTextError::Vectors { line: number + 1 });
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

impl From<&FunctionProfile> for FunctionLine {
    fn from(f: &FunctionProfile) -> Self {
        let path = |p: &EstimatedPath| PathLine {
            path: p.path.clone(),
            count: Number(p.count),
            low: Number(p.low),
            high: Number(p.high),
            effective: Number(p.effective),
        };
        let called = |c: &CalledPath| CalledLine {
            caller: c.caller.id,
            caller_cfg_hash: c.caller.cfg_hash,
            before: c.caller.before.clone(),
            path: c.path.clone(),
            count: Number(c.count),
        };
        let prediction = |p: &BranchPrediction| (p.block, Number(p.watched), Number(p.mispredicted), Number(p.low));
        let memory = |m: &MemoryLengths| (m.call, m.bursts, m.lengths.clone(), m.others);
        Self {
            function: f.name.clone(),
            id: f.id,
            cfg_hash: f.cfg_hash,
            samples: f.samples,
            blocks: f.blocks.clone(),
            edges: f.edges.clone(),
            call_targets: f
                .call_targets
                .iter()
                .map(|site| (site.call, site.targets.clone()))
                .collect(),
            memory_lengths: f.memory_lengths.iter().map(memory).collect(),
            paths: f.paths.iter().map(path).collect(),
            windows: f.windows.iter().map(|w| (w.paths.clone(), Number(w.count))).collect(),
            called: f.called.iter().map(called).collect(),
            predictions: f.predictions.iter().map(prediction).collect(),
            coverage: f.coverage.clone(),
            counted: f.counted.clone(),
            graph: f.graph.clone(),
        }
    }
}

impl From<FunctionLine> for FunctionProfile {
    fn from(f: FunctionLine) -> Self {
        let path = |p: PathLine| EstimatedPath {
            path: p.path,
            count: p.count.0,
            low: p.low.0,
            high: p.high.0,
            effective: p.effective.0,
        };
        let called = |c: CalledLine| CalledPath {
            caller: Caller {
                id: c.caller,
                cfg_hash: c.caller_cfg_hash,
                before: c.before,
            },
            path: c.path,
            count: c.count.0,
        };
        let prediction = |(block, watched, mispredicted, low): (BlockIndex, Number, Number, Number)| BranchPrediction {
            block,
            watched: watched.0,
            mispredicted: mispredicted.0,
            low: low.0,
        };
        let memory = |(call, bursts, lengths, others): MemoryLine| MemoryLengths {
            call,
            bursts,
            lengths,
            others,
        };
        let targets = |(call, targets): (u32, Vec<(FunctionGuid, u64)>)| CallTargets { call, targets };
        let window = |(paths, count): (Vec<Path>, Number)| PathWindow { paths, count: count.0 };
        Self {
            id: f.id,
            cfg_hash: f.cfg_hash,
            name: f.function,
            graph: f.graph,
            samples: f.samples,
            blocks: f.blocks,
            edges: f.edges,
            call_targets: f.call_targets.into_iter().map(targets).collect(),
            memory_lengths: f.memory_lengths.into_iter().map(memory).collect(),
            paths: f.paths.into_iter().map(path).collect(),
            windows: f.windows.into_iter().map(window).collect(),
            called: f.called.into_iter().map(called).collect(),
            predictions: f.predictions.into_iter().map(prediction).collect(),
            coverage: f.coverage,
            counted: f.counted,
        }
    }
}
