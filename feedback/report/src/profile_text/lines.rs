//! The lines of a profile's text, and their conversion from and to the profile's data.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Path;
use pleach_profile::events::EventProfile;
use pleach_profile::sums::{FunctionSums, PathSum, PredictionSum};
use pleach_profile::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    PathWindow, Provenance, ValueCounts, ValueSite,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeadLine<'a> {
    pub pleach_profile_text: u32,
    pub anchor: Anchor,
    pub scale: f64,
    pub provenance: Cow<'a, Provenance>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FunctionLine {
    function: String,
    id: FunctionId,
    cfg_hash: CfgHash,
    samples: u64,
    blocks: Vec<u64>,
    edges: Vec<u64>,
    /// Call, then targets and counts.
    call_targets: Vec<(u32, Vec<(FunctionGuid, u64)>)>,
    memory_lengths: Vec<ValueLine>,
    /// Of older versions: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    length_predictions: Vec<ValueLine>,
    /// Of older versions: none.
    #[serde(default)]
    divisors: Vec<ValueLine>,
    /// Of older versions: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    switch_predictions: Vec<ValueLine>,
    paths: Vec<PathLine>,
    windows: Vec<(Vec<Path>, Number)>,
    called: Vec<CalledLine>,
    /// Block, watched, mispredicted, lower bound of mispredicted.
    predictions: Vec<(BlockIndex, Number, Number, Number)>,
    coverage: Vec<Covered>,
    counted: Vec<Executions>,
    graph: Option<Box<Cfg>>,
    /// Of merged profiles only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<SumsLine>,
}

/// Exact sums, in the units of `pleach_profile::sums`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SumsLine {
    /// Path; count, low, high, effective, Kish's; certain.
    paths: Vec<(Path, [u128; 5], u64)>,
    windows: Vec<(Vec<Path>, u128)>,
    /// Caller, its graph, its blocks, path, count.
    called: Vec<(FunctionId, CfgHash, Vec<BlockIndex>, Path, u128)>,
    /// Block; watched, mispredicted, low.
    predictions: Vec<(BlockIndex, [u128; 3])>,
}

impl From<&FunctionSums> for SumsLine {
    fn from(sums: &FunctionSums) -> Self {
        let path =
            |(path, s): (&Path, &PathSum)| (path.clone(), [s.count, s.low, s.high, s.effective, s.kish], s.certain);
        let called = |((caller, path), count): (&(Caller, Path), &u128)| {
            (caller.id, caller.cfg_hash, caller.before.clone(), path.clone(), *count)
        };
        let prediction = |(block, s): (&BlockIndex, &PredictionSum)| (*block, [s.watched, s.mispredicted, s.low]);
        Self {
            paths: sums.paths.iter().map(path).collect(),
            windows: sums
                .windows
                .iter()
                .map(|(paths, count)| (paths.clone(), *count))
                .collect(),
            called: sums.called.iter().map(called).collect(),
            predictions: sums.predictions.iter().map(prediction).collect(),
        }
    }
}

impl From<SumsLine> for FunctionSums {
    fn from(sums: SumsLine) -> Self {
        let path = |(path, [count, low, high, effective, kish], certain): (Path, [u128; 5], u64)| {
            let sum = PathSum {
                count,
                low,
                high,
                effective,
                certain,
                kish,
            };
            (path, sum)
        };
        let called = |(id, cfg_hash, before, path, count)| ((Caller { id, cfg_hash, before }, path), count);
        let prediction = |(block, [watched, mispredicted, low]): (BlockIndex, [u128; 3])| {
            let sum = PredictionSum {
                watched,
                mispredicted,
                low,
            };
            (block, sum)
        };
        Self {
            paths: sums.paths.into_iter().map(path).collect(),
            windows: sums.windows.into_iter().collect(),
            called: sums.called.into_iter().map(called).collect(),
            predictions: sums.predictions.into_iter().map(prediction).collect(),
        }
    }
}

/// Call or block, bursts, values and their counts, count of other values.
type ValueLine = (u32, u64, Vec<(u64, u64)>, u64);

/// The values of the operands that `position` chooses.
fn values(f: &FunctionProfile, position: impl Fn(ValueSite) -> Option<u32>) -> Vec<ValueLine> {
    let line = |v: &ValueCounts| Some((position(v.site)?, v.bursts, v.values.clone(), v.others));
    f.values.iter().filter_map(line).collect()
}

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
pub(super) struct EventsLine<'a> {
    pub events: Cow<'a, [EventProfile]>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VectorsLine<'a> {
    pub vectors: Cow<'a, str>,
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

impl From<&FunctionProfile> for FunctionLine {
    fn from(f: &FunctionProfile) -> Self {
        let path = |p: &EstimatedPath| PathLine {
            path: p.path.clone(),
            count: Number(p.count),
            low: Number(p.low),
            high: Number(p.high),
            effective: Number(p.effective),
        };
        let called = |c: &CallCrossingPath| CalledLine {
            caller: c.caller.id,
            caller_cfg_hash: c.caller.cfg_hash,
            before: c.caller.before.clone(),
            path: c.path.clone(),
            count: Number(c.count),
        };
        let prediction = |p: &BranchPrediction| (p.block, Number(p.watched), Number(p.mispredicted), Number(p.low));
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
            memory_lengths: values(f, |site| match site {
                ValueSite::Length(call) => Some(call),
                _ => None,
            }),
            length_predictions: values(f, |site| match site {
                ValueSite::LengthPrediction(call) => Some(call),
                _ => None,
            }),
            divisors: values(f, |site| match site {
                ValueSite::Divisor(block) => Some(block.0),
                _ => None,
            }),
            switch_predictions: values(f, |site| match site {
                ValueSite::SwitchPrediction(block) => Some(block.0),
                _ => None,
            }),
            paths: f.paths.iter().map(path).collect(),
            windows: f.windows.iter().map(|w| (w.paths.clone(), Number(w.count))).collect(),
            called: f.called.iter().map(called).collect(),
            predictions: f.predictions.iter().map(prediction).collect(),
            coverage: f.coverage.clone(),
            counted: f.counted.clone(),
            graph: f.graph.clone(),
            sums: f.sums.as_deref().map(SumsLine::from),
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
        let called = |c: CalledLine| CallCrossingPath {
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
        let operand = |site, (_, bursts, values, others): ValueLine| ValueCounts {
            site,
            bursts,
            values,
            others,
        };
        let lengths = f.memory_lengths.into_iter();
        let lengths = lengths.map(|line| operand(ValueSite::Length(line.0), line));
        let predictions = f.length_predictions.into_iter();
        let predictions = predictions.map(|line| operand(ValueSite::LengthPrediction(line.0), line));
        let divisors = f.divisors.into_iter();
        let divisors = divisors.map(|line| operand(ValueSite::Divisor(BlockIndex(line.0)), line));
        let switches = f.switch_predictions.into_iter();
        let switches = switches.map(|line| operand(ValueSite::SwitchPrediction(BlockIndex(line.0)), line));
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
            values: lengths.chain(predictions).chain(divisors).chain(switches).collect(),
            paths: f.paths.into_iter().map(path).collect(),
            windows: f.windows.into_iter().map(window).collect(),
            called: f.called.into_iter().map(called).collect(),
            predictions: f.predictions.into_iter().map(prediction).collect(),
            coverage: f.coverage,
            counted: f.counted,
            sums: f.sums.map(|sums| Box::new(sums.into())),
        }
    }
}
