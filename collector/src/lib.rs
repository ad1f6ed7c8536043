//! Engines that produce branch vectors, and the files that hold them.
//!
//! This crate knows nothing of IR and nothing of paths.
//!
//! [`record`] runs a command with the sampler (the package `pleach-preload`) preloaded. The sampler leaves [`shard`]s;
//! [`convert`] makes a [`vector::VectorSet`] of them, which [`mod@file`] keeps. Where the processor records branches,
//! [`lbr`] reads them through the kernel, and [`perf`] imports what others have read. Without the feature `tools` only what the
//! sampler itself needs is left.

pub mod clock;
pub mod shadow;
pub mod shard;
pub mod stream;
pub mod vector;
pub mod x86;

#[cfg(feature = "tools")]
pub mod calibrate;
#[cfg(feature = "tools")]
pub mod convert;
#[cfg(feature = "tools")]
pub mod file;
#[cfg(feature = "tools")]
mod gather;
#[cfg(feature = "tools")]
pub mod launch;
#[cfg(feature = "tools")]
pub mod lbr;
#[cfg(feature = "tools")]
pub mod perf;
#[cfg(feature = "tools")]
pub mod record;
#[cfg(feature = "tools")]
pub mod redirect;
#[cfg(feature = "tools")]
mod signals;
#[cfg(feature = "tools")]
pub mod stats;
#[cfg(feature = "tools")]
mod store;
#[cfg(feature = "tools")]
pub mod verify;
