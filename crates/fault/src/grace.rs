//! Grace periods: waiting until everybody who may still look at something has looked away (E5, E6).
//!
//! Each task has a counter on a line of its own. Odd means: inside a section, it may hold table numbers, areas or
//! translations it read before. Whoever takes something away waits until every counter that was odd has moved on.
//! Why this is not crossbeam-epoch: docs/decisions/0007.

use alloc::boxed::Box;

use crate::atomic::{AtomicU64, Ordering, Padded, fence};

/// The sections of all tasks of an engine.
pub(crate) struct Grace {
    sections: Box<[Padded<AtomicU64>]>,
}

impl Grace {
    /// For tasks 0 to `tasks` - 1.
    pub(crate) fn new(tasks: u32) -> Self {
        Self { sections: (0..tasks).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    /// A task begins to look. Only that task may call this, and not twice.
    #[inline]
    pub(crate) fn enter(&self, task: u32) {
        let section = &self.sections[task as usize].0;
        debug_assert!(!self.is_inside(task), "task {task} begins to look twice");
        section.store(section.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // Everything read from here on is read after the counter is visible; pairs with the fence in `wait`. This is
        // the whole price of a section: 6 to 9 ns (docs/decisions/0007).
        fence(Ordering::SeqCst);
    }

    /// The task forgets what it looked at.
    #[inline]
    pub(crate) fn leave(&self, task: u32) {
        let section = &self.sections[task as usize].0;
        debug_assert!(self.is_inside(task), "task {task} forgets what it did not look at");
        section.store(section.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Whether a task is looking; for the task itself.
    pub(crate) fn is_inside(&self, task: u32) -> bool {
        self.sections[task as usize].0.load(Ordering::Relaxed) % 2 == 1
    }

    /// Waits until no task can hold what was unlinked before this call. The caller must not be in a section itself.
    pub(crate) fn wait(&self, mut relax: impl FnMut()) {
        fence(Ordering::SeqCst);
        for section in &self.sections {
            let seen = section.0.load(Ordering::Acquire);
            if seen % 2 == 1 {
                while section.0.load(Ordering::Acquire) == seen {
                    relax();
                }
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_the_section_does() {
        let grace = Grace::new(2);
        grace.wait(|| unreachable!("nobody looks"));
        grace.enter(1);
        let mut turns = 0;
        grace.wait(|| {
            turns += 1;
            if turns == 3 {
                grace.leave(1);
                grace.enter(1);
            }
        });
        assert_eq!(turns, 3, "the next section began after the call and is not waited for");
    }
}
