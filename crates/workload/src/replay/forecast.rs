//! What one policy would have done, and how sure that is.
//!
//! The recorded kernel's own policy begins where that kernel was. Any other begins in its own steady state: the recording
//! is played once to get there, and counted the second time. Another run would have gone a bit differently, so the recording
//! is played some times more: from where the recorded kernel's page sets were; with page sets that hold more or less, which
//! is as if the load had fewer or more pages in flight; and from a steady state that was reached by beginning with another
//! quarter of the recording, and with CPUs that changed places.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::Policy;
use pageset_trace::Snapshot;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::act::{Act, ActKind};
use super::machine::Machine;
use super::page_sets::{PageSets, ZoneStart};
use super::start::{SetStart, zone_before};
use super::totals::Totals;
use super::traffic::Traffic;
use super::window::Window;
use super::{Candidate, ReplayError, VmSettings, check, go_on};
use crate::limits::{computed, printed_or_computed};

/// Parts of the recording that a draw may begin with.
const PARTS: usize = 4;
/// Further plays from a steady state: with page sets of another size, each part first, and each part first with CPUs that
/// changed places.
const DRAWS: [Draw; 2 * PARTS + 1] = [
    Draw { part: 0, turn: 0, high: 1.0 / SIZE },
    Draw { part: 0, turn: 0, high: SIZE },
    Draw { part: 3, turn: 0, high: 1.0 },
    Draw { part: 2, turn: 1, high: 1.0 },
    Draw { part: 1, turn: 0, high: 1.0 },
    Draw { part: 0, turn: 1, high: 1.0 },
    Draw { part: 3, turn: 1, high: 1.0 },
    Draw { part: 2, turn: 0, high: 1.0 },
    Draw { part: 1, turn: 1, high: 1.0 },
];
/// By what factor page sets are larger or smaller in the first two: chosen, a quarter.
const SIZE: f64 = 1.25;
/// Acts that all draws of a policy may play, so that a long recording does not take several times as long.
const DRAWN_ACTS_MAX: usize = 16 << 20;
/// Fewest draws all the same.
const DRAWS_MIN: usize = 2;

/// Acts that are played without a look at whether anybody still wants the result: some ten milliseconds.
const ACTS_AT_ONCE: usize = 1 << 18;

/// How a play from a steady state differs from the row's own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Draw {
    /// Part of the recording that it began with.
    part: usize,
    /// By how many CPUs each one is moved.
    turn: usize,
    /// Factor of the page sets' limits.
    high: f64,
}

impl Draw {
    /// The row's own.
    const ROW: Self = Self { part: 0, turn: 0, high: 1.0 };
}

/// A recording that is ready to be played under any policy.
pub(super) struct Forecaster<'r> {
    pub(super) machine: &'r Machine,
    pub(super) before: Option<&'r Snapshot>,
    pub(super) traffic: &'r Traffic,
    pub(super) window: Window,
    /// The recorded kernel's policy, and where its page sets were; `None` if either is not known.
    pub(super) recorded: Option<(Policy, &'r [SetStart])>,
    /// Looked at before each [`ACTS_AT_ONCE`]. What was broken off is no forecast.
    pub(super) cancel: &'r AtomicBool,
}

/// What came of playing a recording under one policy.
pub(super) struct Forecast {
    pub(super) totals: Totals,
    pub(super) held_idle: u64,
    /// Totals of further plays: other runs of the load, as they might have been.
    pub(super) draws: Vec<Totals>,
}

impl Forecast {
    /// All plays, the row's own first.
    pub(super) fn plays(&self) -> impl Iterator<Item = &Totals> {
        std::iter::once(&self.totals).chain(&self.draws)
    }
}

impl Forecaster<'_> {
    /// Whether this is the recorded kernel as it was recorded; settings may be said that are the recorded ones.
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
        let sets = self.begin(&machine, candidate);
        if self.is_recorded(candidate) {
            return Ok(self.count(sets, Vec::new()));
        }
        let draws = DRAWN_ACTS_MAX / (2 * self.traffic.acts.len()).max(1);
        let draws = &DRAWS[..draws.clamp(DRAWS_MIN, DRAWS.len())];
        let draws = draws.into_par_iter().map(|draw| self.steady(&machine, candidate, *draw));
        let plays = draws.chain(self.recorded_start(&machine, candidate)).map(|mut sets| {
            self.play_window(&mut sets);
            sets.totals().clone()
        });
        let draws = plays.collect();
        Ok(self.count(sets, draws))
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
    pub(super) fn begin<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> PageSets<'m> {
        match self.recorded.filter(|_| self.is_recorded(candidate)) {
            Some((policy, starts)) => {
                let mut sets = PageSets::new(machine, policy, &self.zone_starts(machine, candidate));
                sets.fill(starts);
                sets
            }
            None => self.steady(machine, candidate, Draw::ROW),
        }
    }

    /// The candidate's page sets, filled with what the recorded kernel's held.
    fn recorded_start<'m>(&self, machine: &'m Machine, candidate: &Candidate) -> Option<PageSets<'m>> {
        let (_, starts) = self.recorded?;
        // How far that kernel's page sets were tuned says nothing about another's.
        let start = |start: &SetStart| SetStart { high: None, alloc_factor: 0, ..start.clone() };
        let starts: Vec<SetStart> = starts.iter().map(start).collect();
        let mut sets = self.empty(machine, candidate, 1.0);
        sets.fill(&starts);
        Some(sets)
    }

    /// Page sets that played the recording once, from one of its parts on.
    fn steady<'m>(&self, machine: &'m Machine, candidate: &Candidate, draw: Draw) -> PageSets<'m> {
        let mut sets = self.empty(machine, candidate, draw.high);
        self.play_from(&mut sets, draw.part, draw.turn);
        sets.play(&self.traffic.remainder);
        sets.begin();
        sets
    }

    /// Empty page sets with limits that are larger by a factor.
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

    fn count(&self, mut sets: PageSets<'_>, draws: Vec<Totals>) -> Forecast {
        self.play_window(&mut sets);
        let totals = sets.totals().clone();
        Forecast { totals, held_idle: sets.rest(), draws }
    }

    /// Plays all, and counts from the window on.
    fn play_window(&self, sets: &mut PageSets<'_>) {
        let (before, counted) = self.traffic.acts.split_at(self.window.first_act());
        if !before.is_empty() {
            self.play(sets, before);
            sets.begin();
        }
        self.play(sets, counted);
    }

    fn play(&self, sets: &mut PageSets<'_>, acts: &[Act]) {
        self.portions(acts).for_each(|acts| sets.play(acts));
    }

    /// The acts, until it is cancelled.
    fn portions<'a>(&self, acts: &'a [Act]) -> impl Iterator<Item = &'a [Act]> {
        acts.chunks(ACTS_AT_ONCE).take_while(|_| !self.cancel.load(Relaxed))
    }

    /// Plays the recording from one of its parts on, with each CPU in the place of one that is `turn` further in its node.
    fn play_from(&self, sets: &mut PageSets<'_>, part: usize, turn: usize) {
        let acts = &self.traffic.acts;
        let (first, last) = acts.split_at(acts.len() / PARTS * part);
        if turn == 0 {
            self.play(sets, last);
            return self.play(sets, first);
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
        for act in self.portions(last).chain(self.portions(first)).flatten() {
            sets.play(&[moved(act)]);
        }
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
