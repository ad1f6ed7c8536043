//! Finds profiles of older versions of functions that the profile does not have as they are.
//! `pleach_decide::stale` says what they are worth.

use crate::error::PassError;
use crate::ir::FunctionIr;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_decide::stale::{MatchKind, Salvaged, rename, salvage, without_samples};
use pleach_profile::FunctionProfile;
use pleach_profile::file::{ProfileFile, RecordKey, SourceHash};
use rustc_hash::{FxHashMap, FxHashSet};

/// Profiles of functions that changed, by identifier.
pub type Found = FxHashMap<FunctionId, Salvaged>;

/// Salvages profiles for the functions of a module that changed. `names`: of all functions that the module names.
///
/// # Errors
/// A record is damaged.
pub fn find(
    file: &ProfileFile,
    functions: &[FunctionIr<'_>],
    names: &FxHashSet<FunctionGuid>,
) -> Result<Found, PassError> {
    let mut found = Found::default();
    let mut unnamed = Vec::new();
    for cfg in functions.iter().map(|function| &function.cfg) {
        if file.has(cfg.id, cfg.hash()) {
            continue;
        }
        match of_name(file, cfg)? {
            Some(salvaged) => {
                found.insert(cfg.id, salvaged);
            }
            None if file.keys_of(cfg.id.guid).next().is_none() => unnamed.push(cfg),
            None => {}
        }
    }
    for (cfg, old) in renamed(file, &unnamed, names)? {
        let match_kind = MatchKind::Renamed(old.name.clone());
        if let Some(salvaged) = salvage(&old, cfg, match_kind, file.scale()) {
            found.insert(cfg.id, salvaged);
        }
    }
    Ok(found)
}

/// What the records of a function's name are worth: the one of its module, else of its source file, else the one with
/// most samples. Local functions of different files often have one name: they must be much alike.
fn of_name(file: &ProfileFile, cfg: &Cfg) -> Result<Option<Salvaged>, PassError> {
    let source = Some(SourceHash::of_name(&cfg.source_file));
    let mut records = Vec::new();
    for key in file.keys_of(cfg.id.guid) {
        let record = file.record(key)?;
        records.push((key, key.source == source, record));
    }
    let is_one = |(key, in_file, record): &&(RecordKey, bool, FunctionProfile)| {
        let is_local = cfg.id.module != ModuleHash(0) || record.id.module != ModuleHash(0);
        key.id == cfg.id
            || *in_file
            || !is_local
            || record
                .graph
                .as_deref()
                .is_some_and(|graph| rename::is_moved(graph, cfg))
    };
    let sampled = records.iter().filter(|(.., record)| record.samples > 0).filter(is_one);
    let best = sampled.max_by_key(|(key, in_file, record)| (key.id == cfg.id, *in_file, record.samples));
    if let Some((key, _, record)) = best {
        let match_kind = if key.cfg_hash == cfg.hash() {
            MatchKind::OtherModule
        } else {
            MatchKind::ChangedGraph
        };
        return Ok(salvage(record, cfg, match_kind, file.scale()));
    }
    let is_own =
        |key: &RecordKey| key.id == cfg.id || (cfg.id.module == ModuleHash(0) && key.id.module == ModuleHash(0));
    let unsampled = records.into_iter().filter(|(.., record)| record.samples == 0);
    let (own, records): (Vec<bool>, Vec<FunctionProfile>) =
        unsampled.map(|(key, _, record)| (is_own(&key), record)).unzip();
    let match_kind = if own.contains(&true) {
        MatchKind::Unsampled
    } else {
        MatchKind::SameNameUnsampled
    };
    Ok((!records.is_empty()).then(|| Salvaged {
        profile: without_samples(&records, cfg),
        match_kind,
        matched_blocks: 0,
        matched_flow: 0.0,
        older_paths: None,
    }))
}

/// Functions with new names, each with the record of the function that it was: one of the same source file that is much
/// like it, or one of any file that is equal.
fn renamed<'c>(
    file: &ProfileFile,
    new: &[&'c Cfg],
    names: &FxHashSet<FunctionGuid>,
) -> Result<Vec<(&'c Cfg, FunctionProfile)>, PassError> {
    let Some(any) = new.first() else {
        return Ok(Vec::new());
    };
    let source = SourceHash::of_name(&any.source_file);
    let gone = file.keys().filter(|key| !names.contains(&key.id.guid));
    let (mut here, mut by_hash): (Vec<FunctionProfile>, FxHashMap<CfgHash, Vec<RecordKey>>) = Default::default();
    for key in gone {
        match key.source {
            Some(of) if of == source => here.push(file.record(key)?),
            Some(_) => by_hash.entry(key.cfg_hash).or_default().push(key),
            None => {}
        }
    }
    here.retain(|record| record.graph.is_some());
    let graphs: Vec<&Cfg> = here.iter().filter_map(|record| record.graph.as_deref()).collect();
    let mut pairs = Vec::new();
    for (&cfg, old) in new.iter().zip(rename::renamed(&graphs, new)) {
        if let Some(old) = old {
            pairs.push((cfg, here[old].clone()));
        } else if let Some([key]) = by_hash.get(&cfg.hash()).map(Vec::as_slice) {
            let record = file.record(*key)?;
            if record
                .graph
                .as_deref()
                .is_some_and(|graph| rename::is_renamed(graph, cfg))
            {
                pairs.push((cfg, record));
            }
        }
    }
    Ok(pairs)
}
