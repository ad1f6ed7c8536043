//! Branch records of the processor, through `perf_event_open`: Intel's LBR, AMD's BRS and LbrExtV2, Arm's BRBE.
//!
//! ```text
//! facts ─► plan ─► open ─► ring, ring, … ─► record_reader ─► reader and session of `perf` ─► vectors
//!   └► diagnose       ▲ period, gate           │
//!                     └───── control ◄─────────┘
//! ```
//!
//! [`facts`] reads facts about the machine; [`plan`] asks the kernel which [`event`] it grants with branch records, and
//! [`diagnose`] explains why it grants none. [`spawn_stopped`] stops the command before `execve` until
//! [`open`] has opened, on every processor, a sampling event and a tracking event (mappings and forks) with a
//! [`ring`] buffer. [`record_reader`] reads the buffers, through the importer of perf.data; [`control`] keeps the budget,
//! from the cost of a sample that [`calibrate`] measures. `follow` reads and controls until the end. [`run`] combines all of this for a command, [`attach`] for
//! processes that run already.
//!
//! Only the kernel's answers depend on the hardware; tests run everything else with a clock event of the kernel.

pub mod attach;
pub mod attr;
pub mod calibrate;
pub mod control;
pub mod diagnose;
pub mod event;
pub mod facts;
mod follow;
pub mod open;
pub mod plan;
pub mod record_reader;
pub mod ring;
pub mod run;
pub mod spawn_stopped;
pub(crate) mod sys;

pub use diagnose::Refusal;
pub use facts::Facts;
pub use plan::Plan;
pub(crate) use run::LbrSession;

/// Asks the kernel for branch records at `event`, or at the best available event.
///
/// # Errors
/// The kernel grants no branch records.
pub fn probe(facts: &Facts, event: Option<&str>) -> Result<Plan, Refusal> {
    Plan::find(facts, event, |sampling, cpu| sys::try_open(&sampling.to_bytes(), cpu))
}
