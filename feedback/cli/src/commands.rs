//! One module per subcommand.

pub mod doctor;
pub mod evaluate;
pub mod export;
pub mod flags;
pub mod import;
pub mod merge;
pub mod paths;
mod progress;
pub mod record;
mod sampling;
pub mod show;
