//! One module per subcommand.

pub mod analyse;
mod binaries;
pub mod cargo;
pub mod collect;
pub mod coverage;
pub mod diff;
pub mod doctor;
pub mod drift;
pub mod evaluate;
mod events;
pub mod export;
pub mod flags;
pub mod import;
mod inputs;
pub mod merge;
pub mod order;
mod output;
pub mod overlap;
pub mod paths;
mod phase_watch;
pub mod phases;
mod profile_output;
mod progress;
pub mod record;
mod recorded;
pub mod recover;
pub mod report;
mod sampling;
pub mod shell;
pub mod show;
pub mod source;
pub mod summary;
mod terminal;

pub use terminal::TerminalArgs;
