//! Profiles in the formats of other tools. Branch stacks, for `perf`, are `pleach_collector::perf::export`'s.
//!
//! One format a file; all are pure functions from profiles, raw vectors and binaries to text or bytes:
//!
//! 1. [`sample_profile`]: LLVM's sample profile, for clang's `-fprofile-sample-use`;
//! 2. [`fdata`]: BOLT's profile;
//! 3. [`propeller`]: Propeller's profile, for stock clang and lld;
//! 4. [`pprof`], [`firefox`]: call stacks, for viewers.
//!
//! [`functions`] finds the functions that stacks name; [`taken`] sums the branches that 2 and 3 need.

pub mod fdata;
pub mod firefox;
pub mod functions;
pub mod pprof;
pub mod propeller;
pub mod sample_profile;
pub mod taken;
