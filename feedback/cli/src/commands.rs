//! One module per subcommand.

pub mod doctor;
pub mod export;
pub mod flags;
pub mod import;
pub mod merge;
pub mod paths;
pub mod record;
pub mod show;
