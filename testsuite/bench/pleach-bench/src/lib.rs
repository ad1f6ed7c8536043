//! Benches of pleach on the workloads; the command `pleach-bench` runs them.
//!
//! | question | module |
//! |---|---|
//! | how much faster and smaller is a variant than plain `-O2`? | [`compare`], [`matrix`] |
//! | how does pleach compare with IR-PGO, AutoFDO, CSSPGO and BOLT? | [`peers`] |
//! | how much does each optimisation contribute? | [`ablate`] |
//! | does a single decision pay as its cost model predicts? | [`decisions`] |
//! | how many branches does each engine record, at what overhead? | [`rates`] |
//! | how close are sampled paths and coverage to exact counts? | [`accuracy`], [`coverage`] |
//!
//! Building, running and statistics belong to `pleach-harness`.

pub mod ablate;
pub mod accuracy;
pub mod compare;
pub mod coverage;
pub mod decisions;
pub mod matrix;
pub mod peers;
pub mod rates;
