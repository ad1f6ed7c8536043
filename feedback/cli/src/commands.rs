//! One module per subcommand.

pub mod doctor;
pub mod export;
pub mod flags;
pub mod import;
pub mod merge;
pub mod paths;
mod progress;
pub mod record;
pub mod show;
