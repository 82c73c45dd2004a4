//! The periodic work of one CPU: `high` decays, page sets of remote nodes expire (spec §2.11).

use super::PageAllocator;
use crate::CpuId;
use crate::error::ConfigError;
use crate::event::{DrainReason, Event, emit};
use crate::pcp::Pageset;
use crate::platform::Platform;
use crate::policy::DecayDrain;
use crate::zone::Zone;

/// Ticks that an idle page set of a remote node survives. Source: spec §2.11.
const REMOTE_EXPIRE_TICKS: u8 = 3;

/// Whether a CPU needs another tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickOutcome {
    /// Something changed: call again after the interval.
    Again,
    /// Nothing to do until this CPU allocates or frees again.
    Idle,
}

impl<P: Platform> PageAllocator<'_, P> {
    /// Does one CPU's periodic work. Call it once a second (Linux's `stat_interval`), on or for that CPU.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.check_cpu(cpu)?;
        let mut changed = false;
        for zone in self.zones.iter() {
            let pageset = self.pageset(zone, cpu);
            let touched = pageset.take_touched();
            changed |= touched;
            changed |= self.decay(cpu, zone, pageset);
            changed |= self.expire_remote(cpu, zone, pageset, touched);
        }
        Ok(if changed { TickOutcome::Again } else { TickOutcome::Idle })
    }

    fn decay(&self, cpu: CpuId, zone: &Zone<'_, P>, pageset: &Pageset<P>) -> bool {
        let limits = pageset.limits();
        let Some(decayed) = pageset.with(|state| {
            let before = state.pcp.high;
            let decayed = state.pcp.decay(&self.policy, limits)?;
            if state.pcp.high != before || decayed.excess > 0 {
                emit(self.platform.events(), cpu, || Event::PcpDecay {
                    zone: zone.body.id,
                    high: state.pcp.high,
                    excess: decayed.excess as u32,
                });
            }
            Some(decayed)
        }) else {
            return false;
        };
        let slice = match self.policy.decay_drain {
            DecayDrain::Whole => decayed.excess,
            DecayDrain::Slices => limits.batch,
        };
        let mut left = decayed.excess;
        while left > 0 {
            let pages = left.min(slice);
            self.drain_pages(cpu, zone, cpu, |_| pages, DrainReason::Decay);
            left -= pages;
        }
        pageset.with(|state| state.pcp.end_tick());
        decayed.is_unfinished
    }

    fn expire_remote(&self, cpu: CpuId, zone: &Zone<'_, P>, pageset: &Pageset<P>, touched: bool) -> bool {
        let is_local = zone.body.node == self.node_of(cpu);
        let due = pageset.with(|state| {
            let pcp = &mut state.pcp;
            if touched {
                pcp.expire = REMOTE_EXPIRE_TICKS;
            }
            if pcp.expire == 0 || pcp.count == 0 {
                return None;
            }
            if is_local {
                pcp.expire = 0;
                return None;
            }
            pcp.expire -= 1;
            Some(pcp.expire == 0)
        });
        match due {
            None => false,
            Some(false) => true,
            Some(true) => {
                let batch = pageset.limits().batch;
                self.drain_pages(cpu, zone, cpu, |count| count.min(batch), DrainReason::Remote);
                true
            }
        }
    }
}
