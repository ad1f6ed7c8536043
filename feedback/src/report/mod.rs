//! Profiles for people and scripts.

mod evaluate;
pub mod paths;
mod paths_text;
pub mod show;
mod tables;
mod text;
