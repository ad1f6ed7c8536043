//! Results of one program's stream.

use super::compact::CompactRecording;
use super::curve::{Curve, Point};

/// The measurements of one program's stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The program.
    pub workload: String,
    /// Bursts in which it was recorded.
    pub bursts: u64,
    /// Taken branches.
    pub branches: u64,
    /// Events of its edge and call-target profiles.
    pub events: u64,
    /// Different ones.
    pub distinct: u64,
    /// Instructions in which they occurred.
    pub instructions: u64,
    /// By compressor.
    pub curves: Vec<Curve>,
    /// By size of the table ([`TABLE_BITS`](super::TABLE_BITS)).
    pub table_sizes: Vec<Point>,
    /// Recordings reduced to an eighth of the size.
    pub compact: CompactRecording,
}
