//! One function's record in the profile file. Identifier and graph hash are in the index.
//!
//! ```text
//! record       length and bytes of the name, samples, blocks, edges, counts,
//!              n, n × call site, n, n × value site, estimates (see `estimates`), predictions (see `predictions`),
//!              length and bytes of the graph (see `pleach_annotate::manifest`, payload); length 0 if it is not kept,
//!              sums (see `sum_records`), only of merged estimates
//! counts       tokens for the counts of all blocks and then of all edges
//! token        0, n: n + 1 zeros
//!              1, v: the new count v
//!              k ≥ 2: the (k−1)-th last new count again
//! call site    index of the call, n, n × target
//! target       GUID: 8 bytes, count
//! value site   number of the site (see [`ValueSite`]), bursts, count of other values, n, n × (value, count)
//! ```
//! Numbers are unsigned LEB128. The tokens save space because flow conservation makes the same count recur in many blocks
//! and edges, and because most functions never run.

use super::bytes::{RecordReader, push_number};
use super::data::{CallTargets, FunctionProfile, ValueCounts, ValueSite};
use super::{estimates, predictions, sum_records};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::manifest::{decode_graph, encode_graph};

/// Limit on the number of counts, which bounds the memory that a corrupt record can make the decoder allocate.
const MAX_COUNTS: u64 = 1 << 24;
/// Number of new counts that the encoder searches. A larger number would hardly find more.
const MAX_DISTANCE: usize = 120;

/// Appends a function's record.
pub(super) fn encode(function: &FunctionProfile, out: &mut Vec<u8>) {
    push_number(out, function.name.len() as u64);
    out.extend_from_slice(function.name.as_bytes());
    push_number(out, function.samples);
    push_number(out, function.blocks.len() as u64);
    push_number(out, function.edges.len() as u64);
    counts(out, function.blocks.iter().chain(&function.edges).copied());
    push_number(out, function.call_targets.len() as u64);
    for site in &function.call_targets {
        push_number(out, u64::from(site.call));
        push_number(out, site.targets.len() as u64);
        for &(target, count) in &site.targets {
            out.extend_from_slice(&target.0.to_le_bytes());
            push_number(out, count);
        }
    }
    push_number(out, function.values.len() as u64);
    for operand in &function.values {
        let numbers = [
            u64::from(operand.site.number()),
            operand.bursts,
            operand.others,
            operand.values.len() as u64,
        ];
        let pairs = operand.values.iter().flat_map(|&(value, count)| [value, count]);
        numbers
            .into_iter()
            .chain(pairs)
            .for_each(|number| push_number(out, number));
    }
    estimates::encode(function, out);
    predictions::encode(&function.predictions, out);
    let graph = function.graph.as_deref().map(encode_graph).unwrap_or_default();
    push_number(out, graph.len() as u64);
    out.extend(graph);
    sum_records::encode(function, out);
}

/// Why a function cannot be stored. The limits are those of the decoder.
pub(super) fn unstorable(function: &FunctionProfile) -> Option<&'static str> {
    if (function.blocks.len() + function.edges.len()) as u64 > MAX_COUNTS {
        return Some("it is too large");
    }
    estimates::unstorable(function)
        .or_else(|| predictions::unstorable(function))
        .or_else(|| sum_records::unstorable(function))
}

fn counts(out: &mut Vec<u8>, counts: impl Iterator<Item = u64>) {
    let mut seen = NewCounts::default();
    let mut zeros = 0u64;
    let flush = |out: &mut Vec<u8>, zeros: &mut u64| {
        if *zeros > 0 {
            push_number(out, 0);
            push_number(out, *zeros - 1);
            *zeros = 0;
        }
    };
    for count in counts {
        if count == 0 {
            zeros += 1;
            continue;
        }
        flush(out, &mut zeros);
        match seen.position(count) {
            Some(back) => push_number(out, back as u64 + 2),
            None => {
                push_number(out, 1);
                push_number(out, count);
                seen.push(count);
            }
        }
    }
    flush(out, &mut zeros);
}

/// New counts so far.
#[derive(Default)]
struct NewCounts {
    counts: Vec<u64>,
}

impl NewCounts {
    fn position(&self, count: u64) -> Option<usize> {
        self.counts.iter().rev().take(MAX_DISTANCE).position(|&c| c == count)
    }

    fn get(&self, back: u64) -> Option<u64> {
        self.counts.iter().rev().nth(usize::try_from(back).ok()?).copied()
    }

    fn push(&mut self, count: u64) {
        self.counts.push(count);
    }
}

/// Decodes a whole record. An error says what is malformed.
pub(super) fn decode(id: FunctionId, cfg_hash: CfgHash, record: &[u8]) -> Result<FunctionProfile, &'static str> {
    let (mut function, graph) = decode_but_graph(id, cfg_hash, record)?;
    if !graph.is_empty() {
        function.graph = Some(Box::new(decode_graph_of(&function, graph)?));
    }
    Ok(function)
}

/// Decodes the graph of a record.
pub(super) fn decode_graph_of(function: &FunctionProfile, graph: &[u8]) -> Result<Cfg, &'static str> {
    let graph = decode_graph(graph).ok_or("its graph is malformed")?;
    let shape = (graph.blocks.len(), graph.edge_count());
    if graph.hash() != function.cfg_hash || shape != (function.blocks.len(), function.edges.len()) {
        return Err("its graph is another");
    }
    Ok(graph)
}

