//! The right to change page-table words. The right is a lock that the task holds, or nothing if the strategy
//! needs no lock for the change.

use lock_api::{Mutex, MutexGuard};
use pageset_core::CpuId;

use crate::stats::LockStats;
use crate::world::World;

/// The right to change page-table words. The right ends when the `Held` value is dropped.
pub(crate) enum Held<'a, W: World> {
    /// The task holds no lock, because the strategy needs no lock for this change.
    Nothing,
    /// A lock.
    Lock { _guard: MutexGuard<'a, W::RawLock, ()> },
}

impl<'a, W: World> Held<'a, W> {
    /// Takes a lock and counts the acquisition. If the task has to wait, also measures the time of the wait.
    #[inline]
    pub(crate) fn lock(
        world: &W,
        cpu: CpuId,
        stats: &mut LockStats,
        mutex: &'a Mutex<W::RawLock, ()>,
    ) -> Self {
        stats.acquired += 1;
        let _guard = match mutex.try_lock() {
            Some(guard) => guard,
            None => wait(world, cpu, stats, mutex),
        };
        Self::Lock { _guard }
    }
}

#[cold]
fn wait<'a, W: World>(
    world: &W,
    cpu: CpuId,
    stats: &mut LockStats,
    mutex: &'a Mutex<W::RawLock, ()>,
) -> MutexGuard<'a, W::RawLock, ()> {
    stats.contended += 1;
    let start_ns = world.now_ns(cpu);
    let guard = mutex.lock();
    stats.wait_ns += world.now_ns(cpu).saturating_sub(start_ns);
    guard
}
