//! Records by shadow execution.

mod common;
mod programs;
