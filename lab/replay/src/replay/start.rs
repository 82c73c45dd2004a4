//! The contents of the recorded kernel's page sets when the recording began.
//!
//! `/proc/zoneinfo` shows how many pages each page set held, and its `high`. Events show the contents of each
//! list: a list is empty when the kernel refills it. When the recording began, a list therefore held the
//! blocks that were taken from it before its first refill.

use std::io;

use pageset_core::policy::RefillRule;
use pageset_core::{Order, Policy};
use pageset_trace::{Snapshot, ZoneDescription};

use super::act::ActKind;
use super::load::PageSetLoad;
use super::machine::Machine;
use crate::limits::to_i32;

/// Maximum number of lists in a page set.
pub(super) const LISTS_MAX: usize = 16;
/// Index of the list of movable pages of order 0 in every scheme. Source: spec §2.1.
const MOVABLE_PAGES: usize = 1;

/// The contents of one page set when the recording begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetStart {
    /// Number of blocks on each list.
    pub(super) lists: [i32; LISTS_MAX],
    /// The limit of the page set, in pages. `None` if the limit is not known.
    pub(super) high: Option<i32>,
    pub(super) alloc_factor: u8,
}

/// The contents of one page set while the events are read.
#[derive(Clone, Debug, Default)]
struct Tracked {
    /// Number of blocks that each list gained since the beginning of the recording.
    balance: [i32; LISTS_MAX],
    /// The lowest value of `balance` for each list so far.
    least: [i32; LISTS_MAX],
    /// Number of blocks that each list held at the beginning. `None` until this number is known.
    known: [Option<i32>; LISTS_MAX],
    frees_before_refill: u32,
    first_refill_pages: Option<u32>,
}

impl SetStart {
    /// Distributes pages that no refill explains over the lists whose contents at the beginning are unknown.
    /// The list of movable pages of order 0 is filled first, because most pages are movable. The other lists
    /// of order 0 are next, and lists of higher orders follow. Lists of huge pages are last, because few
    /// loads have huge pages.
    fn place(&mut self, mut pages: i32, known: &[Option<i32>; LISTS_MAX], policy: &Policy) {
        let scheme = policy.lists;
        let mut open: Vec<usize> = (0..scheme.lists()).filter(|list| known[*list].is_none()).collect();
        open.sort_by_key(|list| match scheme.order(*list) {
            Order::ZERO => (0, list.abs_diff(MOVABLE_PAGES)),
            Order::THP => (2, scheme.lists() - list),
            _ => (1, scheme.lists() - list),
        });
        for list in open {
            let block = scheme.order(list).frames() as i32;
            self.lists[list] += pages / block;
            pages %= block;
        }
        self.lists[MOVABLE_PAGES] += pages;
    }
}

/// Returns the zone's state when the recording began. The state comes from the snapshot or, without a
/// snapshot, from the machine's description.
pub(super) fn zone_before<'z>(
    before: Option<&'z Snapshot>,
    zone: &'z ZoneDescription,
) -> &'z ZoneDescription {
    before.and_then(|before| before.zoneinfo.zone(zone.node, zone.kind)).unwrap_or(zone)
}

/// Whether the recording has the number of pages in page sets, at least of one zone.
pub(super) fn is_known(machine: &Machine, before: Option<&Snapshot>) -> bool {
    machine.zones.iter().any(|zone| !zone_before(before, zone).pagesets.is_empty())
}

/// Finds the state of each page set when the recording began, by zone and CPU.
pub(super) fn find(
    machine: &Machine,
    before: Option<&Snapshot>,
    policy: &Policy,
    load: &PageSetLoad,
) -> io::Result<Vec<SetStart>> {
    let tracked = track(machine, policy, load)?;
    let mut starts = vec![SetStart::default(); machine.sets()];
    let lists = policy.lists.lists();
    for (set, (start, tracked)) in starts.iter_mut().zip(&tracked).enumerate() {
        for list in 0..lists {
            start.lists[list] = tracked.known[list].unwrap_or(-tracked.least[list]);
        }
        let zone = &machine.zones[set / machine.cpus()];
        let cpu = set % machine.cpus();
        let printed = zone_before(before, zone).pagesets.iter().find(|printed| printed.cpu as usize == cpu);
        if let Some(printed) = printed {
            start.high = Some(to_i32(u64::from(printed.high)));
            let pages =
                |list: usize| start.lists[list].saturating_mul(policy.lists.order(list).frames() as i32);
            let rest = to_i32(u64::from(printed.count)) - (0..lists).map(pages).sum::<i32>();
            start.place(rest.max(0), &tracked.known, policy);
            let batch = printed.batch.max(1);
            if policy.refill == RefillRule::Doubling
                && tracked.frees_before_refill == 0
                && let Some(pages) = tracked.first_refill_pages
                && pages % batch == 0
                && (pages / batch).is_power_of_two()
            {
                start.alloc_factor = ((pages / batch).ilog2() as u8).min(policy.scale_max);
            }
        }
    }
    Ok(starts)
}

