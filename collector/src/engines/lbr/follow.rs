//! Reads the buffers of a recording, and controls its budget, until it ends.

#![allow(unsafe_code, reason = "system calls")]

use super::control::{Controller, Seen};
use super::open::Opened;
use super::record_reader::RecordReader;
use super::sys;
use crate::engines::running::has_ended;
use crate::perf::Report;
use crate::perf::live::RunningProcess;
use crate::vector::{Burst, Engine, VectorSet};
use crate::watch::Watcher;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Polling interval for the end of processes, on kernels without pidfds.
const IMPATIENCE: Duration = Duration::from_millis(10);
/// Time before the first poll of the controller.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// A recording in progress.
pub(super) struct Follow<'a> {
    pub(super) opened: &'a Opened,
    pub(super) duration: Option<Duration>,
    pub(super) watcher: Option<&'a Watcher>,
    /// This thread's CPU time when the recording began, in nanoseconds.
    pub(super) began: u64,
    /// Whether a signal ended the recording.
    pub(super) is_interrupted: &'a dyn Fn() -> bool,
}

impl Follow<'_> {
    /// Reads until all `roots` have ended, the time is over, or a signal ended the recording. `running`: the processes
    /// that ran before. Adds what was sampled to `vectors`.
    pub(super) fn to_the_end(
        &self,
        mut controller: Controller,
        (roots, running): (&[u32], Vec<RunningProcess>),
        vectors: &mut VectorSet,
    ) -> Report {
        let mut shown = vectors.bursts.len();
        let mut reader = RecordReader::new(vectors, Engine::Lbr, self.opened.events());
        for process in running {
            reader.add_running(process);
        }
        let reading = self.read(roots, &mut reader, &mut controller, &mut shown);
        // Descendants that are still running continue without sampling.
        self.opened.sample(false);
        self.opened.track(false);
        reader.round(self.opened.rings());
        let seen = self.seen(&reader, reading);
        let seconds = |ns: f64| ns * 1e-9;
        let report = reader.finish(
            roots[0],
            seconds(controller.program_ns(&seen)),
            seconds(controller.spent_ns(&seen)),
        );
        self.show(&vectors.bursts, &mut shown);
        report
    }

    /// Reads and controls; returns the CPU time that reading took, in nanoseconds.
    fn read(&self, roots: &[u32], reader: &mut RecordReader, controller: &mut Controller, shown: &mut usize) -> u64 {
        let start = Instant::now();
        let deadline = self.duration.map(|duration| start + duration);
        let mut wait = Wait::new(roots, self.opened);
        let mut look_at = start + FIRST_LOOK;
        let (mut open, mut reading) = (true, 0);
        loop {
            let until = deadline.map_or(look_at, |deadline| deadline.min(look_at));
            let ended = wait.until(until) || (self.is_interrupted)();
            let before = sys::thread_cpu_ns();
            reader.round(self.opened.rings());
            reading += sys::thread_cpu_ns().saturating_sub(before);
            self.show(reader.bursts(), shown);
            let now = Instant::now();
            if ended || deadline.is_some_and(|deadline| now >= deadline) {
                return reading;
            }
            if now < look_at {
                continue;
            }
            let decision = controller.look(self.seen(reader, reading));
            if let Some(period) = decision.period {
                self.opened.set_period(period);
            }
            if decision.open != open {
                open = decision.open;
                self.opened.sample(open);
            }
            look_at = now + decision.next;
        }
    }

    /// Shows the bursts after the first `shown`.
    fn show(&self, bursts: &[Burst], shown: &mut usize) {
        let Some(watcher) = self.watcher else { return };
        bursts[*shown..].iter().for_each(|burst| watcher.burst(burst));
        *shown = bursts.len();
        watcher.round();
    }

    fn seen(&self, reader: &RecordReader, reading_ns: u64) -> Seen {
        let arrived = reader.arrived();
        Seen {
            cpu_ns: self.opened.cpu_ns(),
            reader_ns: sys::thread_cpu_ns().saturating_sub(self.began),
            reading_ns,
            samples: arrived.samples + arrived.lost,
            events: arrived.events,
        }
    }
}

/// A process whose end is waited for.
struct Root {
    process: u32,
    /// Readable when the process has ended; `None` on kernels without pidfds.
    end: Option<OwnedFd>,
    has_ended: bool,
}

/// Waits for buffers that fill, and for the end of processes.
struct Wait {
    roots: Vec<Root>,
    /// The ends of `roots` come first.
    polled: Vec<libc::pollfd>,
}

impl Wait {
    fn new(roots: &[u32], opened: &Opened) -> Self {
        let root = |&process| Root {
            process,
            end: sys::process_end(process),
            has_ended: false,
        };
        let roots: Vec<Root> = roots.iter().map(root).collect();
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // Negative descriptors are ignored.
        let ends = roots
            .iter()
            .map(|root| root.end.as_ref().map_or(-1, AsRawFd::as_raw_fd));
        let polled = ends.chain(opened.descriptors()).map(entry).collect();
        Self { roots, polled }
    }

    /// Whether all processes have ended.
    fn until(&mut self, time: Instant) -> bool {
        let mut wait = time.saturating_duration_since(Instant::now());
        if self.roots.iter().any(|root| root.end.is_none()) {
            wait = wait.min(IMPATIENCE);
        }
        // Rounded up, because `poll` would otherwise return early repeatedly.
        let wait = wait.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
        // SAFETY: the entries are a local array of that length. A signal ends the call early, which is harmless.
        let ready = unsafe { libc::poll(self.polled.as_mut_ptr(), self.polled.len() as libc::nfds_t, wait) };
        let (ends, buffers) = self.polled.split_at_mut(self.roots.len());
        if ready > 0 {
            for entry in buffers {
                // All its threads have ended, so it would stay ready.
                if entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                    entry.fd = -1;
                }
            }
        }
        for (root, end) in self.roots.iter_mut().zip(ends) {
            root.has_ended |= match root.end {
                Some(_) => ready > 0 && end.revents != 0,
                None => has_ended(root.process),
            };
            if root.has_ended {
                end.fd = -1;
            }
        }
        self.roots.iter().all(|root| root.has_ended)
    }
}
