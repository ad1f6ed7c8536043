//! Violations of the rules for a duplication.

use std::fmt;

/// A violated rule.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// The number of origins differs from the number of blocks.
    Origins {
        /// Blocks after duplication.
        blocks: usize,
        /// Origins given.
        origins: usize,
    },
    /// A block's origin does not exist.
    NoOrigin {
        /// The block after duplication.
        block: usize,
        /// The origin given.
        origin: usize,
    },
    /// The function does not begin with its original entry.
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
    /// Copy and origin differ in whether they begin with an exception-handling pad.
    Pad {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// Copy and origin have different kinds of terminator.
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
        /// Number of the block's successor slots.
        slots: usize,
        /// Number of its origin's successor slots.
        before: usize,
    },
    /// A slot of a copy does not lead to a copy of its origin's target.
    Successor {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
        /// The slot.
        slot: usize,
        /// The slot's target.
        to: usize,
        /// The target of the origin's slot.
        before: usize,
    },
    /// Copy and origin have different calls.
    Calls {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// The number of counts differs from the number of blocks or edges.
    Counts {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// Number of blocks or edges.
        things: usize,
        /// Number of counts.
        counts: usize,
    },
    /// A count is negative or not finite.
    Count {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// The count's position in its list.
        position: usize,
        /// The count.
        count: f64,
    },
    /// The counts of copies do not add up to their origin's.
    BlockSum {
        /// The block before duplication.
        origin: usize,
        /// Executions before.
        before: f64,
        /// Sum of its copies' executions.
        after: f64,
    },
    /// The counts of an edge's copies do not add up to the edge's.
    EdgeSum {
        /// The block before duplication.
        origin: usize,
        /// The successor slot.
        slot: usize,
        /// The edge's count before.
        before: f64,
        /// Sum of its copies' counts.
        after: f64,
    },
    /// A copy's count differs from the sum of its incoming edges by more than its origin's did.
    Entered {
        /// The block after duplication.
        block: usize,
        /// Its count.
        count: f64,
        /// Sum of the edges to it.
        entered: f64,
    },
    /// A copy's count differs from the sum of its outgoing edges by more than its origin's did.
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
