//! Real programs, built in every variant and measured.
//!
//! A [`Workload`] is a real C program from a pinned package, with a driver, a recipe and inputs whose results are
//! known. The [`Bench`] fetches its sources, makes its inputs, builds it in any [`Variant`] (plain, with flags, or
//! guided by some profile) and measures the result: times of interleaved pairs of runs, instructions in cachegrind's
//! model, sizes and compile times.
//!
//! | phase | module |
//! |---|---|
//! | command-line options that the programs share | [`cli`] |
//! | recipes | [`workload`], [`suite`], [`sources`] |
//! | sources and inputs | [`fetch`], [`inputs`], [`bless`] |
//! | external tools and processes | [`tools`], [`process`], [`pleach_command`], [`parallel`], [`progress`] |
//! | building | [`build`], [`variant`] |
//! | running and measuring | [`run`], [`paired`], [`counts`], [`taken_branches`], [`count_cache`], [`size`] |
//! | exact counts of paths | [`exact_counts`] |
//! | recording | [`recorder`] |
//! | statistics and tables | [`stats`], [`table`] |
//!
//! The benches themselves are in `pleach-bench`, research tables in `pleach-papers`, correctness checks in
//! `pleach-check`.

pub mod bench;
pub mod bless;
pub mod build;
pub mod cli;
pub mod count_cache;
pub mod counts;
pub mod exact_counts;
pub mod fetch;
pub mod inputs;
pub mod paired;
pub mod parallel;
pub mod pleach_command;
pub mod process;
pub mod progress;
pub mod recorder;
pub mod run;
pub mod size;
pub mod sources;
pub mod stats;
pub mod suite;
pub mod table;
pub mod taken_branches;
pub mod tools;
pub mod variant;
pub mod workload;

pub use bench::Bench;
pub use build::{Binary, BuildConfig};
pub use counts::{Counts, Simulation};
pub use paired::Paired;
pub use run::RunResult;
pub use table::Table;
pub use variant::Variant;
pub use workload::{InputKind, Workload};
