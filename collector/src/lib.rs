//! Engines that produce branch vectors, and the files that hold them. Knows nothing of IR and nothing of paths.
//!
//! In the order of a recording:
//! 1. [`events`]: the events that a user names; [`mod@record`] chooses the engine; [`launch`] examines the command,
//!    [`redirect`] redirects its streams;
//! 2. [`engines`]: one run loop, and two engines: the sampler in the program (`pleach-preload`, which the preloaded
//!    `pleach-stub` loads, and which uses `pleach-shadow`), and the processor's branch records;
//!    [`detached`]: recordings of programs that something else starts;
//! 3. [`convert`]: the shards that sampled processes write (`pleach-wire`) → a [`vector::VectorSet`];
//!    `coverage`: the plans of breakpoints, and what they showed;
//! 4. [`stream`]: compression of long recordings; [`watch`]: bursts as they arrive;
//! 5. [`mod@file`]: the vector file; [`stats`], [`verify`]: figures and checks of a recording;
//! 6. [`perf`]: import and export of perf.data and of `perf script`'s text.

mod convergence;
pub mod convert;
mod coverage;
pub mod detached;
pub mod engines;
pub mod events;
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
pub mod watch;

pub use pleach_wire::threads;
pub use signals::survive_file_size_limit;
