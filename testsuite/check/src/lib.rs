//! Checks that compiling with a profile changes no program's behaviour, and that exact counts are exact.
//!
//! | check | module |
//! |---|---|
//! | random C programs with random profiles, at every level and anchor | [`random_programs`] |
//! | random shell scripts, recorded and not | [`random_scripts`] |
//! | programs' own test suites with random profiles | [`suites`] |
//! | exact counts: flows balance; paths, edges and clang's instrumentation agree | [`verify`] |
//! | what one thread executed, instruction by instruction | [`trace`], [`stepper`] |
//! | the plugin's summary lines, which say that a check exercised something | [`summary_lines`] |
//!
//! `pleach-random`, `pleach-scripts` and `pleach-bench suites|verify` run the first four; the end-to-end tests run all on small inputs.

pub mod random_programs;
pub mod random_scripts;
pub mod stepper;
pub mod suites;
pub mod summary_lines;
pub mod trace;
pub mod verify;
