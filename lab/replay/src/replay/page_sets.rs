//! A machine's page sets under one policy. These page sets decide as the core's page sets do, but their lists
//! hold only the number of blocks. A play needs no memory for frames, because lists have no frames.

use std::ops::Range;

use pageset_core::pcp::{Activity, BlockCount, DrainFrom, DueDrain, Limits, ListIndex, Pcp, Place, Traffic};
use pageset_core::policy::DecayDrain;
use pageset_core::{DrainReason, Order, Policy};

use super::act::{Act, ActKind, BlockKind};
use super::bundles::{Bundle, Bundles, OfList, OfSet};
use super::machine::{Machine, index_of};
use super::start::SetStart;
use super::totals::Totals;
use crate::limits::has_large_slice;
use crate::pressure::ZonePressure;

/// Maximum number of bytes of one page set with its totals.
pub(super) const SET_BYTES: usize = size_of::<PageSet>() + 64;

/// The page sets of a machine during a play.
#[derive(Clone, Debug)]
pub(super) struct PageSets<'m> {
    machine: &'m Machine,
    policy: Policy,
    zones: Vec<ZoneSets>,
    /// The page sets, by zone and CPU.
    sets: Vec<PageSet>,
    totals: Totals,
    /// For each CPU, the recorded seconds since the CPU's last tick in this play.
    since_tick_s: Vec<u32>,
    /// Seconds between two ticks in the recording, and seconds between two ticks in this play.
    tick_s: (u32, u32),
}

/// State that all page sets of one zone share.
#[derive(Clone, Debug)]
struct ZoneSets {
    /// Number of pages of the zone that are in no page set. Only in a damaged or malicious recording can this
    /// number become 0.
    outside: u64,
    pressure: ZonePressure,
    /// Number of pages that are free or in page sets when the recording begins.
    idle_before: i64,
    /// The kernel's index of the zone.
    index: usize,
    node: u16,
}

#[derive(Clone, Debug)]
struct PageSet {
    pcp: Pcp<BlockCount>,
    limits: Limits,
    activity: Activity,
}

/// A zone at the beginning of the recording: its limits, and the number of pages that are free or in page
/// sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneStart {
    pub(super) limits: Limits,
    pub(super) idle: i64,
}

impl ZoneSets {
    /// Moves up to `blocks` blocks into a page set, and returns the number of moved blocks.
    fn admit(&mut self, blocks: u32, order: Order) -> u32 {
        let room = self.outside >> order.get();
        let blocks = blocks.min(u32::try_from(room).unwrap_or(u32::MAX));
        self.outside -= u64::from(blocks) << order.get();
        blocks
    }

    fn leave(&mut self, order: Order) {
        self.outside += u64::from(order.frames());
    }
}

impl<'m> PageSets<'m> {
    /// Makes empty page sets.
    pub(super) fn new(machine: &'m Machine, policy: Policy, starts: &[ZoneStart]) -> Self {
        let cpus = machine.cpus();
        let zones = machine.zones.iter().zip(starts).map(|(zone, start)| {
            let mut pressure = ZonePressure::new(zone, machine.layout.online_cpus());
            pressure.set_visible(start.idle.max(0) as u64);
            ZoneSets {
                // A page set counts its pages in an `i32`.
                outside: zone.managed.min(i32::MAX as u64),
                pressure,
                idle_before: start.idle,
                index: index_of(zone),
                node: zone.node,
            }
        });
        let set = |(start, cpu): (&ZoneStart, usize)| {
            let mut pcp = Pcp::counted(policy.lists);
            pcp.high = start.limits.high_min;
            pcp.has_large_slice = has_large_slice(&policy, &machine.layout, cpu as u32, start.limits.batch);
            PageSet { pcp, limits: start.limits, activity: Activity::None }
        };
        let sets = starts.iter().flat_map(|start| (0..cpus).map(move |cpu| (start, cpu))).map(set).collect();
        Self {
            machine,
            policy,
            zones: zones.collect(),
            sets,
            totals: Totals::new(machine.sets()),
            since_tick_s: vec![0; cpus],
            tick_s: (1, 1),
        }
    }

