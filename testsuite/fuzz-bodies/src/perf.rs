//! Recordings of perf's: perf.data and the text of `perf script`.

use crate::vectors::{check_export, check_set};
use pleach_collector::perf::import_bytes;
use std::path::Path;

/// Any bytes behind the magic of perf.data.
pub fn perf_data(data: &[u8]) {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(data);
    import(&bytes);
}

/// Any text.
pub fn perf_script(data: &[u8]) {
    if !data.starts_with(b"PERFILE2") {
        import(data);
    }
}

fn import(bytes: &[u8]) {
    let Ok(imported) = import_bytes(Path::new("input"), bytes, None) else {
        return;
    };
    let (set, report) = (&imported.vectors, &imported.report);
    assert_eq!(report.vectors, set.bursts.len() as u64);
    let branches = set.bursts.iter().map(|burst| burst.branches.len() as u64);
    assert_eq!(report.branches, branches.sum::<u64>());
    assert!(report.vectors <= report.samples);
    // The shortest branch of a text has eight bytes; in a file that is not compressed, a branch has 24.
    assert!(report.branches <= bytes.len() as u64 * 1024);
    check_set(set);
    check_export(set);
}
