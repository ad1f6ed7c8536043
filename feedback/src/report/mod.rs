//! Profiles for people and scripts.

pub mod paths;
mod paths_text;
pub mod show;
mod tables;
mod text;
