//! Plays a recording step by step, and reports the contents and decisions of each page set with their times.

use std::sync::atomic::AtomicBool;

use pageset_core::{DrainReason, MigrateType, Order, ZoneKind};
use pageset_trace::{Layout, TraceReader};

use super::act::{Act, ActKind};
use super::candidate::Candidate;
use super::error::ReplayError;
use super::load::Times;
use super::page_sets::PageSets;
use super::prepared::Prepared;
use crate::stretch::OneSetting;

/// A recording that can be played step by step. Each allocation and free takes 16 bytes of memory or of a
/// file: eight bytes for the act, and eight bytes for its time.
pub struct Steps {
    prepared: Prepared,
}

/// The state of a page set after a step of a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time, in nanoseconds of the recording's clock.
    pub at_ns: u64,
    /// Number of the page set's zone in [`Steps::zones`].
    pub zone: usize,
    /// The page set's CPU.
    pub cpu: u32,
    /// Number of pages that the page set holds.
    pub count: i32,
    /// The page set's limit, in pages.
    pub high: i32,
    /// The decision of the page set in this step. `None` if the step needed no refill or drain.
    pub made: Option<Made>,
}

/// A decision of a page set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The page set fetched pages from its zone.
    Refill {
        /// The number of fetched pages.
        pages: u64,
        /// The order of the blocks.
        order: Order,
        /// The type of the blocks.
        migratetype: MigrateType,
    },
    /// The page set gave pages back.
    Drain {
        /// The number of drained pages.
        pages: u64,
        /// The reason for the drain.
        reason: DrainReason,
    },
}

/// A flag that is never set. A play that reports each step ends early only if the callback returns an error.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Steps {
    /// Reads a recording to its end. `machine` replaces the recording's own machine. `progress` receives the
    /// number of events read.
    ///
    /// # Errors
    /// The errors of [`replay`](super::replay).
    pub fn read(
        mut reader: &mut dyn TraceReader,
        machine: Option<Layout>,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, ReplayError> {
        let progress = |events| {
            progress(events);
            Ok(())
        };
        let prepared = if machine.is_some() {
            Prepared::read(&mut reader, (machine, None), Times::Keep, progress)?
        } else {
            let mut part = OneSetting::new(&mut *reader)?;
            Prepared::read(&mut part, (None, None), Times::Keep, progress)?
        };
        prepared.require_load(reader.info())?;
        Ok(Self { prepared })
    }

    /// Returns the node and kind of each zone.
    pub fn zones(&self) -> impl Iterator<Item = (u16, ZoneKind)> {
        self.prepared.machine.zones.iter().map(|zone| (zone.node, zone.kind))
    }

    /// Plays the recording once under a candidate, and calls `each` for every step. The page sets begin with
    /// the same contents as in a [`replay`](super::replay) under this candidate. If `replay` counts the whole
    /// recording, the steps have the same refills and drains.
    ///
    /// # Errors
    /// An error of `each`, or an error if the candidate cannot be replayed.
    pub fn play<E: From<ReplayError>>(
        &self,
        candidate: &Candidate,
        mut each: impl FnMut(&Step) -> Result<(), E>,
    ) -> Result<(), E> {
        let forecaster = self.prepared.forecaster(&[], &NEVER, &|_| {});
        let machine = forecaster.machine_of(candidate)?;
        let mut player = Player { sets: forecaster.begin(&machine, candidate)?, cpus: machine.cpus() };
        let load = &self.prepared.load;
        let mut times_ns = Vec::new();
        load.times(0..load.acts.len().min(1), &mut times_ns)?;
        if let Some(&at_ns) = times_ns.first() {
            (0..machine.sets()).try_for_each(|at| each(&player.step(at_ns, at, None)))?;
        }
        let mut one = |act: &Act, at_ns: u64| {
            match act.kind {
                ActKind::Tick => {
                    let of_cpu = (act.at as usize..machine.sets()).step_by(machine.cpus());
                    let before: Vec<_> = of_cpu.map(|at| (at, player.sets.count_and_high(at).0)).collect();
                    player.sets.play(std::slice::from_ref(act));
                    for (at, count) in before {
                        let pages = count - player.sets.count_and_high(at).0;
                        let drain = Made::Drain { pages: pages.max(0) as u64, reason: DrainReason::Decay };
                        each(&player.step(at_ns, at, Some(drain).filter(|_| pages > 0)))?;
                    }
                }
                kind if kind.is_of_set() => {
                    for _ in 0..act.count {
                        let made = player.play_one(Act { count: 1, ..*act });
                        each(&player.step(at_ns, act.at as usize, made))?;
                    }
                }
                _ => player.sets.play(std::slice::from_ref(act)),
            }
            Ok(())
        };
        let (mut from, mut told) = (0, Ok(()));
        let played = load.acts.each(0..load.acts.len(), |acts| {
            let read = load.times(from..from + acts.len(), &mut times_ns);
            from += acts.len();
            told = read
                .map_err(E::from)
                .and_then(|()| acts.iter().zip(&times_ns).try_for_each(|(act, at_ns)| one(act, *at_ns)));
            told.is_ok()
        });
        played.map_err(|error| ReplayError::no_room(&load.acts, error))?;
        told
    }
}

struct Player<'m> {
    sets: PageSets<'m>,
    cpus: usize,
}

impl Player<'_> {
    /// Plays an allocation or free of one block. Returns the page set's decision.
    fn play_one(&mut self, act: Act) -> Option<Made> {
        let moved = |sets: &PageSets<'_>| {
            let totals = sets.totals();
            (totals.refilled_pages, totals.drained_pages, totals.free_high_drains)
        };
        let (refilled, drained, free_high) = moved(&self.sets);
        self.sets.play(&[act]);
        let (refilled_now, drained_now, free_high_now) = moved(&self.sets);
        if refilled_now > refilled {
            let (order, migratetype) = (act.block.order(), act.block.migratetype());
            return Some(Made::Refill { pages: refilled_now - refilled, order, migratetype });
        }
        let reason = if free_high_now > free_high { DrainReason::FreeHigh } else { DrainReason::High };
        let pages = drained_now - drained;
        (pages > 0).then_some(Made::Drain { pages, reason })
    }

    fn step(&self, at_ns: u64, at: usize, made: Option<Made>) -> Step {
        let (count, high) = self.sets.count_and_high(at);
        Step { at_ns, zone: at / self.cpus, cpu: (at % self.cpus) as u32, count, high, made }
    }
}
