//! The CPUs that this program may use. A thread can bind itself to one CPU.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this program may use, in ascending order. The list has at least one CPU.
#[must_use]
pub fn usable_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Binds this thread to a CPU. Returns `false` if the system refuses. A thread that is not bound may move to
/// other CPUs, which makes measurements less accurate.
pub fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}
