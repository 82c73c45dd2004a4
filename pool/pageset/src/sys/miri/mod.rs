//! Replaces the calls of the system under miri, which interprets programs without a kernel. Memory comes from
//! the heap and stays until the mapping is dropped. There are two CPUs, one node and no children.

mod calls;
mod heap;

pub(crate) use calls::SignalsBlocked;
pub(super) use calls::{
    advise, at_forks, bind_to, block_signals, collapse, current_cpu, discard, environment_says, is_process,
    leave_real_time, lock, membarrier, possible_cpus, process_id, stay_loaded, usable_cpus, use_all_cpus,
};
pub(crate) use heap::Mapping;

/// How many times a test repeats its random steps. Miri is a thousand times slower than a CPU, so the number
/// is small.
#[cfg(test)]
pub(crate) const TEST_ROUNDS: u32 = 200;
