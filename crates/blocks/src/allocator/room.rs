//! How much memory a zone has: what CPUs know of it, and what they have to look at.

use pageset_core::{CpuId, MAX_ORDER, Order, Request, Watermark, ZoneId, ZoneKind};

use super::refill::Needy;
use super::{BlockAllocator, FRAMES, WholeUse};
use crate::cpu_lists::CpuLists;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Whether a zone has so much memory that it stays above a watermark. O(CPUs) near it.
    pub(super) fn has_room(&self, needy: Needy<'_>, request: &Request, mark: Watermark) -> bool {
        if needy.lists.outlook.is_plenty() {
            return true;
        }
        let zone = &self.zones[needy.zone.index()];
        let mut wanted = zone.floor(request, mark).saturating_add(u64::from(request.order.frames()));
        let min = zone.floor(request, Watermark::Min);
        if request.order < Order::PAGEBLOCK && min > 0 {
            // A CPU that takes a pageblock uses all of it, without another look.
            wanted = wanted.max(min.saturating_add(FRAMES as u64));
        }
        let has_room = self.is_free_at_least(zone, wanted);
        if has_room {
            self.look_at(zone, needy.lists);
        }
        has_room
    }

    /// Whether so many frames of a zone are counted as free, by the zone or by CPUs.
    pub(super) fn is_free_at_least(&self, zone: &Zone, frames: u64) -> bool {
        zone.free_at_least() >= frames || {
            self.gather(zone);
            zone.free_at_least() >= frames
        }
    }

    /// The zone counts what was in the surplus of its CPUs. O(CPUs).
    fn gather(&self, zone: &Zone) {
        self.lists_in(zone.id).for_each(|lists| zone.add_idle(lists.surplus.take_all()));
    }

    /// The zone counts what was in this CPU's surplus.
    pub(super) fn give_up_surplus(&self, zone: ZoneId, lists: &CpuLists) {
        self.zones[zone.index()].add_idle(lists.surplus.take_all());
    }

    /// Frames that CPUs count, and the zone does not.
    pub(super) fn surplus_in(&self, zone: ZoneId) -> u64 {
        self.lists_in(zone).map(|lists| u64::from(lists.surplus.frames())).sum()
    }

    /// A CPU looks at its zone. Returns how many whole pageblocks it may keep at hand of it, besides the one that it freed last: none
    /// that many CPUs would miss.
    pub(super) fn look_at(&self, zone: &Zone, lists: &CpuLists) -> usize {
        let (whole, level) = (zone.whole_blocks(), zone.level());
        let most = match self.parts.whole_use {
            WholeUse::LowestFirst => 1,
            WholeUse::AtHand => (whole / (4 * self.cpus())).clamp(1, self.parts.spares_max),
        };
        let free = (whole as u64).saturating_mul(FRAMES as u64);
        let was_plenty = lists.outlook.is_plenty();
        // Twice as much, so that not every pageblock changes what all CPUs think of the zone.
        if free >= if was_plenty { level } else { level.saturating_mul(2) } {
            lists.outlook.note_plenty(most);
        } else if was_plenty {
            self.warn(zone);
        }
        most
    }

    /// Every CPU looks at the zone next time. O(CPUs).
    #[cold]
    pub(super) fn warn(&self, zone: &Zone) {
        self.lists_in(zone.id).for_each(|lists| lists.outlook.forget());
    }

    /// Whole pageblocks that a CPU keeps at hand, as far as it knows.
    pub(super) fn most_spares(&self, zone: &Zone, lists: &CpuLists) -> usize {
        lists.outlook.spares_max().unwrap_or_else(|| self.look_at(zone, lists))
    }

    /// What each CPU has of a zone.
    pub(super) fn lists_in(&self, zone: ZoneId) -> impl Iterator<Item = &CpuLists> {
        (0..self.cpus()).map(move |cpu| self.lists_at(zone, CpuId(cpu as u32)))
    }
}

