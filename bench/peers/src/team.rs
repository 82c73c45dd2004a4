//! Threads that are each pinned to a CPU and begin together.

use std::sync::Barrier;

/// One thread of a team.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    /// Number in the team, from 0. Targets with a state for each CPU use it as the CPU.
    pub(crate) cpu: usize,
    barrier: &'a Barrier,
}

impl Member<'_> {
    /// Waits until all members are here.
    pub(crate) fn meet(&self) {
        self.barrier.wait();
    }
}

/// Runs `work` on `threads` threads, each on a CPU of its own if there are enough. Returns their results.
///
/// # Panics
/// Panics if one of the threads panics.
pub(crate) fn run<R: Send>(threads: usize, work: impl Fn(&Member<'_>) -> R + Sync) -> Vec<R> {
    let cpus = allowed_cpus();
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let start = |index: usize| {
            let (work, barrier, cpus) = (&work, &barrier, &cpus);
            scope.spawn(move || {
                if let Some(cpu) = cpus.get(index % cpus.len().max(1)) {
                    pin(*cpu);
                }
                work(&Member { cpu: index, barrier })
            })
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        handles.into_iter().map(|handle| handle.join().expect("no thread of a team panics")).collect()
    })
}

/// The CPUs this process may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    // SAFETY: all bits zero is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as said and lives during the call.
    let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if status != 0 {
        return Vec::new();
    }
    // SAFETY: every index is below the number of bits of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Keeps the calling thread on one CPU. Without permission, the kernel chooses the CPU.
fn pin(cpu: usize) {
    // SAFETY: all bits zero is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the CPU came from a set of the same size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is as large as said and lives during the call; 0 is the calling thread.
    let _ = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_number_of_its_own() {
        let mut numbers = run(2, |member| {
            member.meet();
            member.cpu
        });
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1]);
    }
}
