//! Tests of the `feedback` packages, in one binary.

mod accuracy;
mod ball_larus;
mod ball_larus_random;
mod build_summary;
mod counts;
mod counts_damage;
mod counts_exact;
mod coverage;
mod coverage_diff;
mod coverage_measure;
mod coverage_report;
mod credit;
mod estimated;
mod html;
mod inference;
mod iterations;
mod merge;
mod merge_order;
mod paths;
mod profile_file;
mod profile_text;
mod random_profile;
mod show;
mod source_paths;
mod superblock_check;
mod time_bias;
