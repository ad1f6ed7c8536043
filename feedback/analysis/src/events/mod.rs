//! Paths that lead to events (feedback/ALGORITHMS.md, Events).
//!
//! Calls and system calls are in the bursts themselves: the branches before them led to them. Branch records end at
//! their events. Samples of the kernel have no branches: what led to their places is what bursts show that passed the
//! same places, on the assumption that the event depends on the path only by its place.
//!
//! 1. [`targets`]: which code the events are of;
//! 2. [`history`]: the blocks that led to the present one;
//! 3. [`occurrences`]: every occurrence in the bursts, with its history;
//! 4. [`window`]: how far from a burst's beginning occurrences are seen equally well;
//! 5. [`tree`]: occurrences → trees of paths;
//! 6. [`rare`]: calls that only breakpoints saw.

mod history;
mod occurrences;
mod rare;
mod targets;
mod tree;
mod window;

use crate::program::Program;
use crate::replay::Replay;
use crate::time_bias::Weights;
use occurrences::Occurrences;
use pleach_annotate::find::Finder;
use pleach_collector::events::BurstEvent;
use pleach_collector::vector::VectorSet;
use pleach_profile::FunctionProfile;
use pleach_profile::events::EventProfile;
use targets::Targets;

/// The functions that a name means, by their linkage names, among those of all modules; else the names most like it.
pub type ChooseFunctions<'c> = &'c dyn Fn(&[&str], &str) -> Result<Vec<String>, Vec<String>>;

/// The paths to the events of a recording.
#[derive(Debug, Default)]
pub struct EventPaths {
    /// By event.
    pub events: Vec<EventProfile>,
    /// What the user should know, a line each: functions that do not exist, for instance.
    pub notes: Vec<String>,
}

/// Finds the paths to all events that were sampled, and to those of `wanted`. `functions`: the analysed recording, with
/// what breakpoints counted.
pub fn event_paths(
    program: &Program,
    vectors: &VectorSet,
    functions: &[FunctionProfile],
    weights: &Weights,
    wanted: &[BurstEvent],
    finder: &Finder,
    choose: ChooseFunctions<'_>,
) -> EventPaths {
    let targets = Targets::new(program, vectors, wanted, finder, choose);
    let mut occurrences = Occurrences::new(program, weights, &targets);
    Replay::new(program).recording(vectors, &mut occurrences);
    let is_full = occurrences.is_full();
    let (events, paths) = occurrences.finish();
    let mut found = EventPaths {
        events: Vec::new(),
        notes: targets.notes.clone(),
    };
    if is_full {
        let note = "bursts have millions of these events: those of the last bursts are left out";
        found.notes.push(note.to_owned());
    }
    for (target, seen) in targets.events.iter().zip(events) {
        let chosen = match target.source {
            pleach_profile::events::EventSource::BranchRecords => window::whole(&seen),
            _ => window::choose(&seen, &paths),
        };
        let event = tree::profile(target, &seen, &chosen, &paths, program);
        let rare = rare::calls(target, program, functions);
        let is_seen = event.weight > 0 || event.left_out > 0;
        if is_seen {
            found.events.push(event);
        } else if rare.is_none() {
            let bursts = vectors.burst_count();
            found.notes.push(format!(
                "{}: none was seen in {bursts} bursts: it is rare, or record longer",
                event.name
            ));
        }
        found.events.extend(rare);
    }
    found
        .events
        .sort_by(|a, b| (&a.name, a.source).cmp(&(&b.name, b.source)));
    found
}
