//! How much memory a zone has: what CPUs know of it, and what they have to look at.

use pageset_core::{CpuId, MAX_ORDER, Request, Watermark, ZoneId, ZoneKind};

use super::refill::Needy;
use super::{BlockAllocator, FRAMES, WholeUse};
use crate::cpu_lists::CpuLists;
use crate::outlook::Room;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Whether a zone has so much memory that it stays above a watermark. O(CPUs) near it.
    pub(super) fn has_room(&self, needy: Needy<'_>, request: &Request, mark: Watermark) -> bool {
        if needy.lists.outlook.is_roomy() {
            return true;
        }
        let zone = &self.zones[needy.zone.index()];
        let wanted = zone.floor(request, mark).saturating_add(u64::from(request.order.frames()));
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
        let was_roomy = lists.outlook.is_roomy();
        // Twice as much, so that not every pageblock changes what all CPUs think of the zone.
        let is_roomy = free >= if was_roomy { level } else { level.saturating_mul(2) };
        lists.outlook.note(most, if is_roomy { Room::Plenty } else { Room::Short });
        if was_roomy && !is_roomy {
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
    fn lists_in(&self, zone: ZoneId) -> impl Iterator<Item = &CpuLists> {
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
