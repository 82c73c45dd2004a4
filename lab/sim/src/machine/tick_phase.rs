//! When CPUs do their periodic work, relative to each other.

use pageset_core::{CpuId, spread_tick_offset};
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// When CPUs tick, relative to each other. Source: a post of April 2026 on the kernel's mailing list about
/// `vmstat_update`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TickPhase {
    /// All CPUs tick at the same moment. CPUs of Linux tick in this way, because Linux rounds the time of a
    /// tick to a whole second.
    Aligned,
    /// CPU `i` of `n` ticks later than CPU 0, by `i/n` of the interval.
    #[default]
    Spread,
}

impl TickPhase {
    /// Returns the time of a CPU's first tick, which is later than 0 and at most one interval.
    pub(crate) fn first(self, interval: Span, cpu: u32, cpus: u32) -> u64 {
        match self {
            Self::Aligned => interval.0,
            // Each CPU uses the offset of the next CPU. With its own offset 0, CPU 0 would tick when the
            // simulation begins.
            Self::Spread => spread_tick_offset(CpuId(cpu.saturating_add(1)), cpus, interval.0),
        }
    }
}
