//! Whether all CPUs do their periodic work at the same moment, or one after another.

use pageset_core::{CpuId, spread_tick_offset};
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// Whether all CPUs tick at the same moment, or one after another. Source: a post of April 2026 on the
/// kernel's mailing list about `vmstat_update`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TickPhase {
    /// All CPUs tick at the same moment. The CPUs of Linux tick at the same moment, because Linux rounds the
    /// time of a tick to a whole second.
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
