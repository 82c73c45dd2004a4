//! Makes the forecast for one policy. Several plays of the recording show how certain the forecast is.
//!
//! A *play* repeats the recording's acts on page sets. Under the recorded kernel's own policy, page sets
//! begin with the contents that the kernel's page sets had. Under any other policy, they begin in a steady
//! state: the recording is played twice, and only the second play is counted.
//!
//! Another run of the load would differ a little, so the recording is played several more times.
//! - One play begins with the contents that the recorded kernel's page sets had.
//! - Two plays have larger or smaller page sets, as if the load had fewer or more pages in use.
//! - One play begins in another steady state: in the play before it, each CPU played the acts of another CPU.
//!
//! No play begins with the contents that page sets have in the middle of the recording: no run of the load
//! begins like that.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::Policy;
use pageset_trace::Snapshot;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::act::{Act, ActKind};
use super::candidate::{Candidate, check};
use super::error::{ReplayError, go_on};
use super::load::PageSetLoad;
use super::machine::Machine;
use super::page_sets::{PageSets, ZoneStart};
use super::start::{SetStart, zone_before};
use super::totals::Totals;
use super::vm_settings::VmSettings;
use super::window::Window;
use crate::limits::{computed, printed_or_computed};

/// Further plays of the recording, each from its own steady state. The first two have smaller and larger page
/// sets. In the third, each CPU played the acts of another CPU to reach its steady state.
const DRAWS: [Draw; 3] =
    [Draw { turn: 0, high: 1.0 / SIZE }, Draw { turn: 0, high: SIZE }, Draw { turn: 1, high: 1.0 }];
/// The first two further plays divide and multiply the limit of page sets by this number. A quarter more or
/// less is a choice.
const SIZE: f64 = 1.25;

/// The most acts that are played to bring page sets into their steady state. If a recording has more acts,
/// its last ones are played. Chosen: 65 000 acts for each CPU of a server with 64 CPUs, where about a hundred
/// acts replace the contents of a page set. Recordings of small machines have fewer acts.
const STEADY_ACTS_MAX: usize = 4 << 20;

/// How a further play from a steady state differs from the play whose counts are printed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Draw {
    /// In the play that reaches the steady state, each CPU plays the acts of the CPU that is `turn` places
    /// further on its node.
    turn: usize,
    /// The limits of page sets are multiplied by this number.
    high: f64,
}

impl Draw {
    /// The play whose counts are printed: nothing is changed.
    const ROW: Self = Self { turn: 0, high: 1.0 };
}

/// A recording that is ready to be played under any policy.
pub(super) struct Forecaster<'r> {
    pub(super) machine: &'r Machine,
    pub(super) before: Option<&'r Snapshot>,
    pub(super) load: &'r PageSetLoad,
    pub(super) window: Window,
    /// The recorded kernel's policy, and the contents of its page sets at the beginning; `None` if either is
    /// not known.
    pub(super) recorded: Option<(Policy, &'r [SetStart])>,
    /// A flag that stops a play. The play reads the flag before each portion of acts, about every ten
    /// milliseconds. A play that was stopped gives no forecast.
    pub(super) cancel: &'r AtomicBool,
}

/// The plays of a recording under one policy.
#[derive(Clone)]
pub(super) struct Forecast {
    pub(super) totals: Totals,
    pub(super) held_idle: u64,
    /// Totals of the further plays from a steady state, which stand for other runs of the load.
    pub(super) draws: Vec<Totals>,
    /// Totals of the play from the recorded kernel's page sets, if their contents are known.
    pub(super) from_recorded: Option<Totals>,
}

impl Forecast {
    /// The plays from a steady state. The play whose counts are printed comes first.
    pub(super) fn steady_plays(&self) -> impl Iterator<Item = &Totals> {
        std::iter::once(&self.totals).chain(&self.draws)
    }

    /// All plays.
    pub(super) fn plays(&self) -> impl Iterator<Item = &Totals> {
        self.steady_plays().chain(&self.from_recorded)
    }
}

/// The range of acts that are played to bring page sets into their steady state, of `all` acts: all of them,
/// or the last ones if there are many.
fn steady_range(all: usize) -> Range<usize> {
    all.saturating_sub(STEADY_ACTS_MAX)..all
}

