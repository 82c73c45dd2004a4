//! Miri interprets programs without a kernel. Memory comes from the heap and always stays. There are two
//! CPUs, one node and no children.

mod calls;
mod heap;

pub(crate) use calls::SignalsBlocked;
pub(super) use calls::{
    advise, at_forks, bind_to, block_signals, collapse, current_cpu, discard, environment_says, is_process,
    leave_real_time, lock, membarrier, possible_cpus, process_id, stay_loaded, usable_cpus, use_all_cpus,
};
pub(crate) use heap::Mapping;

/// How often tests repeat random steps. Miri takes a thousand times as long.
#[cfg(test)]
pub(crate) const TEST_ROUNDS: u32 = 200;
