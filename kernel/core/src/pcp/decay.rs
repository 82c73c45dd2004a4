//! The effect of a periodic tick on a page set: `high` falls while pages lie idle.

use super::tuning::scaled;
use super::{Activity, Limits, Pcp};
use crate::policy::Policy;

/// The result of one decay of a page set's `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decayed {
    /// Number of pages above the new `high`. The caller drains the pages above `high`.
    pub excess: i32,
    /// Whether the next tick may have to lower `high` or drain pages.
    pub is_unfinished: bool,
}

/// Whether the zone of a page set is on the CPU's own node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The zone is on the CPU's own node.
    Local,
    /// The zone is on another node.
    Remote,
}

/// Number of ticks after which an idle page set of a remote node loses a batch. Source: spec §2.11.
const REMOTE_EXPIRE_TICKS: u8 = 3;

impl<L> Pcp<L> {
    /// Counts down to the drain of an idle page set that holds pages of a remote node (spec §2.11). Returns
    /// the number of ticks until the drain. If the result is 0, the caller drains a batch. Returns `None` if
    /// the page set is local or empty, or if the countdown has ended. The countdown restarts if the page
    /// set's CPU has changed the zone's free pages.
    pub fn expire(&mut self, place: Place, activity: Activity) -> Option<u8> {
        if activity == Activity::Touched {
            self.expire = REMOTE_EXPIRE_TICKS;
        }
        if self.expire == 0 || self.count == 0 {
            return None;
        }
        if place == Place::Local {
            self.expire = 0;
            return None;
        }
        self.expire -= 1;
        Some(self.expire)
    }

    /// Lowers `high` towards its lower limit (spec §2.11, §3.7, §3.9). Returns `None` if the policy has no
    /// tuning.
    pub fn decay(&mut self, policy: &Policy, limits: Limits) -> Option<Decayed> {
        let tuning = policy.tuning?;
        if self.high > limits.high_min {
            let lowered = self.high - tuning.decay.of(self.high, self.count_min);
            let held = self.count - scaled(limits.batch, policy.scale_max);
            self.high = held.max(lowered).max(limits.high_min);
        }
        let excess = (self.count - self.high).max(0);
        Some(Decayed { excess, is_unfinished: self.high > limits.high_min || excess > 0 })
    }

    /// Ends a tick: records the current count, so that the next tick knows how many pages stayed unused.
    pub fn end_tick(&mut self) {
        self.count_min = self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LINUX_6_12;

    const E1: Limits = Limits { batch: 63, high_min: 6862, high_max: 90_112 };

    /// Tests the specification's worked example E5, for the series as merged.
    #[test]
    fn example_e5_decay_to_the_lower_limit() {
        let mut pcp = Pcp { high: 12_847, count: 5985, ..Pcp::with_scheme(LINUX_6_12.lists) };
        for high in [11_242, 9837, 8608, 7532, 6862] {
            let decayed = pcp.decay(&LINUX_6_12, E1).unwrap();
            assert_eq!((pcp.high, decayed.excess), (high, 0));
        }
        let mut pcp = Pcp { high: 90_112, count: 60_000, ..Pcp::with_scheme(LINUX_6_12.lists) };
        let mut ticks = 0;
        loop {
            let decayed = pcp.decay(&LINUX_6_12, E1).unwrap();
            pcp.count -= decayed.excess;
            ticks += 1;
            match ticks {
                1 => assert_eq!((pcp.high, decayed.excess), (78_848, 0)),
                3 => assert_eq!((pcp.high, decayed.excess), (60_368, 0)),
                4 => assert_eq!((pcp.high, decayed.excess), (57_984, 2016)),
                _ => {}
            }
            if pcp.high == E1.high_min {
                break;
            }
        }
        assert_eq!((ticks, pcp.high), (32, 6862));
    }
}