fn track(machine: &Machine, policy: &Policy, load: &PageSetLoad) -> io::Result<Vec<Tracked>> {
    let mut sets = vec![Tracked::default(); machine.sets()];
    let (mut moves, mut decisions) = (load.moves.cursor(), load.decisions.cursor());
    let mut before = |sets: &mut Vec<Tracked>, index: usize| -> io::Result<()> {
        while let Some(moved) = moves.next_if(|moved| moved.before as usize <= index)? {
            if let Some(list) = policy.lists.list(moved.block.order(), moved.block.migratetype()) {
                sets[moved.set as usize].change(list, moved.blocks);
            }
        }
        while let Some(decided) = decisions.next_if(|decided| decided.before as usize <= index)? {
            let Some(block) = decided.refill else { continue };
            let Some(list) = policy.lists.list(block.order(), block.migratetype()) else { continue };
            sets[decided.set as usize].refilled(list, decided.pages, block.order().frames());
        }
        Ok(())
    };
    let (mut index, mut known) = (0, Ok(()));
    load.acts.each_one(|act| {
        if known.is_ok() {
            known = before(&mut sets, index);
        }
        index += 1;
        let (change, block) = match act.kind {
            ActKind::Alloc | ActKind::BulkAlloc => (-i32::from(act.count), act.block),
            _ => match act.freed(policy.split_frees) {
                Some(block) => (1, block),
                None => return,
            },
        };
        if let Some(list) = policy.lists.list(block.order(), block.migratetype()) {
            let set = &mut sets[act.at as usize];
            set.frees_before_refill += u32::from(change > 0 && set.first_refill_pages.is_none());
            set.change(list, change);
        }
    })?;
    known?;
    before(&mut sets, index)?;
    Ok(sets)
}

impl Tracked {
    fn change(&mut self, list: usize, blocks: i32) {
        self.balance[list] += blocks;
        self.least[list] = self.least[list].min(self.balance[list]);
    }

    /// Handles a refill of a list. The caller has already added the blocks to the list.
    fn refilled(&mut self, list: usize, pages: u32, block_pages: u32) {
        let blocks = (pages / block_pages) as i32;
        // A run of a single block need not be a refill: the block may have gone past a busy page set.
        if blocks > 1 {
            let before = (blocks - self.balance[list]).max(0);
            self.known[list].get_or_insert(before);
        }
        if block_pages == 1 {
            self.first_refill_pages.get_or_insert(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::policy::LINUX_6_12;
    use pageset_core::{MigrateType, Order};
    use pageset_trace::PcpSample;

    use super::super::act::{Act, BlockKind};
    use super::super::load::{Decided, Moved};
    use super::*;
    use crate::replay::tests::small_layout;

    fn pages(kind: ActKind, count: usize) -> Vec<Act> {
        let block = BlockKind::new(Order::ZERO, MigrateType::Unmovable, 0);
        vec![Act { kind, block, count: 1, at: 0 }; count]
    }

    /// In this test, three pages are taken from a list before the kernel refills it, so the list held three
    /// pages at the beginning. A fourth page is taken after the refill. The sample has ten pages, and the
    /// other seven go to the list of movable pages.
    #[test]
    fn a_refill_tells_what_its_list_held_at_the_beginning() {
        let mut layout = small_layout();
        layout.zones[0].pagesets =
            vec![PcpSample { cpu: 0, count: 10, high: 200, batch: 2, high_min: None, high_max: None }];
        let machine = Machine::new(layout).unwrap();
        let block = BlockKind::new(Order::ZERO, MigrateType::Unmovable, 0);
        let load = PageSetLoad {
            acts: pages(ActKind::Alloc, 4).into_iter().collect(),
            moves: [Moved { before: 3, set: 0, block, blocks: 8 }].into_iter().collect(),
            decisions: [Decided { before: 3, set: 0, pages: 8, refill: Some(block) }].into_iter().collect(),
            ..PageSetLoad::default()
        };
        let starts = find(&machine, None, &LINUX_6_12, &load).unwrap();
        assert_eq!(
            starts[0].lists[..3],
            [3, 7, 0],
            "expected pages that no refill explains on the movable list"
        );
        assert_eq!(
            (starts[0].high, starts[0].alloc_factor),
            (Some(200), 2),
            "expected a batch of 2 that was doubled twice, which is 8 pages"
        );
        assert_eq!(starts[1], SetStart::default());
    }

    /// In this test, the kernel refilled all lists of order 0, so their contents at the beginning are known.
    /// The remaining pages of the printed count go to lists of higher orders.
    #[test]
    fn what_no_refill_explains_was_on_a_list_that_was_not_refilled() {
        let mut start = SetStart::default();
        let mut known = [None; LISTS_MAX];
        known[..3].fill(Some(0));
        start.place(8 * 5 + 3, &known, &LINUX_6_12);
        assert_eq!(
            (start.lists[11], start.lists[8], start.lists[5]),
            (5, 0, 1),
            "expected blocks of 8 pages, and one block of 2 pages"
        );
        assert_eq!(
            start.lists[MOVABLE_PAGES], 1,
            "a page that no list with unknown contents can hold is put on the movable list"
        );
        assert_eq!(start.lists[12..14], [0, 0], "no huge page");
        known.fill(Some(0));
        start.place(9, &known, &LINUX_6_12);
        assert_eq!(start.lists[MOVABLE_PAGES], 10);
    }

    #[test]
    fn a_list_that_is_never_refilled_held_what_was_taken_at_least() {
        let machine = Machine::new(small_layout()).unwrap();
        let acts = [pages(ActKind::Alloc, 5), pages(ActKind::Free, 9)].concat();
        let load = PageSetLoad { acts: acts.into_iter().collect(), ..PageSetLoad::default() };
        assert_eq!(find(&machine, None, &LINUX_6_12, &load).unwrap()[0].lists[0], 5);
    }
}
