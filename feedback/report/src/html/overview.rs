//! The recording, the decisions that it supports, totals of coverage, and the hottest paths of the program.

use super::rows::{States, states};
use super::{Functions, PageInputs, path_work, share};
use crate::paths::ending;
use crate::show::commands;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::Start;
use pleach_decide::support::{Support, support_summary};
use pleach_profile::Profile;
use serde::Serialize;

/// Number of paths that the overview lists.
const MAX_PATHS: usize = 25;

/// The recording as a whole.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overview {
    /// Profiles, and when each was written, in seconds since 1970.
    pub profiles: Vec<(String, Option<u64>)>,
    /// Recorded commands without repetitions, and how often each was run.
    pub commands: Vec<(String, u64)>,
    /// Sampling engines.
    pub engines: Vec<String>,
    /// The anchor of the graphs.
    pub anchor: &'static str,
    /// CPU seconds of the programs.
    pub program_cpu_seconds: f64,
    /// CPU seconds of the sampler.
    pub own_cpu_seconds: f64,
    /// The sampler's share of the programs' CPU time.
    pub overhead: f64,
    /// Number of bursts.
    pub bursts: u64,
    /// Number of taken branches.
    pub taken_branches: u64,
    /// Sampled block entries.
    pub samples: u64,
    /// Estimated executions of a sampled one.
    pub scale: f64,
    /// Whether the counts are exact: executions. Otherwise they have no unit.
    pub exact: bool,
    /// Executions of all blocks, in the unit of all counts of the page.
    pub executions: f64,
    /// Whether raw vectors are in the profile.
    pub has_vectors: bool,
    /// What the recording supports, in one line.
    pub verdict: String,
    /// Each decision: name, bursts that it needs, whether it is supported.
    pub decisions: Vec<(&'static str, u64, bool)>,
    /// Functions: all, with samples, with a proved block, with all blocks proved not executed.
    pub functions: [u64; 4],
    /// Blocks of all functions.
    pub blocks: States,
    /// The hottest paths by executed IR instructions.
    pub hottest: Vec<HotPath>,
    /// Number of paths with samples.
    pub paths: usize,
}

/// A path of the program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HotPath {
    /// Position of its function.
    pub function: usize,
    /// Position among its function's paths.
    pub path: usize,
    /// Its share of all executed IR instructions.
    pub share: f64,
    /// Its share of the executions of all paths: estimate and 90 % interval.
    pub path_share: [f64; 3],
    /// Blocks in order.
    pub blocks: Vec<BlockIndex>,
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
}

impl Overview {
    pub(super) fn new(profile: &Profile, functions: &Functions<'_>, inputs: &PageInputs<'_>) -> Self {
        let provenance = &profile.provenance;
        let support = Support::from_provenance(provenance);
        let all: Vec<States> = functions.all.iter().map(states).collect();
        let mut blocks = States::default();
        for of_function in &all {
            blocks.iter_mut().zip(of_function).for_each(|(sum, part)| *sum += part);
        }
        let number = |of: &dyn Fn(&States) -> bool| all.iter().filter(|s| of(s)).count() as u64;
        let sampled = functions.all.iter().filter(|f| f.profile.samples > 0);
        Self {
            profiles: inputs.profiles.clone(),
            commands: commands(provenance),
            engines: provenance.engines.clone(),
            anchor: profile.anchor.name(),
            program_cpu_seconds: provenance.program_cpu_seconds,
            own_cpu_seconds: provenance.own_cpu_seconds,
            overhead: share(provenance.own_cpu_seconds, provenance.program_cpu_seconds),
            bursts: provenance.bursts,
            taken_branches: provenance.taken_branches,
            samples: profile.functions.iter().map(|f| f.samples).sum(),
            scale: profile.scale,
            exact: support.exact,
            executions: functions.executions,
            has_vectors: profile.vectors.is_some(),
            verdict: support_summary(provenance, profile.functions.len()),
            decisions: support.decisions().to_vec(),
            functions: [
                all.len() as u64,
                sampled.count() as u64,
                number(&|s| s[0] > 0),
                number(&|s| s[2] > 0 && s[2] == s.iter().sum::<u32>()),
            ],
            blocks,
            hottest: hottest(functions),
            paths: functions.all.iter().map(|f| f.profile.paths.len()).sum(),
        }
    }
}

fn hottest(functions: &Functions<'_>) -> Vec<HotPath> {
    let mut all: Vec<HotPath> = Vec::new();
    for (at, function) in functions.all.iter().enumerate() {
        for (path, estimated) in function.paths.iter().enumerate() {
            let (end, to) = ending(estimated.path.end);
            let flow = functions.path_flow;
            all.push(HotPath {
                function: at,
                path,
                share: share(path_work(function.graph, estimated), functions.work),
                path_share: [
                    share(estimated.count, flow),
                    share(estimated.low, flow),
                    share(estimated.high, flow).min(1.0),
                ],
                blocks: estimated.path.blocks.clone(),
                start: estimated.path.start,
                end,
                to,
            });
        }
    }
    // Stable: of paths with the same share, the one of the hotter function is first.
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all.truncate(MAX_PATHS);
    all
}
