//! The system calls of the pool. Other modules make system calls only through the standard library.

mod calls;
mod file_size;
mod loaded;
mod map;
mod process;
mod thread;

pub(super) use calls::{
    advise, bind_to, collapse, current_cpu, discard, environment_says, lock, membarrier, possible_cpus,
    usable_cpus,
};
pub(super) use loaded::stay_loaded;
pub(crate) use map::Mapping;
pub(super) use process::{at_forks, is_process, process_id};
pub(crate) use thread::SignalsBlocked;
pub(super) use thread::{block_signals, leave_real_time, use_all_cpus};

/// How many times a test repeats its random steps.
#[cfg(test)]
pub(crate) const TEST_ROUNDS: u32 = 20_000;