impl Forecaster<'_> {
    /// Whether the candidate is the recorded kernel with its recorded settings. A candidate may also name a
    /// setting with its recorded value.
    pub(super) fn is_recorded(&self, candidate: &Candidate) -> bool {
        let layout = &self.machine.layout;
        let changed = VmSettings::between(layout, &candidate.settings.applied(layout));
        self.recorded.is_some_and(|(policy, _)| policy.name == candidate.policy.name)
            && changed.is_unchanged()
    }

    pub(super) fn forecast(&self, candidate: &Candidate) -> Result<Forecast, ReplayError> {
        let forecast = self.played(candidate)?;
        go_on(self.cancel).map(|()| forecast)
    }

    fn played(&self, candidate: &Candidate) -> Result<Forecast, ReplayError> {
        let machine = self.machine_of(candidate)?;
        let sets = self.begin(&machine, candidate)?;
        if self.is_recorded(candidate) {
            return self.count(sets, Vec::new());
        }
        let draws = DRAWS.into_par_iter().map(|draw| self.steady(&machine, candidate, draw));
        let plays = draws.chain(self.recorded_start(&machine, candidate).map(Ok)).map(|sets| {
            let mut sets = sets?;
            self.play_window(&mut sets)?;
            Ok(sets.totals().clone())
        });
        let draws = plays.collect::<Result<_, ReplayError>>()?;
        self.count(sets, draws)
    }

    /// The machine with the candidate's settings.
    pub(super) fn machine_of(&self, candidate: &Candidate) -> Result<Cow<'_, Machine>, ReplayError> {
        check(candidate)?;
        if candidate.settings.is_unchanged() {
            return Ok(Cow::Borrowed(self.machine));
        }
        Machine::new(candidate.settings.applied(&self.machine.layout)).map(Cow::Owned)
    }

    /// The candidate's page sets when the recording begins.
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
            None => self.steady(machine, candidate, Draw::ROW),
        }
    }

    /// The candidate's page sets, filled with the pages that the recorded kernel's page sets held.
    fn recorded_start<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> Option<PageSets<'m>> {
        let (_, starts) = self.recorded?;
        // Leave out the tuning of the recorded kernel's page sets, because it does not apply to another
        // kernel.
        let start = |start: &SetStart| SetStart { high: None, alloc_factor: 0, ..start.clone() };
        let starts: Vec<SetStart> = starts.iter().map(start).collect();
        let mut sets = self.empty(machine, candidate, 1.0);
        sets.fill(&starts);
        Some(sets)
    }

    /// Page sets in their steady state: after a play of the recording, or of its end if it is long.
    fn steady<'m>(
        &self,
        machine: &'m Machine,
        candidate: &Candidate,
        draw: Draw,
    ) -> Result<PageSets<'m>, ReplayError> {
        let mut sets = self.empty(machine, candidate, draw.high);
        self.play_steady(&mut sets, draw.turn)?;
        sets.play(&self.load.remainder);
        sets.begin();
        Ok(sets)
    }

    /// Empty page sets whose limits are multiplied by `high`.
    fn empty<'m>(&self, machine: &'m Machine, candidate: &Candidate, high: f64) -> PageSets<'m> {
        let (recorded, ours) = (&self.machine.layout.sysctls, &machine.layout.sysctls);
        let mut starts = self.zone_starts(machine, candidate);
        for limits in starts.iter_mut().map(|start| &mut start.limits) {
            let scaled = |pages: i32| (f64::from(pages) * high).round() as i32;
            (limits.high_min, limits.high_max) = (scaled(limits.high_min), scaled(limits.high_max));
        }
        let sets = PageSets::new(machine, candidate.policy, &starts);
        sets.with_ticks(recorded.stat_interval_s, ours.stat_interval_s)
    }

    /// Plays the recording with these page sets, and makes the forecast. `further` has the totals of the
    /// further plays: those from a steady state, then the one from the recorded kernel's page sets.
    fn count(&self, mut sets: PageSets<'_>, mut further: Vec<Totals>) -> Result<Forecast, ReplayError> {
        self.play_window(&mut sets)?;
        let totals = sets.totals().clone();
        let from_recorded = further.split_off(further.len().min(DRAWS.len())).pop();
        Ok(Forecast { totals, held_idle: sets.rest(), draws: further, from_recorded })
    }

    /// Plays the whole recording, and counts only from the beginning of the window.
    fn play_window(&self, sets: &mut PageSets<'_>) -> Result<(), ReplayError> {
        let first = self.window.first_act();
        if first > 0 {
            self.play(sets, 0..first)?;
            sets.begin();
        }
        self.play(sets, first..self.load.acts.len())
    }

    fn play(&self, sets: &mut PageSets<'_>, range: Range<usize>) -> Result<(), ReplayError> {
        self.portions(range, |acts| sets.play(acts))
    }

    /// Passes acts to `each`, portion by portion, unless the replay is cancelled.
    fn portions(&self, range: Range<usize>, mut each: impl FnMut(&[Act])) -> Result<(), ReplayError> {
        let acts = &self.load.acts;
        let played = acts.each(range, |acts| {
            each(acts);
            !self.cancel.load(Relaxed)
        });
        played.map_err(|error| ReplayError::no_room(acts, error))
    }

    /// Plays the acts that bring page sets into their steady state. Each CPU plays the acts of the CPU that
    /// is `turn` places further on its node.
    fn play_steady(&self, sets: &mut PageSets<'_>, turn: usize) -> Result<(), ReplayError> {
        let range = steady_range(self.load.acts.len());
        if turn == 0 {
            return self.play(sets, range);
        }
        let places = self.places(turn);
        let cpus = self.machine.cpus();
        let moved = |act: &Act| {
            let at = act.at as usize;
            let at = match act.kind {
                ActKind::Tick => places[at],
                kind if kind.is_of_set() => at / cpus * cpus + places[at % cpus],
                _ => at,
            };
            Act { at: at as u32, ..*act }
        };
        let mut there = Vec::new();
        self.portions(range, |acts| {
            there.clear();
            there.extend(acts.iter().map(moved));
            sets.play(&there);
        })
    }

    fn places(&self, turn: usize) -> Vec<usize> {
        let nodes = &self.machine.nodes;
        let place = |cpu: usize| {
            let node: Vec<usize> = (0..nodes.len()).filter(|other| nodes[*other] == nodes[cpu]).collect();
            let at = node.iter().position(|other| *other == cpu).unwrap_or(0);
            node.get((at + turn) % node.len().max(1)).copied().unwrap_or(cpu)
        };
        (0..nodes.len()).map(place).collect()
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
