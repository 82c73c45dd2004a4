//! The periodic work of one CPU: `high` decays, and idle page sets of remote nodes expire (spec §2.11).

use super::PageAllocator;
use crate::CpuId;
use crate::error::ConfigError;
use crate::event::{DrainReason, Event, emit};
use crate::pcp::{Activity, CpuZone, Place};
use crate::platform::Platform;
use crate::policy::DecayDrain;

/// The result of a tick: whether the CPU needs another tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickOutcome {
    /// The CPU has worked since its last tick, or this tick left work for the next one. Call
    /// [`PageAllocator::tick`] again after the interval.
    Again,
    /// There is nothing to do until this CPU allocates or frees again.
    Idle,
}

/// The time from the beginning of each interval to the tick of `cpu`, for a host that spreads the CPUs' ticks
/// evenly over the interval. CPU `i` of `n` ticks at `i/n` of the interval, in the interval's unit. Source:
/// mailing-list post of April 2026 on `vmstat_update`.
///
/// In Linux to date, all CPUs tick at the beginning of the interval, so their decays contend for the zone
/// locks. Spread ticks contend less with each other, but each tick may contend with CPUs that work at the
/// moment of the tick. The spreading of ticks does not change the work of a tick.
///
/// ```
/// use pageset_core::{CpuId, spread_tick_offset};
///
/// let offset_ms = |cpu| spread_tick_offset(CpuId(cpu), 4, 1000);
/// assert_eq!([0, 1, 2, 3].map(offset_ms), [0, 250, 500, 750]);
/// ```
#[must_use]
pub const fn spread_tick_offset(cpu: CpuId, cpus: u32, interval: u64) -> u64 {
    match interval.checked_div(cpus as u64) {
        Some(step) => step.saturating_mul(cpu.0 as u64),
        None => 0,
    }
}

impl<P: Platform> PageAllocator<'_, P> {
    /// Does one CPU's periodic work. Call this function for each CPU once a second (Linux's `stat_interval`).
    /// The caller may run on any CPU. [`spread_tick_offset`] gives the moment within the second if ticks are
    /// spread.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.check_cpu(cpu)?;
        let mut outcome = TickOutcome::Idle;
        for zone in self.zones.iter() {
            let at = self.pagesets.at(zone, cpu, &self.policy, &self.platform);
            let place = if zone.body.node == self.node_of(cpu) { Place::Local } else { Place::Remote };
            let activity = at.pageset.take_activity();
            let steps = [at.decay(), at.expire(place, activity)];
            if activity == Activity::Touched || steps.contains(&TickOutcome::Again) {
                outcome = TickOutcome::Again;
            }
        }
        Ok(outcome)
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    fn decay(self) -> TickOutcome {
        let limits = self.pageset.limits();
        let Some(decayed) = self.pageset.with(|state| {
            let before = state.pcp.high;
            let decayed = state.pcp.decay(self.policy, limits)?;
            if state.pcp.high != before || decayed.excess > 0 {
                emit(self.platform.events(), self.cpu, || Event::PcpDecay {
                    zone: self.zone.body.id,
                    high: state.pcp.high,
                    excess: decayed.excess as u32,
                });
            }
            Some(decayed)
        }) else {
            return TickOutcome::Idle;
        };
        let slice = match self.policy.decay_drain {
            DecayDrain::Whole => decayed.excess,
            DecayDrain::Slices => limits.batch,
        };
        let mut left = decayed.excess;
        while left > 0 {
            let pages = left.min(slice);
            self.drain_some(DrainReason::Decay, |_| pages);
            left -= pages;
        }
        self.pageset.with(|state| state.pcp.end_tick());
        if decayed.is_unfinished { TickOutcome::Again } else { TickOutcome::Idle }
    }

    /// Drains a batch from a page set of a remote node after the page set has been idle for some ticks.
    fn expire(self, place: Place, activity: Activity) -> TickOutcome {
        let ticks_left = self.pageset.with(|state| state.pcp.expire(place, activity));
        if ticks_left == Some(0) {
            let batch = self.pageset.limits().batch;
            self.drain_some(DrainReason::Remote, |count| count.min(batch));
        }
        if ticks_left.is_some() { TickOutcome::Again } else { TickOutcome::Idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_ticks_are_in_the_interval_and_as_far_apart_whatever_the_numbers() {
        for cpus in [1, 3, 72, 316] {
            let offsets: std::vec::Vec<_> =
                (0..cpus).map(|cpu| spread_tick_offset(CpuId(cpu), cpus, 1_000_000)).collect();
            assert_eq!(offsets[0], 0);
            assert!(offsets.iter().all(|offset| *offset < 1_000_000), "{cpus}");
            let step = 1_000_000 / u64::from(cpus);
            assert!(offsets.windows(2).all(|pair| pair[1] - pair[0] == step), "{cpus}");
        }
        assert_eq!(spread_tick_offset(CpuId(0), 0, 1000), 0);
        assert_eq!(spread_tick_offset(CpuId(u32::MAX), 1, u64::MAX), u64::MAX);
    }
}