/// Decodes a record with its graph left as it is stored: empty if it is not kept.
pub(super) fn decode_but_graph(
    id: FunctionId,
    cfg_hash: CfgHash,
    record: &[u8],
) -> Result<(FunctionProfile, &[u8]), &'static str> {
    let mut reader = RecordReader { bytes: record };
    let length = reader.number()?;
    let name = reader.take(length)?;
    let name = std::str::from_utf8(name)
        .map_err(|_| "the function's name is not text")?
        .to_owned();
    let samples = reader.number()?;
    let (blocks, edges) = (reader.number()?, reader.number()?);
    let total = blocks
        .checked_add(edges)
        .filter(|&t| t <= MAX_COUNTS)
        .ok_or("too many counts")?;
    let mut blocks_then_edges = reader.counts(total as usize)?;
    let edges = blocks_then_edges.split_off(blocks as usize);
    let call_targets = reader.call_targets()?;
    let values = reader.values()?;
    let estimates = estimates::decode(&mut reader, blocks_then_edges.len())?;
    let predictions = predictions::decode(&mut reader, blocks_then_edges.len())?;
    let length = reader.number()?;
    let graph = reader.take(length)?;
    let mut function = FunctionProfile {
        id,
        cfg_hash,
        name,
        graph: None,
        samples,
        blocks: blocks_then_edges,
        edges,
        call_targets,
        values,
        paths: estimates.paths,
        windows: estimates.windows,
        called: estimates.called,
        predictions,
        coverage: estimates.coverage,
        counted: estimates.counted,
        sums: None,
    };
    if !reader.bytes.is_empty() {
        function.sums = Some(Box::new(sum_records::decode(&mut reader, &function)?));
    }
    if !reader.bytes.is_empty() {
        return Err("bytes left over");
    }
    Ok((function, graph))
}

impl RecordReader<'_> {
    fn counts(&mut self, total: usize) -> Result<Vec<u64>, &'static str> {
        // Reserves no more than the remaining bytes suggest. Runs of zeros are bounded by `total`.
        let mut counts = Vec::with_capacity(total.min(self.bytes.len()));
        let mut seen = NewCounts::default();
        while counts.len() < total {
            match self.number()? {
                0 => {
                    let zeros = self.number()?.checked_add(1).ok_or("too many zeros")?;
                    if zeros > (total - counts.len()) as u64 {
                        return Err("too many zeros");
                    }
                    counts.resize(counts.len() + zeros as usize, 0);
                }
                1 => {
                    let count = self.number()?;
                    seen.push(count);
                    counts.push(count);
                }
                back => counts.push(seen.get(back - 2).ok_or("a count refers to one that is not there")?),
            }
        }
        Ok(counts)
    }

    fn call_targets(&mut self) -> Result<Vec<CallTargets>, &'static str> {
        let sites = self.number()?;
        let mut out = Vec::new();
        for _ in 0..sites {
            let call = u32::try_from(self.number()?).map_err(|_| "a call's number is too large")?;
            let mut targets = Vec::new();
            for _ in 0..self.number()? {
                let guid = FunctionGuid(u64::from_le_bytes(self.array()?));
                targets.push((guid, self.number()?));
            }
            out.push(CallTargets { call, targets });
        }
        Ok(out)
    }

    fn values(&mut self) -> Result<Vec<ValueCounts>, &'static str> {
        let mut out = Vec::new();
        for _ in 0..self.number()? {
            let site = u32::try_from(self.number()?).map_err(|_| "an operand's number is too large")?;
            let (bursts, others) = (self.number()?, self.number()?);
            let mut values = Vec::new();
            for _ in 0..self.number()? {
                values.push((self.number()?, self.number()?));
            }
            out.push(ValueCounts {
                site: ValueSite::from_number(site),
                bursts,
                values,
                others,
            });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::ModuleHash;
    use proptest::prelude::*;

    const ID: FunctionId = FunctionId {
        guid: FunctionGuid(7),
        module: ModuleHash(3),
    };

    fn function() -> impl Strategy<Value = FunctionProfile> {
        let count = || prop_oneof![3 => Just(0), 3 => 0u64..5, 1 => any::<u64>()];
        let targets = prop::collection::vec((any::<u64>().prop_map(FunctionGuid), any::<u64>()), 0..4);
        let sites = prop::collection::vec(
            (any::<u32>(), targets).prop_map(|(call, targets)| CallTargets { call, targets }),
            0..4,
        );
        let operands = (
            any::<u32>(),
            any::<u64>(),
            any::<u64>(),
            prop::collection::vec(any::<(u64, u64)>(), 0..4),
        );
        let values = prop::collection::vec(
            operands.prop_map(|(site, bursts, others, values)| ValueCounts {
                site: ValueSite::from_number(site),
                bursts,
                values,
                others,
            }),
            0..3,
        );
        (
            ".*",
            any::<u64>(),
            prop::collection::vec(count(), 0..300),
            prop::collection::vec(count(), 0..300),
            sites,
            values,
        )
            .prop_map(|(name, samples, blocks, edges, call_targets, values)| FunctionProfile {
                id: ID,
                cfg_hash: CfgHash(9),
                name,
                samples,
                blocks,
                edges,
                call_targets,
                values,
                ..FunctionProfile::default()
            })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(function in function()) {
            let mut record = Vec::new();
            encode(&function, &mut record);
            prop_assert_eq!(decode(ID, CfgHash(9), &record), Ok(function));
            for end in 0..record.len() {
                prop_assert!(decode(ID, CfgHash(9), &record[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_survived(record in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(ID, CfgHash(9), &record);
        }
    }

    #[test]
    fn a_function_that_never_ran_takes_a_few_bytes() {
        let mut record = Vec::new();
        let (blocks, edges) = (vec![0; 1000], vec![0; 1500]);
        let empty = FunctionProfile {
            id: ID,
            cfg_hash: CfgHash(0),
            name: "f".into(),
            samples: 0,
            blocks,
            edges,
            ..FunctionProfile::default()
        };
        encode(&empty, &mut record);
        assert_eq!(record.len(), 19);
    }
}
