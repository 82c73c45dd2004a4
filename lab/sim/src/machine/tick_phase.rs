//! When CPUs do their periodic work, relative to each other.

use pageset_core::{CpuId, spread_tick_offset};
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// When CPUs tick, relative to each other. Source: mailing-list post of April 2026 on `vmstat_update`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TickPhase {
    /// All CPUs tick at the same moment. Linux still does so, because it rounds the moment to a whole second.
    Aligned,
    /// CPU `i` of `n` ticks `i/n` of the interval later.
    #[default]
    Spread,
}

impl TickPhase {
    /// Time of a CPU's first tick: within the first interval, and not at its beginning.
    pub(crate) fn first(self, interval: Span, cpu: u32, cpus: u32) -> u64 {
        match self {
            Self::Aligned => interval.0,
            // Each CPU uses the offset of the next CPU. With its own offset, which is 0, CPU 0 would tick
            // when the simulation begins.
            Self::Spread => spread_tick_offset(CpuId(cpu.saturating_add(1)), cpus, interval.0),
        }
    }
}
