//! Merges any number of files, in memory for the result alone.
//!
//! Each thread merges the functions of its share of identifiers, from all files in turn. A function that was never
//! executed has the same record in nearly all files; it is decoded once.

use super::function::is_idempotent;
use super::provenance::ProvenanceSum;
use super::{FunctionSums, MergeError, Merged, finish, whole_weights};
use crate::error::ProfileError;
use crate::events::merge_events;
use crate::file::ProfileFile;
use crate::record::decode_graph_of;
use pleach_annotate::id::{FunctionGuid, FunctionId, ModuleHash};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Why files could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] ProfileError),
    /// The files do not fit each other.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// Merges files, each with a weight, on `threads` threads. `watch` is told how many are done. Raw vectors are read if
/// all files have them and none has a weight.
///
/// # Errors
/// A file cannot be read or is damaged, or does not fit the others.
pub fn merge_files(files: &[(PathBuf, f64)], threads: usize, watch: &dyn Fn(u64)) -> Result<Merged, FilesError> {
    let weights: Vec<f64> = files.iter().map(|&(_, weight)| weight).collect();
    let weights = whole_weights(&weights)?;
    let files: Vec<(&PathBuf, u64)> = files.iter().map(|(path, _)| path).zip(weights).collect();
    let threads = threads.clamp(1, 64) as u64;
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (files, stop) = (&files, &stop);
    let shares = thread::scope(|scope| {
        let mut others = Vec::new();
        for share in 1..threads {
            others.push(scope.spawn(move || add_share(files, share..share + 1, threads, stop, |_| {})));
        }
        let count = |_| {
            watch(done.fetch_add(1, Ordering::Relaxed) + 1);
        };
        let mut shares = vec![add_share(files, 0..1, threads, stop, count)];
        for other in others {
            shares.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        shares
    });
    let mut functions = FunctionSums::default();
    for share in shares {
        functions.extend(share?);
    }
    let mut whole = ProvenanceSum::default();
    let (mut with_vectors, mut events) = (0, Vec::new());
    for (path, weight) in files {
        let file = ProfileFile::open(path)?;
        whole.add(file.anchor(), file.scale(), file.samples(), file.provenance()?, *weight)?;
        merge_events(&mut events, file.events()?, *weight);
        with_vectors += usize::from(file.has_vectors());
    }
    let mut vectors = Vec::new();
    if with_vectors == files.len() && files.iter().all(|(_, weight)| *weight == 1) {
        for (path, _) in files {
            vectors.extend(ProfileFile::open(path)?.vectors()?.map(<[u8]>::to_vec));
        }
    }
    let mut merged = finish(whole, functions, vectors, with_vectors);
    merged.profile.events = events;
    Ok(merged)
}

/// Merges the functions of one of `shares` equal ranges of identifiers.
fn add_share(
    files: &[(&PathBuf, u64)],
    share: std::ops::Range<u64>,
    shares: u64,
    stop: &AtomicBool,
    done: impl Fn(usize),
) -> Result<FunctionSums, FilesError> {
    let first = |share: u64| FunctionId {
        guid: FunctionGuid((u128::from(share) * (1 << 64) / u128::from(shares)) as u64),
        module: ModuleHash(0),
    };
    let mut sums = FunctionSums::default();
    for (at, (path, weight)) in files.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut add = || -> Result<(), FilesError> {
            let file = ProfileFile::open(path)?;
            let end = match share.end < shares {
                true => file.first_of(first(share.end)),
                false => file.len(),
            };
            add_records(&file, file.first_of(first(share.start))..end, *weight, &mut sums)
        };
        add().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        done(at);
    }
    Ok(sums)
}

/// Adds some records of a file.
fn add_records(
    file: &ProfileFile,
    records: std::ops::Range<usize>,
    weight: u64,
    sums: &mut FunctionSums,
) -> Result<(), FilesError> {
    sums.begin_profile();
    for at in records {
        let entry = file.entry(at);
        if sums.knows(entry.key(), entry.checksum) {
            sums.note(entry.id);
            continue;
        }
        let (function, graph) = file.record_but_graph(at)?;
        // A graph that is known is not decoded again.
        if !graph.is_empty() && !sums.has_graph(entry.key(), graph) {
            decode_graph_of(&function, graph).map_err(|what| file.damaged(&entry, what))?;
        }
        let is_idempotent = is_idempotent(&function);
        let sum = sums.add(function, graph, weight)?;
        if is_idempotent {
            sum.remember(entry.checksum);
        }
    }
    Ok(())
}
