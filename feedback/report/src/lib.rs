//! Profiles, paths and coverage as tables for people and JSON for scripts. Each report is a struct with `to_json` and
//! `to_text`; computing it, and printing it, have no side effects.
//!
//! 1. [`show`] and `text`: one profile: totals, functions, and blocks, edges and calls in detail.
//! 2. [`paths`], [`estimated`] and `paths_text`: exact and estimated paths; [`source_paths`]: their lines and calls;
//!    [`sequences`]: k-iteration paths and paths across calls; [`events`]: paths that lead to events.
//! 3. [`functions`]: the functions with the most executions.
//! 4. [`flows`], [`compare`] and [`diff`]: comparisons of two profiles; [`drift`]: whether an old one still fits.
//! 5. [`coverage`] and `coverage_text`: executed and not executed blocks; [`coverage_diff`] and `coverage_diff_text`:
//!    what one profile executes and another does not; [`block_state`] and [`frequency`]: what a profile says about one
//!    block.
//! 6. [`lines`]: source lines; [`lcov`] and [`listing`] print them.
//! 7. [`foreign`] and [`exclude`]: remove counts that do not belong to a program, and functions.
//! 8. [`evaluate`]: figures of accuracy.
//! 9. [`summary`]: what `flags use` did in a build, from optimisation records.
//! 10. [`html`]: all of it as a page; [`phases`]: a recording over time.
//! 11. [`profile_text`]: a profile as text, and back.
//! 12. [`names`]: how names of functions are shown and found;
//!     `tables` and `ranges`: the layout of all tables, and numbers as ranges; [`decorate`]: colours and bars;
//!     [`envelope`]: what all JSON begins with.

pub mod block_state;
pub mod compare;
pub mod coverage;
pub mod coverage_diff;
mod coverage_diff_text;
mod coverage_text;
pub mod decorate;
pub mod diff;
pub mod drift;
pub mod envelope;
pub mod estimated;
pub mod evaluate;
pub mod events;
pub mod exclude;
pub mod flows;
pub mod foreign;
pub mod frequency;
pub mod functions;
pub mod html;
pub mod lcov;
pub mod lines;
pub mod listing;
pub mod names;
pub mod paths;
mod paths_text;
pub mod phases;
pub mod profile_text;
mod ranges;
pub mod sequences;
pub mod show;
pub mod source_json;
pub mod source_paths;
pub mod summary;
mod table;
mod tables;
mod text;
