//! Opens the events of a plan on threads: on every processor and for each thread a tracking event, and, if the processor
//! has branch records, a sampling event. All events of a processor write to one buffer.

use super::attr::{Scope, Tracking};
use super::plan::Plan;
use super::ring::Ring;
use super::sys::{Event, page_size};
use crate::perf::live::LiveEvent;
use memmap2::{MmapOptions, MmapRaw};

/// Preferred size of a buffer's data: the default of `perf record`, which every user may lock.
const BUFFER_CAPACITY: usize = 512 << 10;
/// Minimum size of a buffer's data, in pages.
const MIN_PAGES: usize = 4;

/// The events of a recording.
#[derive(Debug)]
pub struct Opened {
    rings: Vec<Ring>,
    trackers: Vec<Event>,
    samplers: Vec<Event>,
    events: Vec<LiveEvent>,
}

impl Opened {
    /// Opens everything. `threads`: their ids; a new process has only one thread, 0 is the calling thread. The events
    /// begin when the process calls `execve`, if that is their scope, else with [`Opened::sample`] and
    /// [`Opened::track`].
    ///
    /// # Errors
    /// The kernel's error number; `ESRCH` if all threads have ended.
    pub fn new(plan: &Plan, threads: &[u32], period: u64, scope: Scope) -> Result<Self, i32> {
        let mut tracking = Tracking {
            scope,
            watermark: (BUFFER_CAPACITY / 2) as u32,
            build_ids: true,
        };
        let mut opened = Self {
            rings: Vec::new(),
            trackers: Vec::new(),
            samplers: Vec::new(),
            events: Vec::new(),
        };
        let (mut tracker_ids, mut sampler_ids) = (Vec::new(), Vec::new());
        let mut size = BUFFER_CAPACITY;
        let mut unavailable = libc::ENODEV;
        for &cpu in &plan.cpus {
            let first = opened.trackers.len();
            for &thread in threads {
                let tracker = match open_tracker(&mut tracking, thread, cpu) {
                    // The processor went offline.
                    Err(libc::ENODEV) => break,
                    // The thread has ended.
                    Err(libc::ESRCH) => {
                        unavailable = libc::ESRCH;
                        continue;
                    }
                    other => other?,
                };
                match opened.trackers.get(first) {
                    Some(with_buffer) => tracker.set_output(with_buffer)?,
                    None => opened.rings.push(map(tracker.fd(), &mut size)?),
                }
                tracker_ids.push(tracker.id()?);
                opened.trackers.push(tracker);
                for target in plan.targets.iter().filter(|target| target.cpu == cpu) {
                    let sampling = plan.sampling(target, period, scope).to_bytes();
                    let sampler = match Event::open(&sampling, thread, cpu as i32) {
                        Err(libc::ESRCH) => continue,
                        other => other?,
                    };
                    sampler.set_output(&opened.trackers[first])?;
                    sampler_ids.push(sampler.id()?);
                    opened.samplers.push(sampler);
                }
            }
        }
        let Some(first) = plan.targets.first().filter(|_| !opened.samplers.is_empty()) else {
            return Err(unavailable);
        };
        opened.events = vec![
            LiveEvent {
                attr: plan.sampling(first, period, scope).to_bytes(),
                name: plan.name.clone(),
                ids: sampler_ids,
            },
            LiveEvent {
                attr: tracking.to_bytes(),
                name: "task-clock:u".to_owned(),
                ids: tracker_ids,
            },
        ];
        Ok(opened)
    }

    /// The buffers.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The events that records belong to.
    pub fn events(&self) -> &[LiveEvent] {
        &self.events
    }

    /// Descriptors that become readable when a buffer is half full.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        self.trackers.iter().map(Event::fd)
    }

    /// Sets the period. An event that refuses it keeps its old period.
    pub fn set_period(&self, period: u64) {
        for sampler in &self.samplers {
            let _ = sampler.set_period(period);
        }
    }

    /// Starts or stops the sampling events.
    pub fn sample(&self, on: bool) {
        run(&self.samplers, on);
    }

    /// Starts or stops the tracking events, which also count CPU time.
    pub fn track(&self, on: bool) {
        run(&self.trackers, on);
    }

    /// CPU time of all threads and processes in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.trackers.iter().filter_map(|tracker| tracker.count().ok()).sum()
    }
}

fn run(events: &[Event], on: bool) {
    for event in events {
        // It only fails for events that ended with their process.
        let _ = event.run(on);
    }
}

pub(in crate::engines) fn open_tracker(tracking: &mut Tracking, pid: u32, cpu: u32) -> Result<Event, i32> {
    let cpu = cpu as i32;
    match Event::open(&tracking.to_bytes(), pid, cpu) {
        Err(libc::EINVAL) if tracking.build_ids => {
            tracking.build_ids = false;
            Event::open(&tracking.to_bytes(), pid, cpu)
        }
        other => other,
    }
}

/// Maps a buffer of `size` bytes, and halves `size` while the kernel refuses it.
pub(in crate::engines) fn map(fd: i32, size: &mut usize) -> Result<Ring, i32> {
    let page = page_size();
    *size = (*size).max(MIN_PAGES * page);
    loop {
        match map_buffer(fd, page, *size) {
            // The limit on locked memory would be exceeded.
            Err(libc::EPERM | libc::ENOMEM) if *size > MIN_PAGES * page => *size /= 2,
            Err(libc::EPERM | libc::ENOMEM) => return Err(libc::ENOMEM),
            other => return other,
        }
    }
}

fn map_buffer(fd: i32, page: usize, size: usize) -> Result<Ring, i32> {
    let map: MmapRaw = MmapOptions::new()
        .len(page + size)
        .map_raw(fd)
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
    Ring::new(map, page).ok_or(libc::EINVAL)
}
