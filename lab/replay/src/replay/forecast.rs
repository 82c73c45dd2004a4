//! Makes the forecast for one policy. The spread of several plays shows how certain the forecast is.
//!
//! A *play* repeats the recording's acts on page sets. Under the recorded kernel's own policy and settings,
//! page sets begin with the contents that the kernel's page sets had. Under any other policy or setting, page
//! sets begin in a steady state: the recording (or its end) is played twice, and only the second play is
//! counted.
//!
//! Another run of the load would differ a little from the recorded run. So the recording is played several
//! more times, except under the recorded kernel's own policy and settings.
//! - In another run, the scheduler gives tasks to other CPUs. Five plays model another placement of tasks:
//!   the CPUs of a node exchange their acts at random, anew in each stretch of the recording (`exchange`).
//! - If the contents of the recorded kernel's page sets are known, one further play begins with them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::Policy;
use pageset_core::pcp::Limits;
use pageset_core::policy::SplitFrees;
use pageset_trace::Snapshot;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::bundles::{self, Bundles};
use super::candidate::{Candidate, check, rules_in_play};
use super::error::{ReplayError, go_on};
use super::exchange::{Exchange, border};
use super::interval::Kind;
use super::load::PageSetLoad;
use super::machine::Machine;
use super::page_sets::{PageSets, ZoneStart};
use super::portions::PORTION;
use super::start::{SetStart, zone_before};
use super::totals::Totals;
use super::vm_settings::VmSettings;
use super::window::Window;
use crate::limits::{computed, printed_or_computed};

/// The numbers of stretches in the recording, one number for each further play with exchanged CPUs. The
/// numbers were chosen so that plays of a load differ much if recorded runs of the load differ much. In a
/// recording of two seconds, a stretch is 30 to 2 ms long.
const STRETCHES: [usize; 5] = [64, 128, 256, 512, 1024];

/// Maximum number of acts that are played to bring page sets into their steady state. If a recording has more
/// acts, its last `STEADY_ACTS_MAX` acts are played. With this maximum, a server with 64 CPUs gets 65 000
/// acts for each CPU. About a hundred acts replace the contents of a page set. Most recordings of small
/// machines have fewer acts than this maximum.
const STEADY_ACTS_MAX: usize = 4 << 20;

/// A recording that is ready to be played under any policy.
pub(super) struct Forecaster<'r> {
    pub(super) machine: &'r Machine,
    pub(super) before: Option<&'r Snapshot>,
    pub(super) load: &'r PageSetLoad,
    /// Bundles of each portion of acts. The list is empty if all acts are played one by one.
    pub(super) bundles: &'r [Bundles],
    pub(super) window: Window,
    /// The recorded kernel's policy, and the contents of its page sets at the beginning. `None` if the policy
    /// or the contents are not known.
    pub(super) recorded: Option<(Policy, &'r [SetStart])>,
    /// A flag that stops a play. A play reads the flag before each portion of acts, about every ten
    /// milliseconds. A stopped play gives no forecast.
    pub(super) cancel: &'r AtomicBool,
    /// Receives the number of acts in each portion that was played.
    pub(super) progress: &'r (dyn Fn(u64) + Sync),
}

/// The facts that decide a forecast. If these facts are equal for two candidates, both candidates have the
/// same forecast.
#[derive(PartialEq)]
pub(super) struct Deciding {
    kind: Kind,
    settings: VmSettings,
    rules: Policy,
    /// The limits of page sets in each zone.
    limits: Vec<Limits>,
}

/// The plays of a recording under one policy.
#[derive(Clone)]
pub(super) struct Forecast {
    pub(super) totals: Totals,
    pub(super) held_idle: u64,
    /// Totals of the further plays, which stand for other runs of the load.
    pub(super) others: Vec<Totals>,
}

/// The range of acts that are played to bring page sets into their steady state. `all` is the number of acts.
/// The range contains all acts, or only the last `STEADY_ACTS_MAX` acts of a longer recording.
fn steady_range(all: usize) -> Range<usize> {
    all.saturating_sub(STEADY_ACTS_MAX)..all
}

/// Makes the bundles of a load's acts, for all plays of the load.
pub(super) fn bundles(load: &PageSetLoad, window: Window) -> Vec<Bundles> {
    let all = load.acts.len();
    let shortest = STRETCHES[STRETCHES.len() - 1];
    let mut borders: Vec<usize> = (0..shortest).map(|stretch| border(stretch, shortest, all)).collect();
    borders.extend([window.first_act(), steady_range(all).start]);
    borders.sort_unstable();
    Bundles::of_portions(&load.acts, &borders, bundles::portions_max())
}

