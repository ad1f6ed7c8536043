//! Path profiling with regions (Shye et al., *Code coverage … and path profiling with PMUs*, INTERACT 2005; thesis
//! §3.5): partial paths are extended, split at regions, matched with region paths and credited equally.
//!
//! The phases, one a file: extension ([`extension`]), matching sets ([`matching`]), evidence for cold edges ([`cold`]),
//! paths with an edge of their own ([`obvious`]), equal crediting ([`credit`]); what over-matching does to the profile
//! ([`overmatching`]); the papers' lengths ([`lengths`]); different vectors of several runs ([`unique`]); and the tables
//! ([`figures`](mod@figures)).

pub mod cold;
pub mod credit;
pub mod extension;
pub mod figures;
pub mod lengths;
pub mod matching;
pub mod obvious;
pub mod overmatching;
pub mod unique;

pub use figures::{Figures, RegionOptions, figures, sections};
