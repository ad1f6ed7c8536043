//! The vector file, and what is exported of it.

use crate::input::Input;
use pleach_collector::perf::export::{ExportOptions, perf_data, perf_script, stacks};
use pleach_collector::perf::import_bytes;
use pleach_collector::vector::VectorSet;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Raw; or a container whose checksum is right; or a payload in an intact container.
pub fn vector_file(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 6 {
        0 => check(input.0),
        1 => {
            let (version, length) = (input.u8(), input.number());
            check(&container(version, length, input.0));
        }
        version => {
            let compressed = zstd::bulk::compress(input.0, 1).expect("memory");
            check(&container(b'0' + version - 1, input.0.len() as u64, &compressed));
        }
    }
}

fn container(version: u8, length: u64, compressed: &[u8]) -> Vec<u8> {
    let length = length.to_le_bytes();
    let mut hash = Xxh3::new();
    hash.update(&length);
    hash.update(compressed);
    let mut out = b"PLEACHV".to_vec();
    out.push(version);
    out.extend(length);
    out.extend(hash.digest().to_le_bytes());
    out.extend(compressed);
    out
}

fn check(bytes: &[u8]) {
    if let Ok(set) = VectorSet::from_bytes(bytes) {
        check_set(&set);
        check_export(&set);
    }
}

/// A set comes back as it was written, and refers to nothing that it does not have. As bytes: times may be no numbers.
pub fn check_set(set: &VectorSet) {
    let written = set.to_bytes();
    let read = VectorSet::from_bytes(&written).expect("what was written is read");
    assert_eq!(read.to_bytes(), written);
    let processes = set.processes.len();
    assert!(set.bursts.iter().all(|burst| (burst.process as usize) < processes));
    let mappings = set.modules.iter().flat_map(|module| &module.mappings);
    assert!(mappings.clone().all(|mapping| (mapping.process as usize) < processes));
    for hardware in set.bursts.iter().filter_map(|burst| burst.hardware.as_ref()) {
        assert!((hardware.event.0 as usize) < set.events.len());
    }
}

/// An exported recording can be read again, with no more branches than were written.
pub fn check_export(set: &VectorSet) {
    let options = ExportOptions { depth: 5 };
    if stacks(set, options) > 1000 {
        return;
    }
    let (binary, exported) = perf_data(set, options);
    // Without any stack, a file looks like one that `perf record` did not finish.
    if exported.stacks == 0 {
        return;
    }
    let read = import_bytes(Path::new("exported"), &binary, None).expect("an intact file");
    assert_eq!(read.report.damage, None);
    assert_eq!(read.report.malformed, 0, "{:?}", read.report.first_malformed);
    assert!(read.report.branches <= exported.branches && read.report.samples == exported.stacks);
    let _ = perf_script(set, options);
}