impl Forecaster<'_> {
    /// Returns which run of the load the candidate's forecast is for. A setting that has its recorded value
    /// counts as unchanged.
    pub(super) fn kind(&self, candidate: &Candidate) -> Kind {
        let layout = &self.machine.layout;
        let changed = VmSettings::between(layout, &candidate.settings.applied(layout));
        match self.recorded {
            Some((policy, _)) if policy.name != candidate.policy.name => Kind::Policy,
            Some(_) if changed.is_unchanged() => Kind::Recorded,
            Some(_) => Kind::Setting,
            None => Kind::Policy,
        }
    }

    /// Returns the facts that decide the candidate's forecast.
    pub(super) fn deciding(&self, candidate: &Candidate) -> Result<Deciding, ReplayError> {
        let machine = self.machine_of(candidate)?;
        let mut rules = rules_in_play(candidate.policy);
        if self.load.split_blocks == 0 {
            rules.split_frees = SplitFrees::Singly;
        }
        let mut limits: Vec<Limits> =
            self.zone_starts(&machine, candidate).iter().map(|start| start.limits).collect();
        if rules.tuning.is_none() {
            // Without tuning, `high` is always `high_min`.
            limits.iter_mut().for_each(|limits| limits.high_max = limits.high_min);
        }
        Ok(Deciding { kind: self.kind(candidate), settings: candidate.settings, rules, limits })
    }

    /// Whether the candidate is the recorded kernel with its recorded settings.
    fn is_recorded(&self, candidate: &Candidate) -> bool {
        self.kind(candidate) == Kind::Recorded
    }

    /// Returns the number of acts that [`Forecaster::forecast`] plays for this candidate.
    pub(super) fn acts(&self, candidate: &Candidate) -> u64 {
        let all = self.load.acts.len();
        if self.is_recorded(candidate) {
            return all as u64;
        }
        let plays = 1 + STRETCHES.len() + usize::from(self.recorded.is_some());
        (steady_range(all).len() + plays * all) as u64
    }

    /// Returns the number of acts that [`Forecaster::steady_visits`] plays.
    pub(super) fn steady_acts(&self) -> u64 {
        let all = self.load.acts.len();
        (steady_range(all).len() + all) as u64
    }

    pub(super) fn forecast(&self, candidate: &Candidate) -> Result<Forecast, ReplayError> {
        let forecast = self.played(candidate)?;
        go_on(self.cancel).map(|()| forecast)
    }

    /// Returns the visits of a copy of this policy under another name. The page sets of a copy begin in their
    /// steady state, also for the policy of the recorded kernel.
    pub(super) fn steady_visits(&self, candidate: &Candidate) -> Result<u64, ReplayError> {
        let mut copy = *candidate;
        copy.policy.name = "copy";
        let machine = self.machine_of(&copy)?;
        let mut sets = self.steady(&machine, &copy)?;
        self.play_window(&mut sets, None)?;
        go_on(self.cancel).map(|()| sets.totals().visits())
    }

    fn played(&self, candidate: &Candidate) -> Result<Forecast, ReplayError> {
        let machine = self.machine_of(candidate)?;
        let sets = self.begin(&machine, candidate)?;
        if self.is_recorded(candidate) {
            return self.count(sets, Vec::new());
        }
        let exchanged = STRETCHES.into_par_iter().map(|stretches| (sets.clone(), Some(stretches)));
        let plays = exchanged.chain(self.recorded_start(&machine, candidate).map(|sets| (sets, None)));
        let others = plays.map(|(mut sets, stretches)| {
            self.play_window(&mut sets, stretches)?;
            Ok(sets.totals().clone())
        });
        let others = others.collect::<Result<_, ReplayError>>()?;
        self.count(sets, others)
    }

    /// Returns the machine with the candidate's settings.
    pub(super) fn machine_of(&self, candidate: &Candidate) -> Result<Cow<'_, Machine>, ReplayError> {
        check(candidate)?;
        if candidate.settings.is_unchanged() {
            return Ok(Cow::Borrowed(self.machine));
        }
        Machine::new(candidate.settings.applied(&self.machine.layout)).map(Cow::Owned)
    }

    /// Returns the candidate's page sets as they are when the recording begins.
    pub(super) fn begin<'m>(
        &self,
        machine: &'m Machine,
        candidate: &Candidate,
    ) -> Result<PageSets<'m>, ReplayError> {
        match self.recorded.filter(|_| self.is_recorded(candidate)) {
            Some((policy, starts)) => {
                let mut sets = PageSets::new(machine, policy, &self.zone_starts(machine, candidate));
                sets.fill(starts);
                Ok(sets)
            }
            None => self.steady(machine, candidate),
        }
    }

    /// Returns the candidate's page sets, filled with the pages that the recorded kernel's page sets held.
    fn recorded_start<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> Option<PageSets<'m>> {
        let (_, starts) = self.recorded?;
        // Leave out the tuned values of the recorded kernel's page sets, because they do not apply to another
        // kernel.
        let start = |start: &SetStart| SetStart { high: None, alloc_factor: 0, ..start.clone() };
        let starts: Vec<SetStart> = starts.iter().map(start).collect();
        let mut sets = self.empty(machine, candidate);
        sets.fill(&starts);
        Some(sets)
    }

    /// Returns page sets in their steady state: the state after a play of the recording, or of the last acts
    /// of a long recording.
    fn steady<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> Result<PageSets<'m>, ReplayError> {
        let mut sets = self.empty(machine, candidate);
        self.play(&mut sets, steady_range(self.load.acts.len()), None)?;
        sets.play(&self.load.remainder);
        sets.begin();
        Ok(sets)
    }

    fn empty<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> PageSets<'m> {
        let (recorded, ours) = (&self.machine.layout.sysctls, &machine.layout.sysctls);
        let sets = PageSets::new(machine, candidate.policy, &self.zone_starts(machine, candidate));
        sets.with_ticks(recorded.stat_interval_s, ours.stat_interval_s)
    }

    /// Plays the recording with these page sets, and makes the forecast. `others` has the totals of the
    /// further plays.
    fn count(&self, mut sets: PageSets<'_>, others: Vec<Totals>) -> Result<Forecast, ReplayError> {
        self.play_window(&mut sets, None)?;
        let totals = sets.totals().clone();
        Ok(Forecast { totals, held_idle: sets.rest(), others })
    }

    /// Plays the whole recording, and counts only from the beginning of the window. If `stretches` is given,
    /// CPUs exchange their acts in this number of stretches of the recording.
    fn play_window(&self, sets: &mut PageSets<'_>, stretches: Option<usize>) -> Result<(), ReplayError> {
        let (first, all) = (self.window.first_act(), self.load.acts.len());
        let (nodes, of_all) = (&self.machine.nodes, self.machine.sets());
        let mut exchange = stretches.map(|stretches| Exchange::new(nodes, of_all, stretches, all));
        if first > 0 {
            self.play(sets, 0..first, exchange.as_mut())?;
            sets.begin();
        }
        self.play(sets, first..all, exchange.as_mut())
    }

    /// Plays acts, portion by portion, unless the replay is cancelled.
    fn play(
        &self,
        sets: &mut PageSets<'_>,
        range: Range<usize>,
        mut exchange: Option<&mut Exchange>,
    ) -> Result<(), ReplayError> {
        let none = Bundles::default();
        let mut at = range.start;
        let played = self.load.acts.each(range, |acts| {
            let bundles = self.bundles.get(at / PORTION).unwrap_or(&none);
            let (portion, first, end) = (at - at % PORTION, at % PORTION, at + acts.len());
            while at < end {
                let (places, next) = match &mut exchange {
                    Some(exchange) => {
                        let (places, next) = exchange.places_from(at);
                        (Some(places), next.min(end))
                    }
                    None => (None, end),
                };
                sets.play_bundled((acts, first), at - portion..next - portion, bundles, places);
                at = next;
            }
            (self.progress)(acts.len() as u64);
            !self.cancel.load(Relaxed)
        });
        played.map_err(|error| ReplayError::no_room(&self.load.acts, error))
    }

    fn zone_starts(&self, machine: &Machine, candidate: &Candidate) -> Vec<ZoneStart> {
        let is_recorded = self.is_recorded(candidate);
        let starts = machine.zones.iter().map(|zone| {
            let before = zone_before(self.before, zone);
            let held: u64 = before.pagesets.iter().map(|set| u64::from(set.count)).sum();
            let limits = if is_recorded { printed_or_computed } else { computed };
            ZoneStart {
                limits: limits(&candidate.policy, &machine.layout, zone),
                idle: i64::try_from(before.free.saturating_add(held)).unwrap_or(i64::MAX / 2),
            }
        });
        starts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_load_the_last_acts_bring_the_steady_state() {
        assert_eq!(steady_range(100), 0..100);
        assert_eq!(steady_range(8 * STEADY_ACTS_MAX), 7 * STEADY_ACTS_MAX..8 * STEADY_ACTS_MAX);
    }
}
