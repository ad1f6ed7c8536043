//! A few independent jobs at a time.

use anyhow::{Result, anyhow};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Two, or one on a machine with a single core: more would slow down other work on a small machine.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get().min(2))
}

/// Applies a function to every item, `jobs` at a time, and returns the results in the items' order.
///
/// After a failure no further item is started; the failure of the first item in order is returned.
pub fn map<T: Sync, R: Send>(items: &[T], jobs: usize, function: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = function(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            finished
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let mut finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    finished.sort_by_key(|(index, _)| *index);
    let results = finished
        .into_iter()
        .map(|(_, result)| result)
        .collect::<Result<Vec<_>>>()?;
    if results.len() == items.len() {
        Ok(results)
    } else {
        Err(anyhow!("not every job was run"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_items() {
        let items: Vec<usize> = (0..100).collect();
        let doubled = map(&items, 2, |&item| Ok(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(map(&[] as &[u8], 2, |_| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn a_failure_is_returned() {
        let error = map(
            &[1, 2, 3],
            1,
            |&item| if item == 2 { Err(anyhow!("two")) } else { Ok(()) },
        )
        .unwrap_err();
        assert_eq!(error.to_string(), "two");
    }
}
