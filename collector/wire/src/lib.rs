//! Formats and decisions shared by the recorder and the sampler in the recorded program. Functions for signal handlers
//! allocate nothing; the only dependency is the hash of the frames.
//!
//! In the order of a recording:
//! 1. [`settings`]: settings that the recorder passes to the sampler, through the environment;
//!    [`threads`]: which threads are sampled;
//! 2. [`kinds`]: the engines, and the reasons for which bursts end;
//! 3. [`x86`]: lengths and kinds of branch instructions;
//! 4. [`timing_target`]: the branch target at which a burst is timed;
//! 5. [`shard`]: the stream of frames that each process writes;
//! 6. [`account`]: costs and CPU time of the whole recording, in a page that its processes share;
//! 7. [`start`]: whether a process loads the sampler; [`interposed`]: the functions of libc that it interposes;
//!    [`forked`]: when a child made by `fork` is sampled; [`random`];
//! 8. [`coverage`]: where breakpoints go in a module, and which were hit, in a file that its processes share.

pub mod account;
pub mod burst_length;
pub mod coverage;
pub mod forked;
pub mod interposed;
pub mod kinds;
pub mod random;
pub mod settings;
pub mod shard;
pub mod start;
pub mod threads;
pub mod timing_target;
pub mod x86;
