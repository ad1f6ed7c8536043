//! From branch vectors to profiles.
//!
//! In the order of the data:
//! 1. [`program`]: the recorded modules and their address maps;
//! 2. [`decode`]: burst → sequence of IR blocks; [`replay`]: decodes once, for all observers;
//! 3. `probe_walker`: from one probe to the next; [`block_counts`]: blocks and edges counted for each inline instance;
//!    [`time_bias`]: the weight of each branch;
//! 4. [`pleach_inference`]: counts that conserve flow;
//! 5. [`partial_paths`]: partial paths of each activation; [`iterations`]: windows of consecutive paths;
//! 6. [`credit`]: partial paths → path profile with intervals;
//! 7. [`prediction`], [`coverage`]: how well branches are predicted, which blocks certainly ran;
//! 8. [`analyse`]: all phases, into one profile; [`exact_profile`]: the same from exact counts;
//! 9. [`events`]: paths that lead to events; [`stacks`]: call stacks; [`instances`]: counts of each inline instance;
//! 10. [`phases`]: the profile of each phase of a recording;
//! 11. [`evaluate`], [`accuracy`], [`regions`]: estimates against exact counts.

pub mod accuracy;
pub mod analyse;
pub mod block_counts;
pub mod coverage;
pub mod credit;
pub mod decode;
pub mod evaluate;
pub mod events;
pub mod exact_profile;
pub mod instances;
pub mod iterations;
mod lanes;
pub mod partial_path;
pub mod partial_paths;
pub mod phases;
pub mod prediction;
mod probe_walker;
pub mod program;
pub mod regions;
pub mod replay;
pub mod replicates;
pub mod stacks;
pub mod time_bias;
mod unwinding;
