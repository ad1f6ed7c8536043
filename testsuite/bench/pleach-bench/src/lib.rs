//! Real programs, and the measures that pleach is judged by on them.
//!
//! A [`Workload`] is a real C program from a pinned package, with a driver, a recipe and inputs whose results are
//! known. The [`Bench`] fetches its sources, makes its inputs, builds it in any [`Variant`] (plain, with flags, or
//! guided by some profile) and measures what comes out: times of interleaved pairs of runs, instructions in
//! cachegrind's model, sizes and compile times.
//!
//! | phase | module |
//! |---|---|
//! | recipes | [`workload`] |
//! | sources and inputs | [`fetch`], [`inputs`] |
//! | building | [`build`], [`variant`] |
//! | measuring | [`run`], [`paired`], [`counts`], [`taken`], [`count_cache`], [`size`] |
//! | exact counts of paths | [`counted`], [`predict`], [`path_figures`], [`verify`] |
//! | recording | [`rates`], [`streams`], [`bias`], [`coverage`] |
//! | estimates against exact counts | [`accuracy`] |
//! | random programs with random profiles | [`random_programs`] |
//! | programs' own tests with random profiles | [`suites`], [`said`] |
//! | against others, and against itself with parts left out | [`compare`], [`peers`], [`ablate`] |
//! | summing up | [`stats`], [`matrix`], [`table`] |

pub mod ablate;
pub mod accuracy;
pub mod bench;
pub mod bias;
pub mod bless;
pub mod build;
pub mod compare;
pub mod count_cache;
pub mod counted;
pub mod counts;
pub mod coverage;
pub mod fetch;
pub mod inputs;
pub mod matrix;
pub mod paired;
pub mod parallel;
pub mod path_figures;
pub mod peers;
pub mod predict;
pub mod process;
pub mod progress;
pub mod random_programs;
pub mod rates;
pub mod run;
pub mod said;
pub mod size;
pub mod stats;
pub mod streams;
pub mod suites;
pub mod table;
pub mod taken;
pub mod tools;
pub mod trace;
pub mod variant;
pub mod verify;
pub mod workload;

pub use bench::Bench;
pub use build::{Binary, BuildConfig};
pub use counts::{Counts, Simulation};
pub use paired::Paired;
pub use run::RunResult;
pub use table::Table;
pub use variant::Variant;
pub use workload::{InputKind, Workload};
