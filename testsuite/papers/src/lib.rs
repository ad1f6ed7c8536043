//! Research code: tables of the papers that pleach builds on, for the same workloads. No product command uses it.
//!
//! | table | command | module |
//! |---|---|---|
//! | stream compression (Sastry, Bodík and Smith, ISCA 2001) | `pleach-papers streams` | [`streams`] |
//! | values of loads (the same paper, §5) | `pleach-papers loads` | [`streams`] |
//! | sampled against exact distributions of instructions and branches | `pleach-papers time-bias` | [`time_bias`] |
//! | path profiling with regions (Shye et al., INTERACT 2005) | `pleach-papers regions` | [`regions`] |
//! | trace selection (Chen et al. 2003) | `pleach-papers traces` | [`traces`] |
//! | the detector of phases on resampled bursts (the same paper, section 4.3) | `pleach-papers phases` | [`phase_checks`] |
//! | *Efficient Path Profiling* (Ball and Larus, MICRO-29) | `pleach-papers paths` | [`path_tables`], [`edge_predictor`], [`bit_tracing`] |

pub mod bit_tracing;
pub mod edge_predictor;
pub mod path_tables;
pub mod phase_checks;
pub mod recordings;
pub mod regions;
pub mod streams;
pub mod time_bias;
pub mod traces;
