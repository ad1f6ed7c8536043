//! Encodes a profile as a file's content. `pleach-store` writes it.

use super::data::{FunctionProfile, Profile};
use super::events;
use super::layout::{ENTRY, Header, IndexEntry, Section, record_checksum, source_hash};
use super::record;
use super::summary::ProfileSummary;
use xxhash_rust::xxh3::xxh3_64;

/// The content of a profile file, as consecutive parts.
#[derive(Debug)]
pub struct Encoded<'p> {
    header: Vec<u8>,
    index: Vec<u8>,
    records: Vec<u8>,
    provenance: Vec<u8>,
    events: Vec<u8>,
    vectors: &'p [u8],
}

impl Encoded<'_> {
    /// The parts, in the order of the file.
    pub fn parts(&self) -> [&[u8]; 6] {
        [
            &self.header,
            &self.index,
            &self.records,
            &self.provenance,
            &self.events,
            self.vectors,
        ]
    }
}

/// Encodes a profile. Functions are sorted.
///
/// # Errors
/// Says what cannot be stored: for instance, a function that occurs twice, or counts that are no numbers.
pub fn encode(profile: &Profile) -> Result<Encoded<'_>, String> {
    let functions = sorted(profile)?;
    if !(profile.scale.is_finite() && profile.scale >= 0.0) {
        return Err(format!("its scale is {}", profile.scale));
    }
    let mut index = Vec::with_capacity(functions.len() * ENTRY);
    let mut records = Vec::new();
    for function in &functions {
        if let Some(what) = record::unstorable(function) {
            return Err(format!("function {}: {what}", function.name));
        }
        let start = records.len();
        record::encode(function, &mut records);
        let content = &records[start..];
        let length = u32::try_from(content.len()).ok();
        let entry = IndexEntry {
            id: function.id,
            cfg_hash: function.cfg_hash,
            offset: start as u64,
            length: length.ok_or_else(|| format!("function {} is too large", function.name))?,
            checksum: record_checksum(function.id, function.cfg_hash, content),
            source: function
                .graph
                .as_deref()
                .map_or(0, |graph| source_hash(&graph.source_file)),
        };
        entry.encode(&mut index);
    }
    let provenance = provenance(profile)?;
    let events = events::encode(&profile.events)?;
    let header = header(profile, &index, &records, &provenance, &events).encode();
    Ok(Encoded {
        header,
        index,
        records,
        provenance,
        events,
        vectors: profile.vectors.as_deref().unwrap_or_default(),
    })
}

fn sorted(profile: &Profile) -> Result<Vec<&FunctionProfile>, String> {
    let mut functions: Vec<&FunctionProfile> = profile.functions.iter().collect();
    functions.sort_by_key(|f| (f.id, f.cfg_hash));
    match functions
        .windows(2)
        .find(|f| (f[0].id, f[0].cfg_hash) == (f[1].id, f[1].cfg_hash))
    {
        Some(twice) => Err(format!("function {} ({}) occurs twice", twice[0].name, twice[0].id)),
        None => Ok(functions),
    }
}

fn provenance(profile: &Profile) -> Result<Vec<u8>, String> {
    let p = &profile.provenance;
    if !(p.program_cpu_seconds.is_finite() && p.own_cpu_seconds.is_finite()) {
        return Err("its CPU seconds are not numbers".into());
    }
    serde_json::to_vec(p).map_err(|e| e.to_string())
}

fn header(profile: &Profile, index: &[u8], records: &[u8], provenance: &[u8], events: &[u8]) -> Header {
    let mut offset = Header::length(!events.is_empty()) as u64;
    let mut section = |bytes: &[u8], checked: bool| {
        let section = Section {
            offset,
            length: bytes.len() as u64,
            checksum: if checked { xxh3_64(bytes) } else { 0 },
        };
        offset += section.length;
        section
    };
    Header {
        anchor: profile.anchor,
        scale: profile.scale,
        samples: profile.functions.iter().fold(0, |sum, f| sum.saturating_add(f.samples)),
        path_flow: profile.path_flow(),
        has_vectors: profile.vectors.is_some(),
        has_sums: profile.provenance.sums.is_some() || profile.functions.iter().any(|f| f.sums.is_some()),
        index: section(index, true),
        records: section(records, false),
        provenance: section(provenance, true),
        events: section(events, true),
        vectors: section(profile.vectors.as_deref().unwrap_or_default(), true),
        summary: ProfileSummary::from_functions(&profile.functions),
    }
}
