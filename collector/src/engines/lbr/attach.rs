//! Records processes that run already with branch records.
//!
//! The kernel attaches events to threads: to each thread of the processes and of their children. What these create
//! inherits the events, except what a thread creates while its process's threads are being listed. The kernel reports
//! new mappings; those of before are read from `/proc/PID/maps`.

#![allow(unsafe_code, reason = "system calls")]

use super::attr::Scope;
use super::diagnose::Refusal;
use super::run::LbrSession;
use super::{Facts, Plan, probe, sys};
use crate::engines::error::RecordError;
use crate::engines::options::RecordOptions;
use crate::engines::run_loop::{Recording, Runs};
use crate::engines::running::find;
use crate::engines::session::Session as _;
use crate::perf::Report;
use crate::perf::live::{RunningMapping, RunningProcess};
use crate::signals::Watch;
use procfs::process::{MMPermissions, MMapPath, Process};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Records processes until they end, the time is over or a signal ends the recording. The processes go on.
///
/// # Errors
/// The kernel grants no branch records, or a process does not exist or may not be sampled.
pub(crate) fn attach(processes: &[u32], options: &RecordOptions) -> Result<Recording, RecordError> {
    let facts = Facts::read();
    let plan = probe(&facts, options.event.as_deref())?;
    attach_planned(processes, options, &facts, &plan).map(|(recording, _)| recording)
}

/// Records with a given plan, for tests; also returns what was read.
///
/// # Errors
/// A process does not exist or may not be sampled.
pub fn attach_planned(
    processes: &[u32],
    options: &RecordOptions,
    facts: &Facts,
    plan: &Plan,
) -> Result<(Recording, Report), RecordError> {
    let roots: BTreeSet<u32> = processes.iter().copied().collect();
    let roots: Vec<u32> = roots.into_iter().collect();
    let watch = Watch::since_handlers();
    let mut session = LbrSession::planned(PathBuf::new(), options, facts, plan);
    let began = sys::thread_cpu_ns();
    let family = family(&roots)?;
    let threads: Vec<u32> = family.iter().flat_map(threads).collect();
    raise_limit_of_files();
    let opened = session.open(&threads, Scope::Running);
    let opened = opened.map_err(|errno| match errno {
        libc::ESRCH => RecordError::NoProcess(roots[0]),
        libc::EACCES | libc::EPERM => not_permitted(roots[0]),
        libc::EMFILE | libc::ENFILE => Refusal::Files {
            cpus: plan.cpus.len(),
            threads: threads.len(),
        }
        .into(),
        errno => session.explain(errno).into(),
    })?;
    // Before the mappings are read, so that none is missed.
    opened.track(true);
    let running = family.iter().filter_map(describe_files).collect();
    opened.sample(true);
    session.sample(0, began, opened, (&roots, running), &|| watch.signal().is_some());
    let report = session.reports()[0].clone();
    Ok((Recording::new(Runs::one(), None, Box::new(session).finish()), report))
}

/// The processes and their present descendants.
///
/// # Errors
/// A process does not exist or may not be sampled.
fn family(roots: &[u32]) -> Result<Vec<Process>, RecordError> {
    let mut known: BTreeSet<i32> = roots.iter().map(|&root| root as i32).collect();
    let roots = roots.iter().map(|&root| {
        let files = find(root)?.files;
        // What events may be attached to may be read as well.
        match files.maps() {
            Err(procfs::ProcError::PermissionDenied(_)) => Err(not_permitted(root)),
            _ => Ok(files),
        }
    });
    let mut family = roots.collect::<Result<Vec<Process>, _>>()?;
    let mut next = 0;
    while let Some(process) = family.get(next) {
        let tasks = process.tasks().into_iter().flatten().flatten();
        let children: BTreeSet<u32> = tasks.flat_map(|task| task.children().unwrap_or_default()).collect();
        let children = children.into_iter().map(|child| child as i32);
        let new = children.filter(|&child| known.insert(child));
        // Children with other privileges are not sampled.
        let new = new.filter_map(|child| Process::new(child).ok().filter(|child| child.maps().is_ok()));
        let new: Vec<Process> = new.collect();
        family.extend(new);
        next += 1;
    }
    Ok(family)
}

/// Ids of a process's threads.
fn threads(process: &Process) -> Vec<u32> {
    let tasks = process.tasks().into_iter().flatten().flatten();
    tasks.map(|task| task.tid as u32).collect()
}

/// A process's name and executable mappings; `None` if it has ended.
pub fn describe(process: u32) -> Option<RunningProcess> {
    describe_files(&Process::new(process as i32).ok()?)
}

fn describe_files(process: &Process) -> Option<RunningProcess> {
    let maps = process.maps().ok()?;
    let executable = maps
        .into_iter()
        .filter(|map| map.perms.contains(MMPermissions::EXECUTE));
    let mapping = |map: procfs::process::MemoryMap| match map.pathname {
        MMapPath::Path(path) => Some(RunningMapping {
            path: path.into_os_string().into_vec(),
            addresses: map.address.0..map.address.1,
            offset: map.offset,
            inode: map.inode,
        }),
        _ => None,
    };
    Some(RunningProcess {
        process: process.pid as u32,
        command: process.stat().ok()?.comm,
        mappings: executable.filter_map(mapping).collect(),
    })
}

fn not_permitted(process: u32) -> RecordError {
    RecordError::UnfitProcess {
        process,
        reason:
            "may not be sampled: it is another user's, or has other privileges; root may: `sudo pleach record --pid …`"
                .to_owned(),
    }
}

/// Each event is an open file: two for each thread and processor.
fn raise_limit_of_files() {
    // SAFETY: the structure lives here. Without success the present limit remains.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
