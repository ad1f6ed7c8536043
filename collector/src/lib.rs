//! Engines that produce branch vectors, and the files that hold them. Knows nothing of IR and nothing of paths.
//!
//! In the order of a recording:
//! 1. [`mod@record`]: one run loop for all engines; [`launch`] examines the command, [`redirect`] its streams;
//! 2. [`engines`]: the preloaded sampler (`pleach-preload`, which uses `pleach-shadow`), and branch records;
//! 3. [`convert`]: the shards that sampled processes write (`pleach-wire`) → a [`vector::VectorSet`];
//! 4. [`stream`]: compression of long recordings;
//! 5. [`mod@file`]: the vector file; [`stats`], [`verify`]: what a recording says of itself;
//! 6. [`perf`]: import and export of perf.data and of `perf script`'s text.

pub mod convert;
pub mod engines;
pub mod file;
pub mod launch;
pub mod perf;
pub mod record;
pub mod redirect;
mod signals;
pub mod stats;
mod store;
pub mod stream;
mod sys;
pub mod vector;
pub mod verify;
