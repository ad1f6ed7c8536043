//! Functions of libc that the sampler interposes.
//!
//! They have two purposes: the program sees the state that it set up, and its threads and children are sampled, too.
//! All forward to the next definition of their name.

pub mod close;
pub mod delivery;
pub mod exec;
pub mod exit;
pub mod faults;
pub mod limits;
pub mod masks;
pub mod memory;
pub mod signals;
pub mod stacks;
pub mod thread_creation;
pub mod waits;

/// Looks all functions up before a handler or a child of `vfork` can need them.
pub fn resolve() {
    exec::resolve();
    exit::resolve();
    limits::resolve();
    masks::resolve();
    memory::resolve();
    signals::resolve();
    stacks::resolve();
    thread_creation::resolve();
    close::resolve();
    waits::resolve();
}
