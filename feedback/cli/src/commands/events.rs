//! Events whose paths a recording shows.

use super::sampling::EngineArg;
use anyhow::{Result, bail};
use pleach_analysis::events::event_paths;
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_collector::engines::lbr::event::Event as ProcessorEvent;
use pleach_collector::events::{BurstEvent, Event, KernelEvent};
use pleach_collector::vector::{Engine, VectorSet};
use pleach_profile::Profile;
use pleach_report::names::meant;

/// What a user asks for with `--event`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WantedEvents {
    /// An event of the processor, at which branch records are read.
    pub processor: Option<String>,
    /// Events that the kernel samples.
    pub kernel: Vec<KernelEvent>,
    /// Events that are found in bursts.
    pub in_bursts: Vec<BurstEvent>,
}

impl WantedEvents {
    /// Reads the names.
    pub fn parse(names: &[String]) -> Result<Self> {
        let mut wanted = Self::default();
        for name in names {
            if ProcessorEvent::parse(name).is_some() {
                if wanted.processor.is_some() {
                    bail!(
                        "--event {name}: branch records are read at one event of the processor: record twice, and merge"
                    );
                }
                wanted.processor = Some(name.clone());
                continue;
            }
            match Event::parse(name)? {
                Event::Kernel(event) if wanted.kernel.iter().any(|known| known.kind == event.kind) => {
                    bail!("--event {name}: this event is named twice");
                }
                Event::Kernel(event) => wanted.kernel.push(event),
                Event::Burst(event) if wanted.in_bursts.contains(&event) => {}
                Event::Burst(event) => wanted.in_bursts.push(event),
            }
        }
        if let Some(processor) = &wanted.processor
            && wanted.needs_shadow()
        {
            bail!("--event {processor} needs branch records, the other events need shadow execution: record twice");
        }
        Ok(wanted)
    }

    /// Whether an event is only seen with shadow execution.
    pub fn needs_shadow(&self) -> bool {
        !(self.kernel.is_empty() && self.in_bursts.is_empty())
    }

    /// Refuses engines that do not see the events.
    pub fn check(&self, engine: Engine, asked: EngineArg) -> Result<()> {
        if self.needs_shadow() && engine != Engine::RunAhead {
            let name = match asked {
                EngineArg::Step => "step",
                _ => "lbr",
            };
            bail!(
                "--event: page faults, calls and system calls are seen with shadow execution: leave out `--engine {name}`"
            );
        }
        Ok(())
    }
}

/// Adds the paths to events to a profile: to those of `wanted`, and to all that were sampled.
pub fn add_event_paths(
    profile: &mut Profile,
    program: &Program,
    vectors: &VectorSet,
    weights: &Weights,
    wanted: &[BurstEvent],
    finder: &Finder,
    quiet: bool,
) {
    let choose = |names: &[&str], wanted: &str| {
        let found = meant(names.iter(), |name| (**name, String::new()), wanted);
        found.map(|names| names.into_iter().map(|name| (*name).to_owned()).collect())
    };
    let found = event_paths(program, vectors, &profile.functions, weights, wanted, finder, &choose);
    profile.events = found.events;
    for note in found.notes.iter().filter(|_| !quiet) {
        eprintln!("pleach: note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Result<WantedEvents, String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        WantedEvents::parse(&names).map_err(|error| error.to_string())
    }

    #[test]
    fn events_are_sorted_by_who_sees_them() {
        let wanted = parse(&["page-faults:3", "call:malloc", "call:malloc", "syscall:write"]).expect("known");
        assert_eq!((wanted.kernel.len(), wanted.in_bursts.len()), (1, 2));
        assert!(wanted.needs_shadow() && wanted.processor.is_none());
        let wanted = parse(&["cache-misses"]).expect("known");
        assert_eq!(wanted.processor.as_deref(), Some("cache-misses"));
        assert!(wanted.check(Engine::Lbr, EngineArg::Auto).is_ok());
        for refused in [
            &["cache-misses", "page-faults"][..],
            &["cache-misses", "cycles"],
            &["page-faults", "page-faults:2"],
            &["page-falts"],
        ] {
            assert!(parse(refused).is_err(), "{refused:?}");
        }
        let error = parse(&["syscalls"])
            .expect("known")
            .check(Engine::Step, EngineArg::Step);
        insta::assert_snapshot!(error.unwrap_err(), @"--event: page faults, calls and system calls are seen with shadow execution: leave out `--engine step`");
    }
}