    /// Sets the interval of ticks in the recording, and the interval of ticks in this play.
    pub(super) fn with_ticks(self, recorded_s: Option<u32>, ours_s: Option<u32>) -> Self {
        // Treat an interval of more than an hour as an hour, because hardly any recording lasts an hour.
        let seconds = |interval: Option<u32>| interval.unwrap_or(1).clamp(1, 3600);
        Self { tick_s: (seconds(recorded_s), seconds(ours_s)), ..self }
    }

    /// Fills the page sets with the contents of the recorded kernel's page sets.
    pub(super) fn fill(&mut self, starts: &[SetStart]) {
        for (at, start) in starts.iter().enumerate() {
            for list in 0..self.policy.lists.lists() {
                let order = self.policy.lists.order(list);
                let blocks = start.lists[list].max(0) as u32;
                self.fetch(at, list, order, blocks);
            }
            let pcp = &mut self.sets[at].pcp;
            pcp.high = start.high.unwrap_or(pcp.high);
            pcp.alloc_factor = start.alloc_factor;
            pcp.end_tick();
        }
        self.begin();
    }

    /// Sets all totals to zero. In each zone, free pages and pages in page sets again add up to the number at
    /// the beginning of the recording.
    pub(super) fn begin(&mut self) {
        let cpus = self.machine.cpus();
        for (zone, sets) in self.zones.iter_mut().zip(self.sets.chunks(cpus)) {
            let held: i64 = sets.iter().map(|set| i64::from(set.pcp.count)).sum();
            (0..cpus).for_each(|cpu| zone.pressure.fold(cpu));
            zone.pressure.set_visible((zone.idle_before - held).max(0) as u64);
        }
        self.totals.begin(self.sets.iter().map(|set| set.pcp.count));
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The number of pages that a page set holds, and its limit.
    pub(super) fn count_and_high(&self, at: usize) -> (i32, i32) {
        let pcp = &self.sets[at].pcp;
        (pcp.count, pcp.high)
    }

    /// Plays a minute without allocations and frees. Returns the number of pages that page sets hold
    /// afterwards.
    pub(super) fn rest(&mut self) -> u64 {
        const TICKS: u32 = 60;
        for _ in 0..TICKS {
            (0..self.machine.cpus()).for_each(|cpu| self.tick(cpu));
        }
        self.sets.iter().map(|set| set.pcp.count.max(0) as u64).sum()
    }

    /// Plays acts.
    pub(super) fn play(&mut self, acts: &[Act]) {
        acts.iter().for_each(|act| self.play_one(*act));
    }

    /// Plays the acts at `range` of a portion. `acts` begins with act `first` of the portion. For each
    /// recorded page set, `places` names the page set that gets the recorded set's acts.
    pub(super) fn play_bundled(
        &mut self,
        (acts, first): (&[Act], usize),
        range: Range<usize>,
        bundles: &Bundles,
        places: Option<&[u32]>,
    ) {
        let place = |at: u32| places.map_or(at, |places| places[at as usize]);
        let each = |sets: &mut Self, range: Range<usize>| {
            for act in &acts[range.start - first..range.end - first] {
                let at = if act.kind.is_of_set() { place(act.at) } else { act.at };
                sets.play_one(Act { at, ..*act });
            }
        };
        let mut from = range.start;
        for bundle in bundles.within(range.clone()) {
            let of_bundle = bundle.range();
            each(self, from..of_bundle.start);
            if !self.pass(bundles, bundle, place) {
                each(self, of_bundle.clone());
            }
            from = of_bundle.end;
        }
        each(self, from..range.end);
    }

    #[inline]
    fn play_one(&mut self, act: Act) {
        match act.kind {
            ActKind::Nothing => {}
            ActKind::Alloc | ActKind::BulkAlloc => (0..act.count).for_each(|_| self.alloc(act)),
            ActKind::Free => (0..act.count).for_each(|_| self.free(act)),
            ActKind::FreePart | ActKind::FreeLastPart => {
                if let Some(block) = act.freed(self.policy.split_frees) {
                    self.free(Act { block, ..act });
                }
            }
            ActKind::PastSet => {
                self.totals.frees += 1;
                self.past_set(act.at as usize, act.block, 1);
            }
            ActKind::Tick => self.recorded_tick(act.at as usize),
            ActKind::ReclaimStarts | ActKind::ReclaimStops => {
                let node = act.at;
                for zone in self.zones.iter_mut().filter(|zone| u32::from(zone.node) == node) {
                    zone.pressure.reclaim_active = act.kind == ActKind::ReclaimStarts;
                }
            }
        }
    }

    /// Plays all acts of a bundle in one step. If an act of the bundle could cause a refill or drain, plays
    /// nothing and returns false.
    fn pass(&mut self, bundles: &Bundles, bundle: &Bundle, place: impl Fn(u32) -> u32) -> bool {
        let sets = bundles.sets_of(bundle);
        if !sets.iter().all(|of| self.can_pass(place(of.at) as usize, of, bundles.lists_of(of))) {
            return false;
        }
        self.totals.passed(bundle);
        for of in sets {
            let at = place(of.at) as usize;
            let pages = i64::from(of.traffic.pages());
            let set = &mut self.sets[at];
            set.pcp.pass(&self.policy, set.limits, &of.traffic);
            for list in bundles.lists_of(of) {
                let number = self.policy.lists.list(list.block.order(), list.block.migratetype());
                set.pcp.gain(
                    number.expect("expected page sets to hold every order that bundles contain"),
                    i32::from(list.gained),
                );
            }
            self.totals.note_held_after(at, set.pcp.count);
            let zone = &mut self.zones[at / self.machine.cpus()];
            zone.outside = zone.outside.saturating_add_signed(-pages);
        }
        true
    }

    /// Whether a page set can play its acts of a bundle without a refill or drain, and without a change of a
    /// zone's flags.
    fn can_pass(&self, at: usize, of: &OfSet, lists: &[OfList]) -> bool {
        let number = at / self.machine.cpus();
        let (zone, set) = (&self.zones[number], &self.sets[at]);
        if let Some(highest) = of.highest_zone.map(usize::from) {
            let mut higher = self.zones[number + 1..].iter();
            if !zone.pressure.ignores_walks()
                || zone.index < highest
                    && higher.any(|higher| {
                        higher.node == zone.node
                            && higher.index <= highest
                            && !higher.pressure.flags().below_high
                    })
            {
                return false;
            }
        }
        // Other page sets of the zone may also take pages in this bundle. Require room for all pages that a
        // bundle may free.
        if zone.outside < (Traffic::BLOCKS_MAX << Traffic::ORDER_MAX) as u64
            || !set.pcp.has_room_for(&self.policy, set.limits, zone.pressure.flags(), &of.traffic)
        {
            return false;
        }
        let number = |list: &OfList| self.policy.lists.list(list.block.order(), list.block.migratetype());
        lists.iter().enumerate().all(|(at, list)| {
            // Blocks of several migratetypes of a high order may be on one list.
            let earlier = lists[..at].iter().filter(|earlier| number(earlier) == number(list));
            let needed = earlier.fold(u32::from(list.needed), |sum, list| sum + u32::from(list.needed));
            number(list).is_some_and(|number| set.pcp.has_blocks(number, needed))
        })
    }

    #[inline]
    fn alloc(&mut self, act: Act) {
        let (at, order) = (act.at as usize, act.block.order());
        self.totals.allocs += 1;
        self.walk(at, act.block);
        let Some(list) = self.policy.lists.list(order, act.block.migratetype()) else {
            return self.past_set(at, act.block, -1);
        };
        let zone = at / self.machine.cpus();
        let set = &mut self.sets[at];
        if act.kind == ActKind::Alloc {
            set.pcp.note_alloc(&self.policy);
        }
        self.totals.pcp_allocs += 1;
        self.totals.asked_pages += u64::from(order.frames());
        if set.pcp.is_list_empty(list) {
            let flags = self.zones[zone].pressure.flags();
            let blocks = set.pcp.refill_size(&self.policy, set.limits, flags, order);
            self.fetch(at, list, order, blocks);
            self.totals.refilled(u64::from(blocks) << order.get());
        }
        let (zone, set) = (&mut self.zones[zone], &mut self.sets[at]);
        if set.pcp.pop(&(), list, order).is_some() {
            zone.leave(order);
        }
        self.totals.note_held(at, set.pcp.count);
    }

    /// Plays the watermark checks of an allocation from page set `at`. The allocation takes its block from
    /// this zone, so the checks have failed in the node's higher zones that the allocation may use (spec
    /// §2.9).
    #[inline]
    fn walk(&mut self, at: usize, block: BlockKind) {
        let zone = at / self.machine.cpus();
        let highest = block.highest_zone();
        self.zones[zone].pressure.walk_to(highest, i64::from(block.order().frames()));
        if self.zones[zone].index < highest {
            let node = self.zones[zone].node;
            for higher in self.zones[zone + 1..].iter_mut() {
                if higher.node == node && higher.index <= highest {
                    higher.pressure.passed();
                }
            }
        }
    }

    /// Plays a block that goes directly between a zone and a request, without a page set.
    fn past_set(&mut self, at: usize, block: BlockKind, direction: i64) {
        let (zone, cpu) = (at / self.machine.cpus(), at % self.machine.cpus());
        let pages = i64::from(block.order().frames());
        self.sets[at].activity = Activity::Touched;
        self.zones[zone].pressure.change(cpu, direction * pages);
        self.totals.direct_blocks += 1;
        self.totals.direct_pages += pages as u64;
    }

    /// Moves blocks from the zone to a list, under one hold of the zone's lock.
    fn fetch(&mut self, at: usize, list: ListIndex, order: Order, blocks: u32) {
        let (zone, cpu) = (at / self.machine.cpus(), at % self.machine.cpus());
        let (zone, set) = (&mut self.zones[zone], &mut self.sets[at]);
        set.activity = Activity::Touched;
        for _ in 0..zone.admit(blocks, order) {
            set.pcp.append(&(), list, (), order);
        }
        zone.pressure.change(cpu, -(i64::from(blocks) << order.get()));
    }

    #[inline]
    fn free(&mut self, act: Act) {
        let (at, order) = (act.at as usize, act.block.order());
        self.totals.frees += 1;
        let Some(list) = self.policy.lists.list(order, act.block.migratetype()) else {
            return self.past_set(at, act.block, 1);
        };
        self.totals.asked_pages += u64::from(order.frames());
        let zone = &mut self.zones[at / self.machine.cpus()];
        let set = &mut self.sets[at];
        if zone.admit(1, order) == 0 {
            return;
        }
        set.pcp.push(&(), list, (), order);
        let due = set.pcp.note_free(&self.policy, set.limits, zone.pressure.flags(), order);
        if let Some(due) = due.filter(|due| set.pcp.is_due(&(), self.policy.counting, list, due)) {
            self.drain_due(at, list, due);
        }
        self.totals.note_held(at, self.sets[at].pcp.count);
    }

    fn drain_due(&mut self, at: usize, list: ListIndex, due: DueDrain) {
        let (rule, batch) = (self.policy.free_drain, self.sets[at].limits.batch);
        let before = self.sets[at].pcp.count;
        let mut left = due.pages;
        loop {
            let slice = rule.slice(left, batch);
            self.give_back(at, DrainFrom { pages: slice, list });
            left -= slice;
            if left <= 0 || !rule.goes_on(self.sets[at].pcp.count, due.limit) {
                break;
            }
        }
        let pages = before - self.sets[at].pcp.count;
        self.totals.drained(pages, due.reason == DrainReason::FreeHigh);
        self.zones[at / self.machine.cpus()].pressure.drained();
    }

    /// Moves blocks back to the zone, under one hold of the zone's lock.
    fn give_back(&mut self, at: usize, from: DrainFrom) {
        let (zone, cpu) = (at / self.machine.cpus(), at % self.machine.cpus());
        let (zone, set) = (&mut self.zones[zone], &mut self.sets[at]);
        let pages = set.pcp.remove(&(), self.policy.drain_order, from, |(), order| zone.leave(order));
        set.activity = Activity::Touched;
        zone.pressure.change(cpu, i64::from(pages));
        self.totals.drain_holds += 1;
    }

    /// Plays a tick of the recording. If ticks have another interval in this play, a recorded tick becomes no
    /// tick, one tick, or several ticks.
    fn recorded_tick(&mut self, cpu: usize) {
        let (recorded_s, ours_s) = self.tick_s;
        self.since_tick_s[cpu] += recorded_s;
        while self.since_tick_s[cpu] >= ours_s {
            self.since_tick_s[cpu] -= ours_s;
            self.tick(cpu);
        }
    }

    /// Plays one CPU's periodic work (spec §2.11).
    fn tick(&mut self, cpu: usize) {
        for zone in 0..self.zones.len() {
            let at = zone * self.machine.cpus() + cpu;
            self.zones[zone].pressure.fold(cpu);
            let set = &mut self.sets[at];
            let activity = std::mem::replace(&mut set.activity, Activity::None);
            let before = set.pcp.count;
            if let Some(decayed) = set.pcp.decay(&self.policy, set.limits) {
                let slice = match self.policy.decay_drain {
                    DecayDrain::Whole => decayed.excess,
                    DecayDrain::Slices => set.limits.batch,
                };
                let mut left = decayed.excess;
                while left > 0 {
                    self.give_back(at, DrainFrom { pages: left.min(slice), list: 0 });
                    left -= slice;
                }
                self.sets[at].pcp.end_tick();
            }
            let is_local = self.zones[zone].node == self.machine.nodes[cpu];
            let place = if is_local { Place::Local } else { Place::Remote };
            let set = &mut self.sets[at];
            if set.pcp.expire(place, activity) == Some(0) {
                let pages = set.pcp.count.min(set.limits.batch);
                self.give_back(at, DrainFrom { pages, list: 0 });
            }
            let count = self.sets[at].pcp.count;
            if count < before {
                self.totals.drained(before - count, false);
                self.totals.note_held(at, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::policy::LINUX_6_12;
    use proptest::prelude::*;

    use super::*;
    use crate::replay::candidate::rules_in_play;
    use crate::replay::replayable;
    use crate::replay::tests::small_layout;

    const E1: Limits = Limits { batch: 63, high_min: 6862, high_max: 90_112 };

    fn starts(machine: &Machine) -> Vec<ZoneStart> {
        machine.zones.iter().map(|zone| ZoneStart { limits: E1, idle: zone.managed as i64 }).collect()
    }

    fn act(kind: ActKind, at: u32, order: u8) -> Act {
        let order = Order::new(order).unwrap();
        Act { kind, block: BlockKind::new(order, pageset_core::MigrateType::Movable, 1), count: 1, at }
    }

    /// Tests worked example E2 of the specification on a whole machine: seven refills serve 5000 allocations.
    #[test]
    fn example_e2_refills_of_5000_allocations() {
        let machine = Machine::new(small_layout()).unwrap();
        let mut sets = PageSets::new(&machine, LINUX_6_12, &starts(&machine));
        sets.begin();
        sets.play(&vec![act(ActKind::Alloc, 2, 0); 5000]);
        let totals = sets.totals();
        assert_eq!((totals.refills, totals.refilled_pages), (7, 63 + 126 + 252 + 504 + 1008 + 2016 + 2016));
        assert_eq!(totals.held_now(), totals.refilled_pages - 5000);
    }

    #[test]
    fn page_sets_begin_with_what_they_are_filled_with() {
        let machine = Machine::new(small_layout()).unwrap();
        let mut sets = PageSets::new(&machine, LINUX_6_12, &starts(&machine));
        let mut filled = vec![SetStart::default(); machine.sets()];
        filled[2].lists[1] = 100;
        filled[2].high = Some(7000);
        sets.fill(&filled);
        assert_eq!((sets.totals().held_now(), sets.totals().refills), (100, 0));
        sets.play(&vec![act(ActKind::Alloc, 2, 0); 100]);
        assert_eq!(sets.totals().refills, 0);
        sets.play(&[act(ActKind::Alloc, 2, 0)]);
        assert_eq!(sets.totals().refills, 1);
    }

    /// Tests plays with the recorded interval of ticks, and with twice and half this interval. Nine recorded
    /// ticks become nine, four and 18 ticks, and each tick lowers `high` by an eighth.
    #[test]
    fn ticks_come_at_the_interval_that_is_set() {
        let machine = Machine::new(small_layout()).unwrap();
        let high_after = |recorded_s, ours_s| {
            let sets = PageSets::new(&machine, LINUX_6_12, &starts(&machine));
            let mut sets = sets.with_ticks(Some(recorded_s), Some(ours_s));
            sets.sets[2].pcp.high = 80_000;
            sets.play(&[Act { kind: ActKind::Tick, block: BlockKind::PAGE, count: 1, at: 0 }; 9]);
            sets.sets[2].pcp.high
        };
        let lowered = |times: u32| (0..times).fold(80_000_i32, |high, _| high - (high >> 3));
        assert_eq!(high_after(1, 1), lowered(9));
        assert_eq!(high_after(1, 2), lowered(4));
        assert_eq!(high_after(2, 1), lowered(18));
        assert_eq!(high_after(u32::MAX, 3600), lowered(9), "no overflow");
    }

    proptest! {
        /// Tests that no page appears or disappears. Each page that came from a zone or a free is held, went
        /// back, or was allocated.
        #[test]
        fn pages_are_conserved(acts in prop::collection::vec((0..7_u8, 0..4_u32, 0..11_u8), 0..400), policy in 0..replayable().len()) {
            let policy = replayable()[policy];
            let machine = Machine::new(small_layout()).unwrap();
            let mut sets = PageSets::new(&machine, policy, &starts(&machine));
            sets.begin();
            let (mut taken, mut given) = (0, 0);
            for (kind, at, order) in acts {
                let order = if kind == 1 { 0 } else { order };
                let kind = [
                    ActKind::Alloc, ActKind::BulkAlloc, ActKind::Free, ActKind::PastSet, ActKind::Tick,
                    ActKind::ReclaimStarts, ActKind::ReclaimStops,
                ][usize::from(kind)];
                let at = if kind.is_of_set() { at } else { at % 2 };
                let is_held = policy.lists.holds(Order::new(order).unwrap());
                match kind {
                    ActKind::Alloc | ActKind::BulkAlloc if is_held => taken += 1 << order,
                    ActKind::Free if is_held => given += 1 << order,
                    _ => {}
                }
                sets.play(&[act(kind, at, order)]);
            }
            let totals = sets.totals();
            prop_assert_eq!(totals.held_now() + taken + totals.drained_pages, totals.refilled_pages + given);
            prop_assert!(totals.held_peak() >= totals.held_now());
        }

        /// Tests that acts played in bundles give the same counts as acts played one by one, under any
        /// policy. The acts are played in two parts, sometimes on exchanged page sets. In some cases a zone
        /// is short of free pages, or a reclaimer runs.
        #[test]
        fn bundles_change_nothing(
            acts in any_acts(),
            policy in 0..replayable().len(),
            (batch, high) in (1..20_i32, 1..200_i32),
            idle in prop_oneof![100..400_i64, Just(30_000)],
            cut in 0..2000_usize,
            is_exchanged: bool,
        ) {
            let policy = replayable()[policy];
            let limits = Limits { batch, high_min: high, high_max: 3 * high };
            let starts = [ZoneStart { limits, idle }; 2];
            assert_bundles_change_nothing(policy, starts, &acts, cut.min(acts.len()), is_exchanged);
        }

        /// Tests that a play depends on no rule that [`rules_in_play`] leaves out.
        #[test]
        fn other_rules_change_nothing(
            acts in any_acts(),
            policy in 0..replayable().len(),
        ) {
            let policy = replayable()[policy];
            let machine = Machine::new(small_layout()).unwrap();
            let limits = Limits { batch: 7, high_min: 60, high_max: 60 };
            let play = |policy, high_max| {
                let starts = [ZoneStart { limits: Limits { high_max, ..limits }, idle: 400 }; 2];
                let mut sets = PageSets::new(&machine, policy, &starts);
                sets.begin();
                sets.play(&acts);
                (sets.totals().clone(), sets.rest())
            };
            let high_max = if policy.tuning.is_some() { 60 } else { 100 };
            prop_assert_eq!(play(policy, 60), play(rules_in_play(policy), high_max));
        }
    }

    /// Plays acts one by one and in bundles, in two parts, and compares the results. Values that only
    /// `verify` reads are not compared.
    #[track_caller]
    fn assert_bundles_change_nothing(
        policy: Policy,
        starts: [ZoneStart; 2],
        acts: &[Act],
        cut: usize,
        is_exchanged: bool,
    ) {
        let machine = Machine::new(small_layout()).unwrap();
        let places = is_exchanged.then_some([1, 0, 3, 2]);
        let (bundles, none) = (Bundles::of(acts, 0, &[cut]), Bundles::default());
        let moved = acts.iter().map(|act| match places {
            Some(places) if act.kind.is_of_set() => Act { at: places[act.at as usize], ..*act },
            _ => *act,
        });
        let moved: Vec<Act> = moved.collect();
        let [one_by_one, bundled] =
            [(&moved[..], &none, None), (acts, &bundles, places)].map(|(acts, bundles, places)| {
                let mut sets = PageSets::new(&machine, policy, &starts);
                sets.begin();
                for range in [0..cut, cut..acts.len()] {
                    let of_range = (&acts[range.clone()], range.start);
                    sets.play_bundled(of_range, range, bundles, places.as_ref().map(|places| &places[..]));
                }
                let zones = sets.zones.iter();
                let zones = zones
                    .map(|zone| (zone.outside, zone.pressure.free, zone.pressure.flags().below_high))
                    .collect::<Vec<_>>();
                (format!("{:?} {zones:?}", sets.sets), sets.totals)
            });
        assert_eq!(one_by_one, bundled);
    }

    /// Regression tests for cases that random acts seldom reach.
    #[test]
    fn bundles_change_nothing_in_rare_cases() {
        let start =
            |high, idle| ZoneStart { limits: Limits { batch: 1, high_min: high, high_max: high }, idle };
        let runs = |runs: &[(ActKind, u8, usize)]| -> Vec<Act> {
            runs.iter().flat_map(|(kind, order, count)| vec![act(*kind, 2, *order); *count]).collect()
        };
        let of_type = |mut act: Act| {
            act.block = act.block.of_type(pageset_core::MigrateType::Unmovable);
            act
        };
        // Two types share a list. The list has enough blocks for each type alone, but not for both types
        // together.
        let freed = runs(&[(ActKind::Free, 1, 3)]);
        let taken = runs(&[(ActKind::Alloc, 1, 2)]);
        let taken = taken.iter().copied().chain(taken.iter().copied().map(of_type));
        let acts: Vec<Act> = freed.into_iter().chain(taken).collect();
        let v5 = *Policy::named("linux-4.9-highorder-v5").unwrap();
        assert_bundles_change_nothing(v5, [start(100, 30_000); 2], &acts, 3, false);
        // The zone is at its watermark before the first allocation, and this allocation takes a page that the
        // page set holds.
        let acts = runs(&[(ActKind::Free, 0, 5), (ActKind::Alloc, 0, 5)]);
        assert_bundles_change_nothing(LINUX_6_12, [start(100, 150); 2], &acts, 5, false);
        // The count of recently freed pages is at its maximum, and is halved.
        let acts = runs(&[(ActKind::Free, 0, 40), (ActKind::Alloc, 0, 2), (ActKind::Free, 0, 5)]);
        assert_bundles_change_nothing(LINUX_6_12, [start(1000, 30_000); 2], &acts, 40, false);
    }

    /// Acts come in runs, as in recordings. Short runs end at refills and drains, and long runs are played as
    /// bundles.
    fn any_acts() -> impl Strategy<Value = Vec<Act>> {
        let kinds = [ActKind::Alloc; 20].into_iter().chain([ActKind::Free; 20]);
        let kinds = kinds.chain([ActKind::BulkAlloc, ActKind::Nothing, ActKind::PastSet, ActKind::Tick]);
        let kinds = kinds.chain([ActKind::ReclaimStarts, ActKind::ReclaimStops]);
        let kinds = kinds.chain([ActKind::FreePart, ActKind::FreeLastPart]);
        let orders = [0; 20].into_iter().chain([1, 2, 3, 3, 3, 3, 4, 9]);
        let kind = prop::sample::select(kinds.collect::<Vec<_>>());
        let order = prop::sample::select(orders.collect::<Vec<_>>());
        let act = (kind, order, 0..2_u8, 0..3_usize, 0..4_u32, 1..3_u16);
        let act = act.prop_map(|(kind, order, of, highest, at, count)| {
            let order = Order::new(order).unwrap();
            let migratetype = pageset_core::MigrateType::ALL[usize::from(of)];
            let at = if kind.is_of_set() { at } else { at % 2 };
            Act { kind, block: BlockKind::new(order, migratetype, highest), count, at }
        });
        let run = (act, prop_oneof![1..4_usize, 1..60_usize]);
        let runs = prop::collection::vec(run, 0..100);
        runs.prop_map(|runs| {
            runs.into_iter().flat_map(|(act, count)| std::iter::repeat_n(act, count)).collect()
        })
    }
}
