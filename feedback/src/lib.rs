//! From branch vectors to profiles, and the decisions that rest on them.

pub mod profile;
