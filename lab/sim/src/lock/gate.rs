//! A readers-writer lock, such as the lock of an address space or of a file.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::LockClass;
use crate::cpu::VirtualCpu;
use crate::engine::Engine;
use crate::line::SharedLine;

/// A readers-writer lock for virtual CPUs. The lock guards no value. CPUs get the lock in the order of their
/// requests. So while a CPU waits to hold the lock exclusively, CPUs that come later wait too.
///
/// Each acquisition and each release writes the lock's cache line ([`SharedLine`]), even if the CPU takes the
/// lock in shared mode.
#[derive(Debug)]
pub struct Gate {
    class: LockClass,
    line: SharedLine,
    sharers: Cell<u32>,
    is_exclusive: Cell<bool>,
    queue: RefCell<VecDeque<Waiting>>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cpu: u32,
    since: u64,
    wants_alone: bool,
}

impl Gate {
    /// Makes a lock that no CPU holds.
    #[must_use]
    pub const fn new(class: LockClass) -> Self {
        Self {
            class,
            line: SharedLine::new(),
            sharers: Cell::new(0),
            is_exclusive: Cell::new(false),
            queue: RefCell::new(VecDeque::new()),
        }
    }

    /// Takes the lock in shared mode: other CPUs can share the lock at the same time.
    pub fn lock_shared(&self, cpu: &VirtualCpu) {
        self.enter(cpu.engine(), false);
    }

    /// Takes the lock exclusively.
    pub fn lock_exclusive(&self, cpu: &VirtualCpu) {
        self.enter(cpu.engine(), true);
    }

    /// Releases the lock that this CPU holds in shared mode.
    ///
    /// # Panics
    /// Panics if no CPU shares the lock.
    pub fn unlock_shared(&self, cpu: &VirtualCpu) {
        let engine = cpu.engine();
        self.line.rmw_by(engine);
        assert!(self.sharers.get() > 0, "a CPU unlocks a gate that no CPU shares");
        self.sharers.set(self.sharers.get() - 1);
        self.admit(engine);
    }

    /// Releases the lock that this CPU holds exclusively.
    ///
    /// # Panics
    /// Panics if no CPU holds the lock exclusively.
    pub fn unlock_exclusive(&self, cpu: &VirtualCpu) {
        let engine = cpu.engine();
        self.line.rmw_by(engine);
        assert!(self.is_exclusive.replace(false), "a CPU unlocks a gate that no CPU holds exclusively");
        self.admit(engine);
    }

    fn fits(&self, wants_alone: bool) -> bool {
        !self.is_exclusive.get() && (!wants_alone || self.sharers.get() == 0)
    }

    fn let_in(&self, wants_alone: bool) {
        if wants_alone {
            self.is_exclusive.set(true);
        } else {
            self.sharers.set(self.sharers.get() + 1);
        }
    }

    fn enter(&self, engine: &Engine, wants_alone: bool) {
        self.line.rmw_by(engine);
        // The CPU's clock moved while the CPU waited for the lock's line. So other CPUs may have earlier
        // operations, which must happen before this CPU's acquisition of the lock.
        engine.sync();
        engine.tally.borrow_mut().locks[self.class as usize].acquisitions += 1;
        if self.queue.borrow().is_empty() && self.fits(wants_alone) {
            return self.let_in(wants_alone);
        }
        let (cpu, since) = (engine.cpu_index(), engine.cpu().clock.get());
        self.queue.borrow_mut().push_back(Waiting { cpu, since, wants_alone });
        engine.spin();
    }

    /// Gives the lock to waiting CPUs in the order of the queue, until the first CPU of the queue cannot have
    /// the lock yet.
    fn admit(&self, engine: &Engine) {
        engine.sync();
        let now = engine.cpu().clock.get();
        let me = engine.cpu_index();
        loop {
            let Some(first) = self.queue.borrow().front().copied() else { return };
            if !self.fits(first.wants_alone) {
                return;
            }
            self.queue.borrow_mut().pop_front();
            self.let_in(first.wants_alone);
            let enters = now.max(first.since)
                + engine.model.hand_over(engine.line(me, first.cpu), engine.prices.lock_pass, 1);
            let wait = enters - first.since;
            {
                let used = &mut engine.tally.borrow_mut().locks[self.class as usize];
                used.contended += 1;
                used.wait_ps += wait;
                used.longest_wait_ps = used.longest_wait_ps.max(wait);
            }
            engine.hand_over(first.cpu, enters);
        }
    }
}
