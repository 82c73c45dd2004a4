//! Grace periods, as in RCU. A writer unlinks a table, an area or a page, and then waits until no task can
//! still use the unlinked object (orderings E5 and E6 of spec §1.3).
//!
//! Each task has a counter on its own cache line. The counter is odd while the task is inside a section. A
//! task may use the table numbers, areas and translations that it reads in a section only until the section
//! ends. Under V1 and V2, a fault needs no section, because the fault holds a lock that keeps writers out. In
//! a grace period, a writer waits until every counter that was odd has changed. Decision 0007 says why this
//! module does not use crossbeam-epoch.

use alloc::boxed::Box;

use crate::atomic::{AtomicU64, Ordering, Padded, fence};

/// The section counters of all tasks of an engine.
pub(crate) struct Grace {
    sections: Box<[Padded<AtomicU64>]>,
}

impl Grace {
    /// Makes the section counters of tasks 0 to `tasks` - 1.
    pub(crate) fn new(tasks: u32) -> Self {
        Self { sections: (0..tasks).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    /// Begins a section. Only the task itself calls this function. A task is in at most one section at a
    /// time.
    #[inline]
    pub(crate) fn enter(&self, task: u32) {
        let section = &self.sections[task as usize].0;
        debug_assert!(!self.is_inside(task), "task {task} enters a section twice");
        section.store(section.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // Race: a task begins a section while a writer unlinks an object and calls `wait`. By this fence, the
        // task stores its counter before it reads tables and areas. By the fence in `wait`, the writer
        // unlinks the object before it reads the counters. So either the writer sees the section and waits,
        // or the task does not find the unlinked object. Nearly the whole cost of a section is this fence,
        // which takes 6 to 9 ns (decision 0007).
        fence(Ordering::SeqCst);
    }

    /// Ends the task's section. After this call, the task must not use tables, areas or translations that it
    /// read inside the section.
    #[inline]
    pub(crate) fn leave(&self, task: u32) {
        let section = &self.sections[task as usize].0;
        debug_assert!(self.is_inside(task), "task {task} leaves a section that it did not enter");
        section.store(section.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Whether the task is in a section. Only the task itself calls this function.
    pub(crate) fn is_inside(&self, task: u32) -> bool {
        self.sections[task as usize].0.load(Ordering::Relaxed) % 2 == 1
    }

    /// Waits until all sections that had begun before this call have ended. After the wait, no section uses
    /// an object that a writer unlinked before this call. The caller must not be in a section.
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
        grace.wait(|| unreachable!("no task is in a section"));
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
