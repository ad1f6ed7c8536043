//! What can be wrong with a duplication.

use std::fmt;

/// What is wrong with a duplication.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Not one origin for each block.
    Origins {
        /// Blocks after duplication.
        blocks: usize,
        /// Origins given.
        origins: usize,
    },
    /// A block is said to be a copy of one that never was.
    NoOrigin {
        /// The block after duplication.
        block: usize,
        /// Its alleged origin.
        origin: usize,
    },
    /// The function begins elsewhere, or not at all.
    Entry {
        /// The origin of the entry after duplication, if there is an entry.
        origin: Option<usize>,
    },
    /// Another block is a copy of the entry.
    EntryCopied {
        /// The copy.
        block: usize,
    },
    /// A block that begins with an exception-handling pad has several copies.
    PadCopied {
        /// The second copy.
        block: usize,
        /// The pad.
        origin: usize,
    },
    /// A copy became, or is no longer, an exception-handling pad.
    Pad {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// A copy ends otherwise than its origin.
    Terminator {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// A copy has more or fewer successor slots than its origin.
    Slots {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
        /// The block's successor slots.
        slots: usize,
        /// Those of its origin.
        before: usize,
    },
    /// A copy goes where its origin did not go.
    Successor {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
        /// The slot.
        slot: usize,
        /// Where the slot leads.
        to: usize,
        /// Where it led.
        before: usize,
    },
    /// A copy does not make the calls of its origin.
    Calls {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// Not one count for each block and edge.
    Counts {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// How many counts there should be.
        things: usize,
        /// How many there are.
        counts: usize,
    },
    /// A count that nothing can have.
    Count {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// The count's position in its list.
        position: usize,
        /// The count.
        count: f64,
    },
    /// Copies are not executed as often as their origin was.
    BlockSum {
        /// The block before duplication.
        origin: usize,
        /// Executions before.
        before: f64,
        /// Sum of its copies' executions.
        after: f64,
    },
    /// An edge's copies are not taken as often as it was.
    EdgeSum {
        /// The block before duplication.
        origin: usize,
        /// The successor slot.
        slot: usize,
        /// How often it was taken before.
        before: f64,
        /// Sum of its copies.
        after: f64,
    },
    /// A copy is entered more or less often than executed, beyond what its origin was.
    Entered {
        /// The block after duplication.
        block: usize,
        /// Its count.
        count: f64,
        /// Sum of the edges to it.
        entered: f64,
    },
    /// A copy is left more or less often than executed, beyond what its origin was.
    Left {
        /// The block after duplication.
        block: usize,
        /// Its count.
        count: f64,
        /// Sum of the edges from it.
        left: f64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origins { blocks, origins } => write!(
                f,
                "{origins} origins for {blocks} blocks: every block after duplication needs one"
            ),
            Self::NoOrigin { block, origin } => write!(
                f,
                "block {block} is said to be a copy of block {origin}, which did not exist"
            ),
            Self::Entry { origin } => write!(
                f,
                "the entry is {}, not the entry",
                origin.map_or("gone".into(), |o| format!("a copy of block {o}"))
            ),
            Self::EntryCopied { block } => write!(f, "block {block} is a copy of the entry, which can have none"),
            Self::PadCopied { block, origin } => write!(
                f,
                "block {block} is a second copy of block {origin}, an exception-handling pad, which can have one only"
            ),
            Self::Pad { block, origin } => write!(
                f,
                "block {block} and its origin {origin} do not agree on whether it begins with an exception-handling pad"
            ),
            Self::Terminator { block, origin } => write!(
                f,
                "block {block} does not end like its origin {origin}: the kinds of terminator differ"
            ),
            Self::Slots {
                block,
                origin,
                slots,
                before,
            } => write!(
                f,
                "block {block} has {slots} successors, its origin {origin} had {before}"
            ),
            Self::Successor {
                block,
                origin,
                slot,
                to,
                before,
            } => write!(
                f,
                "successor {slot} of block {block} is block {to}, which is not a copy of block {before}, where its origin {origin} goes"
            ),
            Self::Calls { block, origin } => {
                write!(f, "the calls of block {block} are not those of its origin {origin}")
            }
            Self::Counts { what, things, counts } => write!(f, "{counts} counts for {things} {what}"),
            Self::Count { what, position, count } => write!(
                f,
                "count {position} of {what} is {count}: counts are finite and not negative"
            ),
            Self::BlockSum { origin, before, after } => write!(
                f,
                "the copies of block {origin} are executed {after} times, the block was {before} times"
            ),
            Self::EdgeSum {
                origin,
                slot,
                before,
                after,
            } => write!(
                f,
                "copies of successor {slot} of block {origin} are taken {after} times, it was {before} times"
            ),
            Self::Entered { block, count, entered } => write!(
                f,
                "block {block} is executed {count} times, but its predecessors lead to it {entered} times"
            ),
            Self::Left { block, count, left } => {
                write!(f, "block {block} is executed {count} times, but left {left} times")
            }
        }
    }
}

impl std::error::Error for Violation {}
