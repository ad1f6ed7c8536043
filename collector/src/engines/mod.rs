//! Engines: each runs a command and produces branch vectors of it.
//!
//! [`preload`] loads the sampler into the program, for shadow execution and for single-stepping. [`lbr`] reads the
//! processor's branch records through the kernel. [`run_loop`] drives both through [`session`].

pub(crate) mod error;
pub mod lbr;
pub(crate) mod options;
pub mod preload;
pub(crate) mod run_loop;
pub(crate) mod session;
