//! Functions of libc that stand in front of the real ones.
//!
//! Each does the least that keeps two promises: the program finds the world as it set it up, and sampling goes on in
//! its threads and children. All forward to the next definition of their name.

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
}
