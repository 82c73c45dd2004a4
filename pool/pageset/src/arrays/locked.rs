//! Operations on the arrays in a pool without restartable sequences. Each CPU has a lock that protects its
//! arrays. Only a thread that empties the arrays waits for a CPU's lock. Other operations only try the lock.

use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::{this_thread, yield_now};

use super::{Batch, Class, CpuArrays, Entry};

impl CpuArrays {
    /// Takes a block. `None` if the stack has no block, or if another thread has locked these arrays.
    #[inline]
    pub(crate) fn try_pop(&self, class: Class) -> Option<Entry> {
        self.try_with(|arrays| arrays.stack(class).pop()).flatten()
    }

    /// Puts a block. `false` if the stack has no room, or if another thread has locked these arrays.
    #[inline]
    pub(crate) fn try_push(&self, class: Class, entry: Entry) -> bool {
        self.try_with(|arrays| arrays.stack(class).push(entry)).unwrap_or(false)
    }

    /// Puts blocks of a batch under one hold of the lock, up to the capacity. The other blocks stay in the
    /// batch.
    pub(crate) fn try_push_many(&self, class: Class, batch: &mut Batch) {
        let pushed = self.try_with(|arrays| {
            let stack = arrays.stack(class);
            batch.as_slice().iter().take_while(|entry| stack.push(**entry)).count()
        });
        batch.forget_front(pushed.unwrap_or(0));
    }

    /// Takes up to `limit` blocks under one hold of the lock. The taken blocks are not counted as pops.
    pub(crate) fn try_pop_many(&self, class: Class, limit: usize, batch: &mut Batch) {
        self.try_with(|arrays| arrays.stack(class).take_last(limit, |entry| batch.push_front(entry)));
    }

    /// Takes all blocks in parts. For each part, waits for the lock, takes the part, unlocks, and then calls
    /// `take`. Returns early if this thread itself holds the lock, because a wait would never end: the caller
    /// is a signal handler that interrupted the holder of the lock.
    pub(crate) fn empty_locked(&self, mut take: impl FnMut(Class, &[Entry])) {
        for class in Class::ALL {
            // Take as many parts as the stack has now. Blocks that other threads put into the arrays later
            // may stay.
            for _ in 0..self.stack(class).parts() {
                while !self.try_lock() {
                    if self.lock.load(Relaxed) == this_thread() {
                        return;
                    }
                    yield_now();
                }
                let part: &mut Batch = &mut Batch::new();
                self.stack(class).take_part(part);
                self.lock.store(0, Release);
                take(class, part.as_slice());
            }
        }
    }

    /// Forgets all blocks, and unlocks. A child of `fork` that takes the pool over calls `forget`. A thread
    /// of the parent may have held the lock at the fork, and the child does not have this thread.
    pub(crate) fn forget(&self) {
        Class::ALL.into_iter().for_each(|class| self.stack(class).empty(|_forgotten| {}));
        self.lock.store(0, Release);
    }

    #[inline]
    fn try_with<T>(&self, work: impl FnOnce(&Self) -> T) -> Option<T> {
        if !self.try_lock() {
            return None;
        }
        let outcome = work(self);
        self.lock.store(0, Release);
        Some(outcome)
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Race: two threads try to lock at once. The lock holds its owner's thread number. A
        // compare-exchange, unlike a swap, cannot overwrite the owner's number.
        self.lock.load(Relaxed) == 0 && self.lock.compare_exchange(0, this_thread(), Acquire, Relaxed).is_ok()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests_of_handlers {
    use super::super::{ArraySet, Caps};
    use super::*;

    /// Simulates a signal handler that interrupted its thread while the thread held the lock.
    #[test]
    fn a_drain_does_not_wait_for_its_own_thread() {
        let set = ArraySet::new(1, Caps::of_order_0(3)).unwrap();
        let arrays = &set.cpus()[0];
        assert!(arrays.try_push(Class::Order0, Entry::dirty(7)));
        let mut drained = Vec::new();
        let outcome = arrays.try_with(|arrays| {
            arrays.empty_locked(|_, entries| drained.extend_from_slice(entries));
            assert_eq!((arrays.try_pop(Class::Order0), drained.len()), (None, 0));
        });
        assert!(outcome.is_some());
        arrays.empty_locked(|_, entries| drained.extend_from_slice(entries));
        assert_eq!(drained, [Entry::dirty(7)]);
    }
}

#[cfg(all(test, shuttle))]
mod tests {
    use shuttle::scheduler::RandomScheduler;
    use shuttle::sync::Arc;
    use shuttle::thread;

    use super::super::{ArraySet, Caps};
    use super::*;

    /// Pushes and pops blocks. Returns the blocks that are outside of the arrays at the end.
    fn work(arrays: &CpuArrays, mut held: Vec<Entry>) -> Vec<Entry> {
        for _ in 0..3 {
            if let Some(entry) = held.pop()
                && !arrays.try_push(Class::Order0, entry)
            {
                held.push(entry);
            }
            held.extend(arrays.try_pop(Class::Order0));
        }
        held
    }

    /// Puts the held blocks into the array by one batch, takes up to two blocks by another batch, then
    /// empties the array as a drain does.
    fn exchange(arrays: &CpuArrays, held: Vec<Entry>) -> Vec<Entry> {
        let batch: &mut Batch = &mut Batch::new();
        held.into_iter().for_each(|entry| batch.push_front(entry));
        arrays.try_push_many(Class::Order0, batch);
        let mut held = batch.as_slice().to_vec();
        let popped: &mut Batch = &mut Batch::new();
        arrays.try_pop_many(Class::Order0, 2, popped);
        held.extend(popped.as_slice());
        arrays.empty_locked(|_, entries| held.extend_from_slice(entries));
        held
    }

    /// Tests random orders of the threads' steps. In each order, each block either has one owner or lies in
    /// the array once.
    #[test]
    fn no_block_is_lost_or_doubled() {
        let schedules = std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|text| text.parse().ok());
        let test = || {
            let set = Arc::new(ArraySet::new(1, Caps::of_order_0(3)).unwrap());
            let entries = |range: std::ops::Range<u32>| range.map(Entry::dirty).collect::<Vec<_>>();
            let threads: Vec<_> = (0..3)
                .map(|index| {
                    let (set, held) = (Arc::clone(&set), entries(index * 2..index * 2 + 2));
                    let work = if index == 2 { exchange } else { work };
                    thread::spawn(move || work(&set.cpus()[0], held))
                })
                .collect();
            let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            set.cpus()[0].empty_locked(|_, entries| all.extend_from_slice(entries));
            all.sort_by_key(|entry| entry.frame());
            assert_eq!(all, entries(0..6));
        };
        // Shuttle's atomics are large, so the arrays of atomics that the test builds on its stack are large,
        // too.
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        shuttle::Runner::new(RandomScheduler::new(schedules.unwrap_or(2000)), config).run(test);
    }
}
