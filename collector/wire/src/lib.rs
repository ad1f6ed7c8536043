//! What the recorder, the sampler in the recorded program, and their files share. It allocates nothing in signal
//! handlers and links nothing but the hash of the frames.
//!
//! In the order of a recording:
//! 1. [`settings`]: what the recorder tells the sampler, through the environment;
//! 2. [`kinds`]: the engines, and why bursts end;
//! 3. [`x86`]: lengths and kinds of branch instructions;
//! 4. [`anchor`]: the branch target at which a burst is timed;
//! 5. [`shard`]: the stream of frames that each process writes;
//! 6. [`account`]: costs and CPU time of the whole recording, in a page that its processes share.

pub mod account;
pub mod anchor;
pub mod kinds;
pub mod settings;
pub mod shard;
pub mod x86;
