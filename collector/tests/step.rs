//! Records with the trap flag.

mod common;
mod programs;
