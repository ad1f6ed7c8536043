//! The bodies of the fuzz targets; the files in `testsuite/fuzz/fuzz_targets` only call them. A crate of the workspace,
//! so that its tests need no other build.
//!
//! Most formats have checksums, which mutations break: besides raw bytes, each target reads its input with corrected
//! checksums. Targets check more than the absence of panics: decoded data survives a round trip, references are within
//! bounds, and memory stays below the limit that `testsuite/fuzz/run` sets. Two targets are no decoders: `decide` gives the compiler
//! plugin's decisions any profile of any graph, `phases` the detector of phases any bursts.

mod annotated;
mod counts;
mod decide;
mod elf;
mod input;
mod perf;
mod phases;
mod profile;
mod profile_text;
mod sample_profile;
pub mod seeds;
mod shard;
mod vectors;

pub use annotated::{block_addresses, manifest, pseudo_probe};
pub use counts::{count_file, exact_counts};
pub use decide::decide;
pub use elf::elf;
pub use perf::{perf_data, perf_script};
pub use phases::phases;
pub use profile::profile;
pub use profile_text::profile_text;
pub use sample_profile::sample_profile;
pub use shard::shard;
pub use vectors::vector_file;

/// A target: its name and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 15] = [
    ("vector_file", vector_file),
    ("shard", shard),
    ("perf_data", perf_data),
    ("perf_script", perf_script),
    ("manifest", manifest),
    ("block_addresses", block_addresses),
    ("pseudo_probe", pseudo_probe),
    ("elf", elf),
    ("profile", profile),
    ("profile_text", profile_text),
    ("sample_profile", sample_profile),
    ("count_file", count_file),
    ("exact_counts", exact_counts),
    ("decide", decide),
    ("phases", phases),
];
