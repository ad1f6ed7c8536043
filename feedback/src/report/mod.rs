//! Profiles for people and scripts.

pub mod show;
mod text;
