//! Branch records of the processor, through `perf_event_open`: Intel's LBR, AMD's BRS and LbrExtV2, Arm's BRBE.
//!
//! ```text
//! facts ─► plan ─► open ─► ring, ring, … ─► gather ─► reader and session of `perf` ─► vectors
//!   └► diagnose       ▲ period, gate           │
//!                     └───── control ◄─────────┘
//! ```
//!
//! [`facts`] is what the machine says about itself; [`plan`] asks the kernel which [`event`] it grants with branch
//! records, and [`diagnose`] says why it grants none. [`spawn_stopped`] stops the command before `execve` until
//! [`open`] has opened, on every processor, an event that samples and one that tells of mappings and forks, with a
//! [`ring`] buffer. [`gather`] reads the buffers, through the importer of perf.data; [`control`] holds the budget, with
//! the cost of a sample that [`calibrate`] measures. [`run`] puts all this together.
//!
//! What only the hardware can show is in the kernel's answers; tests play the rest with a clock of the kernel's.

pub mod attr;
pub mod calibrate;
pub mod control;
pub mod diagnose;
pub mod event;
pub mod facts;
pub mod gather;
pub mod open;
pub mod plan;
pub mod ring;
pub mod run;
pub mod spawn_stopped;
pub(crate) mod sys;

pub use diagnose::Refusal;
pub use facts::Facts;
pub use plan::Plan;
pub(crate) use run::LbrSession;

/// Asks the kernel for branch records, at `event` or at the best one that there is.
pub fn probe(facts: &Facts, event: Option<&str>) -> Result<Plan, Refusal> {
    Plan::find(facts, event, |sampling, cpu| sys::try_open(&sampling.to_bytes(), cpu))
}
