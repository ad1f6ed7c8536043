//! Phases of a program's execution, from its sampled bursts.
//!
//! A phase is a span of execution whose bursts have one distribution of branch traces and one behaviour (Chen et
//! al. 2003, section 4; sections named in this crate are of that paper). In the order of the data:
//!
//! 1. [`signature`]: a burst → the shares of its branch traces, and its behaviour;
//! 2. [`bound`]: how likely chance is to explain a difference of two samples of bursts;
//! 3. [`compare`]: two samples of bursts → the share of time that differs, and that likelihood;
//! 4. [`batch`]: bursts with the sums of their traces; [`reference`]: a bounded sample of a phase's bursts;
//! 5. [`detector`]: a stream of bursts → begins and ends of phases, in bounded memory;
//! 6. [`marks`]: times at which code was first executed → changes that bursts prove there;
//! 7. [`timeline`]: the phases of a whole recording: spans of time, and the phase of each burst.
//!
//! Nothing here reads a clock, a file or a random number: equal bursts give equal phases.

pub mod batch;
pub mod bound;
pub mod compare;
pub mod detector;
pub mod marks;
pub mod reference;
pub mod signature;
pub mod timeline;

pub use detector::{Change, Detector, Event, Interval, PhaseId};
pub use signature::Signature;
pub use timeline::{Timeline, TimelineError};
