//! One module per subcommand.

pub mod doctor;
pub mod flags;
pub mod merge;
pub mod paths;
pub mod record;
pub mod show;
