//! Results of one program's stream.

use super::compact::CompactRecording;
use super::curve::{Curve, Point};
use super::progress::Progress;

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
    /// While the stream goes on.
    pub progress: Vec<Progress>,
    /// Recordings reduced to an eighth of the size.
    pub compact: CompactRecording,
}

/// The measurements of the values that one program loads.
#[derive(Clone, Debug)]
pub struct LoadStream {
    /// The program.
    pub workload: String,
    /// Loads.
    pub events: u64,
    /// Different ones: the same load of the same value is one.
    pub distinct: u64,
    /// Executed instructions.
    pub instructions: u64,
    /// By compressor.
    pub curves: Vec<Curve>,
    /// While the stream goes on.
    pub progress: Vec<Progress>,
}
