//! Reads the buffers of kernel events while the command runs.

use super::open::Opened;
use crate::engines::lbr::gather::Gather;
use crate::vector::VectorSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two readings: at the highest rates, a buffer fills in some 30 ms.
const INTERVAL: Duration = Duration::from_millis(10);

/// Totals of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Seen {
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) throttled: u64,
}

/// Adds the samples of a run to a set.
pub(super) struct Follower<'a> {
    opened: &'a Opened,
    samples: &'a mut VectorSet,
}

impl<'a> Follower<'a> {
    pub(super) fn new(opened: &'a Opened, samples: &'a mut VectorSet) -> Self {
        Self { opened, samples }
    }

    /// Reads while `wait` waits for the end of the command, the process `pid`.
    pub(super) fn until<T>(self, pid: u32, wait: impl FnOnce() -> T) -> (T, Seen) {
        let Self { opened, samples } = self;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut gather = Gather::of_kernel_events(samples, opened.live());
                while !ended.load(Ordering::Acquire) {
                    std::thread::park_timeout(INTERVAL);
                    gather.round(opened.rings());
                }
                opened.stop();
                gather.round(opened.rings());
                let arrived = gather.arrived();
                let report = gather.finish(pid, 0.0, 0.0);
                Seen {
                    samples: arrived.samples,
                    lost: arrived.lost,
                    throttled: report.throttled,
                }
            });
            let result = wait();
            ended.store(true, Ordering::Release);
            reader.thread().unpark();
            let seen = reader.join();
            (result, seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}
