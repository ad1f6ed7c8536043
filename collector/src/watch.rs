//! Sees the bursts and the runs of a recording while it goes on.

use crate::vector::Burst;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What is to be done with bursts as they arrive.
pub trait Watch: Send {
    /// A burst has arrived. Those of one thread arrive in the order of their times; those of several threads need not.
    /// Of bursts whose time is measured afterwards, the time may be missing.
    fn burst(&mut self, burst: &Burst);

    /// All threads' bursts of some moment have arrived: none that arrives later began much earlier.
    fn round(&mut self);
}

/// A [`Watch`] of a recording, shared with whoever reads the bursts.
#[derive(Clone)]
pub struct Watcher(Arc<Mutex<dyn Watch>>);

impl Watcher {
    /// Shares a watch.
    pub fn new(watch: Arc<Mutex<dyn Watch>>) -> Self {
        Self(watch)
    }

    pub(crate) fn burst(&self, burst: &Burst) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).burst(burst);
    }

    pub(crate) fn round(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).round();
    }
}

/// Is told after each run but the last how many there were.
#[derive(Clone)]
pub struct AfterRun(Arc<dyn Fn(u32) + Send + Sync>);

impl AfterRun {
    /// Calls a function.
    pub fn new(call: impl Fn(u32) + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    pub(crate) fn notify(&self, runs: u32) {
        (self.0)(runs);
    }
}

impl fmt::Debug for AfterRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AfterRun")
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
