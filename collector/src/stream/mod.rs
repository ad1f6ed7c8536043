//! Stream compression after Sastry, Bodík and Smith, *Rapid Profiling via Stratified Sampling* (ISCA 2001).
//!
//! A stream of events becomes a shorter stream of [`Message`]s ⟨event, weight⟩ (§2, figure 1). Compressors are made of
//! few parts (§3, figures 2 and 3). The rest of the paper is in `testsuite/papers`:
//!
//! | paper | here |
//! |---|---|
//! | P_r (§3.1) | [`Periodic`] |
//! | H\[X\]_n (§3.2, §3.5) | [`Split`] with a keyed [`Hasher`] |
//! | A_k (§3.4) | [`Accumulator`] |
//! | two-level compression (§3.4, §5.6) of recordings | [`Compressor`] |
//!
//! Unlike the paper's, samplers may start in their stationary state ([`Start::Stationary`]), because remainders in the
//! counters at the end are not reported. With zero phases, many strata and few events lose most of the weight; with
//! random phases, the expected weight of every event is 1.

mod accumulator;
mod compress;
mod event;
mod hash;
mod random;
mod sampler;

pub use accumulator::Accumulator;
pub use compress::{Compressor, WINDOW, size_of_burst};
pub use event::{Tuple, word};
pub use hash::{Hasher, tag};
pub use random::{Generator, mix};
pub use sampler::{Message, Periodic, Sampler, Split, Start};
