//! Profiles for people and scripts.

pub mod compare;
pub mod coverage;
pub mod diff;
pub mod estimated;
pub mod evaluate;
pub mod flows;
pub mod foreign;
pub mod functions;
pub mod lines;
pub mod paths;
mod paths_text;
pub mod show;
mod tables;
mod text;
