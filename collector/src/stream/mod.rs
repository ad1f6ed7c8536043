//! Stream compression after Sastry, Bodík and Smith, *Rapid Profiling via Stratified Sampling* (ISCA 2001).
//!
//! A stream of events becomes a shorter stream of [`Message`]s ⟨event, weight⟩ (§2, figure 1). Compressors are made of
//! few parts (§3, figures 2 and 3):
//!
//! | paper | here |
//! |---|---|
//! | R_r, P_r, CR_r (§3.1) | [`Random`], [`Periodic`], [`CountedRandom`]; [`Countdown`] is what the paper's references use |
//! | H\[X\]_n (§3.2, §3.5) | [`Split`] with a keyed [`Hasher`] |
//! | tagged table (§4, figure 6) | [`Tagged`] |
//! | A_k (§3.4) | [`Accumulator`], after any sampler with [`Accumulated`] |
//! | events (§2.1) | [`Event`] |
//! | error (§5.3.1) | [`error`] |
//! | Monte-Carlo figure (§3.3, figure 4) | [`convergence`] |
//! | two-level compression (§3.4, §5.6) of recordings | [`Compressor`] |
//!
//! Unlike the paper's, samplers may start in their stationary state ([`Start::Stationary`]), because remainders in the
//! counters at the end are not reported. With zero phases, many strata and few events lose most of the weight; with
//! random phases, the expected weight of every event is 1.

mod accumulator;
mod compress;
pub mod convergence;
pub mod error;
mod event;
mod hash;
mod random;
mod sampler;
mod tagged;

pub use accumulator::{Accumulated, Accumulator};
pub use compress::{Compressor, WINDOW, size_of_burst};
pub use event::{Event, Tuple, control_flow};
pub use hash::Hasher;
pub use random::{Generator, mix};
pub use sampler::{Countdown, CountedRandom, Message, Periodic, Random, Sampler, Split, Start};
pub use tagged::Tagged;
