//! Does work for each item of a list, on several threads.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};
use rayon::iter::{ParallelBridge as _, ParallelIterator as _};

use pageset_report::{Cancelled, Progress};

/// Returns the number of jobs that this machine can run at once: one for each CPU.
#[must_use]
pub fn jobs_of_this_machine() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Calls `work` for each item, for up to `jobs` items at once. When an item is finished, calls `done` with
/// the item's index and result. Calls of `done` never overlap. Soon after `done` has failed, no further item
/// begins.
///
/// # Errors
///
/// Returns the first error of `done`, or an error if threads cannot be made.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    done: impl FnMut(usize, R) -> Result<()> + Send,
) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    let done = Mutex::new(done);
    pool.context("cannot make threads")?.install(|| {
        // `par_bridge` hands out items in the order of the iterator, so work on the items begins in the order
        // of the list.
        items.iter().enumerate().par_bridge().try_for_each(|(index, item)| {
            let result = work(item);
            // A poisoned lock does no harm: if `done` panics, the thread pool passes the panic on to the
            // caller.
            (done.lock().unwrap_or_else(PoisonError::into_inner))(index, result)
        })
    })
}

/// Counts the finished steps of one stage of work, and reports them as progress.
pub struct Stage<'p> {
    progress: &'p mut dyn Progress,
    done: u64,
}

impl<'p> Stage<'p> {
    /// Begins a stage of `total` steps. `what` names the work, `unit` the steps.
    pub fn begin(
        progress: &'p mut dyn Progress,
        what: &'static str,
        unit: &'static str,
        total: usize,
    ) -> Self {
        progress.begin(what, unit, Some(total as u64));
        Self { progress, done: 0 }
    }

    /// Counts one more finished step.
    ///
    /// # Errors
    ///
    /// Fails if the work was cancelled.
    pub fn step(&mut self) -> Result<(), Cancelled> {
        self.done += 1;
        self.progress.update(self.done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    #[test]
    fn every_item_is_done_once_whatever_the_jobs() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [0, 1, 2, 7, 200] {
            let mut results = vec![None; items.len()];
            let ended = each(
                &items,
                jobs,
                |item| item * item,
                |index, result| {
                    assert_eq!(results[index].replace(result), None);
                    Ok(())
                },
            );
            ended.unwrap();
            assert_eq!(results, items.iter().map(|item| Some(item * item)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_ends_the_work() {
        // All items together would take seconds. So the second thread runs before all items are done, even on
        // a busy machine.
        let items: Vec<u64> = (0..10_000).collect();
        let begun = AtomicUsize::new(0);
        let work = |_: &u64| {
            thread::sleep(std::time::Duration::from_millis(1));
            begun.fetch_add(1, Ordering::Relaxed)
        };
        let ended = each(&items, 2, work, |_, begun| if begun < 3 { Ok(()) } else { bail!("full") });
        assert_eq!(ended.unwrap_err().to_string(), "full");
        assert!(begun.into_inner() < items.len());
    }

    #[test]
    fn nothing_to_do_ends_at_once() {
        each(&[] as &[u8], 4, |_| (), |_, ()| bail!("never")).unwrap();
    }
}