impl Zone {
    /// Frames above which no request finds too few: more than any has to leave, and the largest block.
    fn level(&self) -> u64 {
        let kinds = ZoneKind::ALL.into_iter();
        let lowmem = kinds.map(|kind| self.lowmem_reserve[kind.index()]).max().unwrap_or(0);
        let above_all = [Watermark::Min, Watermark::Low, Watermark::High].map(|mark| self.mark(mark));
        let marks = above_all.into_iter().max().unwrap_or(0);
        [marks, lowmem, self.reserved_frames()].into_iter().fold(1 << MAX_ORDER, u64::saturating_add)
    }
}

// They take all of 64 pageblocks, which takes half an hour each under miri.
#[cfg(all(test, feature = "alloc", not(any(loom, shuttle, miri))))]
mod tests {
    use std::vec::Vec;

    use pageset_core::{Config, NodeId, Pfn, RequestTraits, Watermarks, ZoneConfig};

    use super::*;
    use crate::allocator::Tables;
    use crate::atomic::Relaxed;

    const CPU: CpuId = CpuId(0);
    const OTHER: CpuId = CpuId(1);
    const ZONE: ZoneId = ZoneId(0);
    /// Frames of a pageblock, of which all but these are in use, that make it known.
    const KNOWN: usize = 6;

