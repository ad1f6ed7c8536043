//! Engines: each runs a command and produces branch vectors of it.
//!
//! [`preload`] loads the sampler into the program, for shadow execution and for single-stepping. `ptrace` runs ahead of
//! programs from outside. [`lbr`] reads the processor's branch records through the kernel. `kernel_events` samples page
//! faults and the like beside the sampler. [`run_loop`] drives them through [`session`]; `running` finds processes that
//! are recorded from outside.

pub(crate) mod error;
mod kernel_events;
pub mod lbr;
pub(crate) mod options;
pub mod preload;
pub mod ptrace;
pub(crate) mod run_loop;
pub(crate) mod running;
pub(crate) mod session;
