//! Opens kernel events on a process: on every processor a tracking event with a buffer, and one event for each kind,
//! which writes to the same buffer.

use crate::engines::lbr::attr::{KernelSampling, Rate, Scope, Tracking};
use crate::engines::lbr::facts::Facts;
use crate::engines::lbr::open::{map, open_tracker};
use crate::engines::lbr::ring::Ring;
use crate::engines::lbr::sys::Event;
use crate::events::KernelEventKind;
use crate::perf::live::LiveEvent;
use std::collections::BTreeMap;

/// Preferred size of a buffer's data: some 3000 samples.
const BUFFER_CAPACITY: usize = 256 << 10;

/// The events of a run.
#[derive(Debug)]
pub(super) struct Opened {
    rings: Vec<Ring>,
    trackers: Vec<Event>,
    /// With the names of their kinds.
    samplers: Vec<(&'static str, Event)>,
    live: Vec<LiveEvent>,
}

impl Opened {
    /// Opens the events that the kernel grants; `None` if it grants none. `notes` gets the others, by name.
    pub(super) fn new(
        wanted: &[(KernelEventKind, Rate)],
        facts: &Facts,
        pid: u32,
        notes: &mut BTreeMap<&'static str, String>,
    ) -> Option<Self> {
        let mut granted = Vec::new();
        for &(kind, rate) in wanted {
            match grant(kind, rate) {
                Ok(sampling) => {
                    if !sampling.with_kernel {
                        notes.insert(kind.name(), only_in_user_code(kind));
                    }
                    granted.push((kind, sampling, Vec::new()));
                }
                Err(errno) => {
                    notes.insert(kind.name(), refusal(kind, errno, facts));
                }
            }
        }
        if granted.is_empty() {
            return None;
        }
        match Self::open(granted, facts, pid) {
            Ok(opened) => Some(opened),
            Err(errno) => {
                for (kind, _) in wanted {
                    notes.insert(kind.name(), refusal(*kind, errno, facts));
                }
                None
            }
        }
    }

    fn open(
        mut granted: Vec<(KernelEventKind, KernelSampling, Vec<u64>)>,
        facts: &Facts,
        pid: u32,
    ) -> Result<Self, i32> {
        let mut tracking = Tracking {
            scope: Scope::FromExec,
            watermark: (BUFFER_CAPACITY / 2) as u32,
            build_ids: true,
        };
        let (mut rings, mut samplers, mut trackers, mut tracker_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut size = BUFFER_CAPACITY;
        for &cpu in &facts.cpus {
            let tracker = match open_tracker(&mut tracking, pid, cpu) {
                // The processor went offline.
                Err(libc::ENODEV) => continue,
                other => other?,
            };
            rings.push(map(tracker.fd(), &mut size)?);
            tracker_ids.push(tracker.id()?);
            for (kind, sampling, ids) in &mut granted {
                let event = Event::open(&sampling.to_bytes(), pid, cpu as i32)?;
                event.set_output(&tracker)?;
                ids.push(event.id()?);
                samplers.push((kind.name(), event));
            }
            trackers.push(tracker);
        }
        let mut live = vec![LiveEvent {
            attr: tracking.to_bytes(),
            name: "task-clock".to_owned(),
            ids: tracker_ids,
        }];
        live.extend(granted.into_iter().map(|(kind, sampling, ids)| LiveEvent {
            attr: sampling.to_bytes(),
            name: kind.name().to_owned(),
            ids,
        }));
        Ok(Self {
            rings,
            trackers,
            samplers,
            live,
        })
    }

    /// The buffers.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The events that records belong to.
    pub(super) fn live(&self) -> &[LiveEvent] {
        &self.live
    }

    /// Turns the events on or off.
    pub(super) fn sample(&self, on: bool) {
        run(self.samplers.iter().map(|(_, event)| event), on);
    }

    /// Stops everything.
    pub(super) fn stop(&self) {
        self.sample(false);
        run(self.trackers.iter(), false);
    }

    /// Number of events of a kind while they were on, sampled or not.
    pub(super) fn count(&self, name: &str) -> u64 {
        let of_kind = self.samplers.iter().filter(|(kind, _)| *kind == name);
        of_kind.filter_map(|(_, event)| event.count().ok()).sum()
    }

    /// CPU time of all threads and processes in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.trackers.iter().filter_map(|tracker| tracker.count().ok()).sum()
    }
}

fn run<'e>(events: impl Iterator<Item = &'e Event>, on: bool) {
    for event in events {
        // It only fails for events that ended with their process.
        let _ = event.run(on);
    }
}

/// What the kernel grants of an event; its error number if nothing.
fn grant(kind: KernelEventKind, rate: Rate) -> Result<KernelSampling, i32> {
    let try_open = |with_kernel| {
        let sampling = KernelSampling {
            config: kind.config(),
            rate,
            scope: Scope::This,
            with_kernel,
        };
        Event::open(&sampling.to_bytes(), 0, -1).map(|_| KernelSampling {
            scope: Scope::FromExec,
            ..sampling
        })
    };
    match try_open(true) {
        Err(libc::EACCES | libc::EPERM) if kind.is_in_user_code() => try_open(false),
        answer => answer,
    }
}

fn only_in_user_code(kind: KernelEventKind) -> String {
    format!(
        "{}: without those that the kernel takes in system calls, which need kernel.perf_event_paranoid ≤ 1 or CAP_PERFMON",
        kind.name()
    )
}

/// Why an event was refused, and what to do.
fn refusal(kind: KernelEventKind, errno: i32, facts: &Facts) -> String {
    let advice = match errno {
        libc::EACCES | libc::EPERM if facts.paranoid.is_none() => "the kernel has no perf events".to_owned(),
        libc::EACCES | libc::EPERM if facts.filtered => {
            "a seccomp filter is in force: the container needs `--cap-add PERFMON` and a profile that allows perf_event_open"
                .to_owned()
        }
        libc::EACCES | libc::EPERM => format!(
            "kernel.perf_event_paranoid is {}: set it to {} with `sysctl`, or grant CAP_PERFMON",
            facts.paranoid.unwrap_or(2),
            if kind.is_in_user_code() { 2 } else { 1 }
        ),
        libc::ENOMEM => "the limit on locked memory is reached: raise it with `ulimit -l`".to_owned(),
        libc::ENOSYS => "the kernel has no perf events".to_owned(),
        libc::EMFILE | libc::ENFILE => "too many files are open: raise the limit with `ulimit -n`".to_owned(),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    format!(
        "{} is not recorded, because the kernel refuses it: {advice}",
        kind.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let facts = Facts {
            paranoid: Some(3),
            ..Facts::default()
        };
        let of = |kind, errno| refusal(kind, errno, &facts);
        insta::assert_snapshot!(of(KernelEventKind::PageFaults, libc::EACCES), @"page-faults is not recorded, because the kernel refuses it: kernel.perf_event_paranoid is 3: set it to 2 with `sysctl`, or grant CAP_PERFMON");
        insta::assert_snapshot!(of(KernelEventKind::ContextSwitches, libc::EACCES), @"context-switches is not recorded, because the kernel refuses it: kernel.perf_event_paranoid is 3: set it to 1 with `sysctl`, or grant CAP_PERFMON");
        insta::assert_snapshot!(of(KernelEventKind::ContextSwitches, libc::ENOMEM), @"context-switches is not recorded, because the kernel refuses it: the limit on locked memory is reached: raise it with `ulimit -l`");
    }
}
