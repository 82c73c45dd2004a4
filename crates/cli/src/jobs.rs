//! Several pieces of work at once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The number of jobs asked for, or one for each CPU of this machine.
pub(crate) fn count(asked: Option<u16>) -> usize {
    let cpus = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    asked.map_or_else(cpus, usize::from).max(1)
}

/// Does `work` for each item, up to `jobs` at once, in the order of the items. `done` gets each result with the index of
/// its item, on this thread, in the order in which they are finished; once it fails, no further item is begun.
///
/// # Errors
///
/// The first one of `done`.
pub(crate) fn each<T: Sync, R: Send, E>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (results, finished) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            let (next, work, results) = (&next, &work, results.clone());
            scope.spawn(move || {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(index)
                    // Nobody waits for results after a failure.
                    && results.send((index, work(item))).is_ok()
                {}
            });
        }
        drop(results);
        // Dropping the receiver at a failure is what stops the workers.
        finished.into_iter().try_for_each(|(index, result)| done(index, result))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_whatever_the_jobs() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [1, 2, 7, 200] {
            let mut results = vec![None; items.len()];
            let ended: Result<(), ()> = each(
                &items,
                jobs,
                |item| item * item,
                |index, result| {
                    assert_eq!(results[index].replace(result), None);
                    Ok(())
                },
            );
            assert_eq!(ended, Ok(()));
            assert_eq!(results, items.iter().map(|item| Some(item * item)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_ends_the_work() {
        // All of them would take seconds: long enough for this thread to get a turn on a busy machine.
        let items: Vec<u64> = (0..10_000).collect();
        let begun = AtomicUsize::new(0);
        let work = |_: &u64| {
            thread::sleep(std::time::Duration::from_millis(1));
            begun.fetch_add(1, Ordering::Relaxed)
        };
        assert_eq!(
            each(&items, 2, work, |index, _| if index < 3 { Ok(()) } else { Err("full") }),
            Err("full")
        );
        assert!(begun.into_inner() < items.len());
    }

    #[test]
    fn nothing_to_do_ends_at_once() {
        assert_eq!(each(&[] as &[u8], 4, |_| (), |_, ()| Err("never")), Ok(()));
    }
}