    /// One zone without watermarks, and two CPUs.
    fn allocator(pageblocks: usize) -> BlockAllocator<'static> {
        let frames = (pageblocks * FRAMES) as u64;
        let regions = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
        let nodes = [NodeId(0); 2];
        let mut config = Config::new(&zones, &nodes);
        config.min_free_kbytes = Some(0);
        let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).expect("possible"));
        allocator.expect("possible").with_remote_frees(crate::RemoteFrees::Kept)
    }

    fn page() -> Request {
        Request::new(Order::ZERO).movable().with(RequestTraits::NO_WATERMARKS)
    }

    fn pageblock() -> Request {
        Request::new(Order::PAGEBLOCK).with(RequestTraits::NO_WATERMARKS)
    }

    /// A CPU uses so many pageblocks, and frees the first frames of each: it counts them.
    fn use_and_free_some(allocator: &BlockAllocator<'_>, cpu: CpuId, pageblocks: usize) -> Vec<Pfn> {
        let pages: Vec<_> =
            (0..pageblocks * FRAMES).map(|_| allocator.alloc(cpu, &page()).expect("memory enough")).collect();
        let (some, rest): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|pfn| pfn.0 as usize % FRAMES < KNOWN);
        some.into_iter().for_each(|pfn| allocator.free(cpu, pfn, Order::ZERO).expect("in use"));
        rest
    }

    fn counted(allocator: &BlockAllocator<'_>) -> i64 {
        allocator.states.iter().map(|state| i64::from(state.counted.load(Relaxed))).sum()
    }

    /// What the zone counts, and what CPUs do.
    fn counts(allocator: &BlockAllocator<'_>) -> (i64, i64) {
        (allocator.zones[0].idle_frames(), allocator.surplus_in(ZONE) as i64)
    }

    #[test]
    fn a_cpu_keeps_its_count_to_itself_until_it_is_much() {
        let allocator = allocator(64);
        let most = 64 * FRAMES as i64 / 128;
        let few = use_and_free_some(&allocator, CPU, 21);
        assert_eq!(counts(&allocator), (0, counted(&allocator)));
        assert!((100..most).contains(&counted(&allocator)));
        let more = use_and_free_some(&allocator, CPU, 30);
        let (zone, surplus) = counts(&allocator);
        assert!(zone > 0 && surplus <= most, "{zone} {surplus}");
        assert_eq!(zone + surplus, counted(&allocator));
        allocator.validate().expect("exact");
        // Another CPU takes all of it over: what it has not counted comes out of the zone's count.
        allocator.drain_cpu(CPU).expect("a CPU");
        assert_eq!(counts(&allocator), (counted(&allocator), 0));
        for _ in 0..counted(&allocator) {
            allocator.alloc(OTHER, &page()).expect("memory enough");
        }
        assert_eq!(counts(&allocator), (0, 0));
        few.into_iter().chain(more).for_each(|pfn| allocator.free(CPU, pfn, Order::ZERO).expect("in use"));
        allocator.drain_all();
        allocator.validate().expect("exact");
        assert_eq!(counts(&allocator), (counted(&allocator), 0));
    }

    #[test]
    fn a_cpu_that_is_off_line_counts_nothing_for_long() {
        let allocator = allocator(64);
        let rest = use_and_free_some(&allocator, CPU, 10);
        assert!(counts(&allocator).1 > 0);
        allocator.cpu_offline(CPU).expect("a CPU");
        assert_eq!(counts(&allocator), (counted(&allocator), 0));
        // A thread that is on its way out.
        let late = use_and_free_some(&allocator, CPU, 10);
        allocator.validate().expect("exact");
        allocator.tick(CPU).expect("a CPU");
        assert_eq!(counts(&allocator), (counted(&allocator), 0));
        rest.into_iter().chain(late).for_each(|pfn| allocator.free(CPU, pfn, Order::ZERO).expect("in use"));
        allocator.drain_all();
        assert_eq!(allocator.validate().expect("exact").allocated, 0);
        assert_eq!((counts(&allocator), allocator.zones[0].whole_blocks()), ((0, 0), 64));
    }

    #[test]
    fn a_zone_near_its_watermark_counts_what_cpus_kept_to_themselves() {
        let allocator = allocator(64);
        use_and_free_some(&allocator, CPU, 20);
        while allocator.zones[0].whole_blocks() > 0 {
            allocator.alloc(OTHER, &pageblock()).expect("there is one");
        }
        let (zone, surplus) = counts(&allocator);
        assert!(zone == 0 && surplus >= 100, "all of it is hidden: {zone} {surplus}");
        let low = surplus as u64 - 1;
        allocator.set_watermarks(ZONE, Watermarks { min: 0, low, high: low }).expect("a zone");
        let refused = || allocator.counters().below_low;
        let needy = |cpu| allocator.needy(ZONE, cpu, &page(), crate::allocator::reserve::Reserve::Closed);
        let plain = Request::new(Order::ZERO).movable();
        assert!(allocator.has_room(needy(OTHER), &plain, Watermark::Low), "one frame is above");
        assert_eq!((counts(&allocator), refused()), ((surplus, 0), 0));
        allocator.set_watermarks(ZONE, Watermarks { min: 0, low: low + 1, high: low + 1 }).expect("a zone");
        assert!(!allocator.has_room(needy(OTHER), &plain, Watermark::Low), "not one frame is above");
        allocator.alloc(OTHER, &plain).expect("above the minimum");
        assert!(refused() > 0);
        allocator.validate().expect("exact");
    }

    #[test]
    fn who_finds_a_zone_short_tells_all() {
        let allocator = allocator(64);
        let is_plenty = |cpu| allocator.lists_at(ZONE, cpu).outlook.is_plenty();
        allocator.alloc(CPU, &page()).expect("memory enough");
        assert!(is_plenty(CPU) && !is_plenty(OTHER), "who took some has looked");
        let mut taken = Vec::new();
        while is_plenty(CPU) {
            taken.push(allocator.alloc(OTHER, &Request::new(Order::PAGEBLOCK)).expect("there is one"));
        }
        let left = (allocator.zones[0].whole_blocks() * FRAMES) as u64;
        assert!((1..allocator.zones[0].level()).contains(&left), "{left} frames");
        taken.into_iter().for_each(|pfn| allocator.free(OTHER, pfn, Order::PAGEBLOCK).expect("in use"));
        allocator.drain_all();
        for cpu in [CPU, OTHER] {
            allocator.tick(cpu).expect("a CPU");
        }
        assert!(is_plenty(CPU) && is_plenty(OTHER), "memory came back");
        let all = Watermarks { min: 32_000, low: 32_000, high: 32_000 };
        allocator.set_watermarks(ZONE, all).expect("a zone");
        assert!(!is_plenty(CPU) && !is_plenty(OTHER), "watermarks changed");
    }
}
