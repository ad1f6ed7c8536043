//! What can be wrong with a duplication.

/// What is wrong with a duplication.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Not one origin for each block.
    #[error("{origins} origins for {blocks} blocks: every block after duplication needs one")]
    Origins {
        /// Blocks after duplication.
        blocks: usize,
        /// Origins given.
        origins: usize,
    },
    /// A block is said to be a copy of one that never was.
    #[error("block {block} is said to be a copy of block {origin}, which did not exist")]
    NoOrigin {
        /// The block after duplication.
        block: usize,
        /// Its alleged origin.
        origin: usize,
    },
    /// The function begins elsewhere, or not at all.
    #[error("the entry is {}, not the entry", origin.map_or("gone".into(), |o| format!("a copy of block {o}")))]
    Entry {
        /// The origin of the entry after duplication, if there is an entry.
        origin: Option<usize>,
    },
    /// Another block is a copy of the entry.
    #[error("block {block} is a copy of the entry, which can have none")]
    EntryCopied {
        /// The copy.
        block: usize,
    },
    /// A block that begins with an exception-handling pad has several copies.
    #[error("block {block} is a second copy of block {origin}, an exception-handling pad, which can have one only")]
    PadCopied {
        /// The second copy.
        block: usize,
        /// The pad.
        origin: usize,
    },
    /// A copy became, or is no longer, an exception-handling pad.
    #[error("block {block} and its origin {origin} do not agree on whether it begins with an exception-handling pad")]
    Pad {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// A copy ends otherwise than its origin.
    #[error("block {block} does not end like its origin {origin}: the kinds of terminator differ")]
    Terminator {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// A copy has more or fewer successor slots than its origin.
    #[error("block {block} has {slots} successors, its origin {origin} had {before}")]
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
    #[error(
        "successor {slot} of block {block} is block {to}, which is not a copy of block {before}, where its origin {origin} goes"
    )]
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
    #[error("the calls of block {block} are not those of its origin {origin}")]
    Calls {
        /// The block after duplication.
        block: usize,
        /// Its origin.
        origin: usize,
    },
    /// Not one count for each block and edge.
    #[error("{counts} counts for {things} {what}")]
    Counts {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// How many counts there should be.
        things: usize,
        /// How many there are.
        counts: usize,
    },
    /// A count that nothing can have.
    #[error("count {position} of {what} is {count}: counts are finite and not negative")]
    Count {
        /// `blocks before`, `edges after`, …
        what: &'static str,
        /// The count's position in its list.
        position: usize,
        /// The count.
        count: f64,
    },
    /// Copies are not executed as often as their origin was.
    #[error("the copies of block {origin} are executed {after} times, the block was {before} times")]
    BlockSum {
        /// The block before duplication.
        origin: usize,
        /// Executions before.
        before: f64,
        /// Sum of its copies' executions.
        after: f64,
    },
    /// An edge's copies are not taken as often as it was.
    #[error("copies of successor {slot} of block {origin} are taken {after} times, it was {before} times")]
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
    #[error("block {block} is executed {count} times, but its predecessors lead to it {entered} times")]
    Entered {
        /// The block after duplication.
        block: usize,
        /// Its count.
        count: f64,
        /// Sum of the edges to it.
        entered: f64,
    },
    /// A copy is left more or less often than executed, beyond what its origin was.
    #[error("block {block} is executed {count} times, but left {left} times")]
    Left {
        /// The block after duplication.
        block: usize,
        /// Its count.
        count: f64,
        /// Sum of the edges from it.
        left: f64,
    },
}
