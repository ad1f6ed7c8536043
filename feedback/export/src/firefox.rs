//! The Firefox Profiler's processed profile: call stacks over time, by process and thread.
//!
//! Each burst is shown at its time. Its stacks weigh as much as the IR instructions that they executed in it. Bursts
//! sample CPU time, so each stands for an equal part of that of its process.

use crate::functions::Functions;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile, ReferenceTimestamp,
    SamplingInterval, ThreadHandle, Timestamp, WeightType,
};
use pleach_analysis::program::Program;
use pleach_analysis::replay::ReplayUnit;
use pleach_analysis::stacks::{Key, visit_stacks};
use pleach_collector::vector::{Process, VectorSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::time::Duration;

/// The JSON text that profiler.firefox.com opens.
///
/// # Errors
/// The profile cannot be encoded.
pub fn processed_profile(
    program: &Program,
    vectors: &VectorSet,
    functions: &Functions,
) -> Result<String, serde_json::Error> {
    let times = || vectors.bursts.iter().map(|burst| burst.time_ns);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let bursts = (vectors.bursts.len() as u64).max(1);
    let mut timeline = Timeline {
        vectors,
        functions,
        profile: Profile::new(
            &product(vectors),
            // Recordings have times since the start of the machine only.
            ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO),
            SamplingInterval::from_nanos(((last - first) / bursts).max(1)),
        ),
        processes: BTreeMap::new(),
        threads: BTreeMap::new(),
        cpu_times: cpu_times(vectors),
    };
    // A burst's stacks come one after the other.
    let mut present: Option<(usize, Moment, FxHashMap<Vec<Key>, f64>)> = None;
    visit_stacks(program, vectors, &mut |run, stack| {
        if present.as_ref().is_none_or(|(number, ..)| *number != run.number) {
            if let Some((_, moment, stacks)) = present.take() {
                timeline.add(moment, stacks);
            }
            present = Some((run.number, Moment::of_source(run.source, first), FxHashMap::default()));
        }
        if let Some((.., stacks)) = &mut present {
            *stacks.entry(stack.functions.to_vec()).or_default() += stack.work;
        }
    });
    if let Some((_, moment, stacks)) = present {
        timeline.add(moment, stacks);
    }
    timeline.profile.set_symbolicated(true);
    serde_json::to_string(&timeline.profile)
}

/// The recorded command.
fn product(vectors: &VectorSet) -> String {
    let command = vectors.processes.first().map(program_of);
    command.unwrap_or("pleach").to_owned()
}

/// The program of a command line.
fn program_of(process: &Process) -> &str {
    let program = process.command.split(' ').next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default()
}

/// Where and when a burst ran.
#[derive(Clone, Copy)]
struct Moment {
    /// Position of the process in the recording.
    process: u32,
    thread: u32,
    /// Since the first burst, in nanoseconds.
    time: u64,
}

impl Moment {
    /// Windows of a compressed recording have neither time nor thread: they are shown at its beginning.
    fn of_source(source: ReplayUnit<'_>, first: u64) -> Self {
        let (process, thread, time) = match source {
            ReplayUnit::Burst(burst) => (burst.process, burst.thread, burst.time_ns - first),
            ReplayUnit::Window(_) => (0, 0, 0),
        };
        Self { process, thread, time }
    }
}

struct Timeline<'v> {
    vectors: &'v VectorSet,
    functions: &'v Functions,
    profile: Profile,
    /// By position in the recording.
    processes: BTreeMap<u32, ProcessHandle>,
    /// By process and thread id.
    threads: BTreeMap<(u32, u32), ThreadHandle>,
    /// CPU time for each burst, by process.
    cpu_times: Vec<CpuDelta>,
}

/// The CPU time that each burst of a process stands for.
fn cpu_times(vectors: &VectorSet) -> Vec<CpuDelta> {
    let mut bursts = vec![0_u64; vectors.processes.len()];
    for burst in &vectors.bursts {
        if let Some(number) = bursts.get_mut(burst.process as usize) {
            *number += 1;
        }
    }
    let processes = vectors.processes.iter().zip(bursts);
    let times = processes.map(|(process, bursts)| process.program_cpu_seconds * 1e9 / bursts.max(1) as f64);
    times.map(|time| CpuDelta::from_nanos(time as u64)).collect()
}

impl Timeline<'_> {
    fn add(&mut self, moment: Moment, stacks: FxHashMap<Vec<Key>, f64>) {
        let thread = self.thread(moment.process, moment.thread);
        let time = Timestamp::from_nanos_since_reference(moment.time);
        let mut stacks: Vec<_> = stacks.into_iter().collect();
        stacks.sort_by(|a, b| a.0.cmp(&b.0));
        let mut cpu_time = self.cpu_times.get(moment.process as usize).copied();
        for (chain, work) in stacks {
            let names = chain.iter().filter_map(|key| self.functions.get(key));
            let names: Vec<_> = names
                .map(|function| self.profile.intern_string(&function.name))
                .collect();
            let frames = names.into_iter().map(|name| FrameInfo {
                frame: Frame::Label(name),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            });
            let stack = self.profile.intern_stack_frames(thread, frames);
            let weight = work.round().min(f64::from(i32::MAX)) as i32;
            self.profile
                .add_sample(thread, time, stack, cpu_time.take().unwrap_or(CpuDelta::ZERO), weight);
        }
    }

    fn thread(&mut self, process: u32, thread: u32) -> ThreadHandle {
        let (profile, vectors) = (&mut self.profile, self.vectors);
        let start = Timestamp::from_nanos_since_reference(0);
        // The first thread of a process that was sampled stands for its main thread.
        let is_first = !self.processes.contains_key(&process);
        let of_process = *self.processes.entry(process).or_insert_with(|| {
            let recorded = vectors.processes.get(process as usize);
            let (name, pid) = recorded.map_or(("", 0), |recorded| (program_of(recorded), recorded.pid));
            profile.add_process(name, pid, start)
        });
        *self.threads.entry((process, thread)).or_insert_with(|| {
            let handle = profile.add_thread(of_process, thread, start, is_first);
            profile.set_thread_samples_weight_type(handle, WeightType::Samples);
            handle
        })
    }
}
