//! Chooses the lists that a drain visits, and how many blocks the drain takes from each list (spec §2.10,
//! §4.2).

use super::set::BlockList;
use super::tuning::DueDrain;
use super::{ListIndex, Pcp};
use crate::Order;
use crate::policy::{Counting, DrainOrder, FirstList, HAS_LAB};

/// The size of a drain and its first list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainFrom {
    /// Smallest number of pages to drain.
    pub pages: i32,
    /// The first list that the drain visits. A round-robin drain ignores the field `list`.
    pub list: ListIndex,
}

impl<L: BlockList> Pcp<L> {
    /// Removes at least `from.pages` pages from the cold ends of the lists, or all pages if the page set has
    /// fewer. Passes each block to `give`. Returns the number of pages removed. The result may exceed
    /// `from.pages` by a part of the last block.
    pub fn remove(
        &mut self,
        frames: &L::Frames<'_>,
        order: DrainOrder,
        from: DrainFrom,
        mut give: impl FnMut(L::Block, Order),
    ) -> u32 {
        let from = DrainFrom { pages: from.pages.min(self.count), ..from };
        let give = &mut give;
        match order {
            DrainOrder::ListByList => self.remove_list_by_list(frames, from, give),
            // Without the feature `lab`, an allocator refuses policies with another drain order than
            // `ListByList`.
            _ if !HAS_LAB => self.remove_list_by_list(frames, from, give),
            DrainOrder::ClassFirst => {
                let class = self.scheme().class_of(from.list);
                let removed = self.remove_among(frames, class, from, give);
                let rest = DrainFrom { pages: from.pages - removed as i32, ..from };
                removed + self.remove_list_by_list(frames, rest, give)
            }
            DrainOrder::RoundRobin(first) => self.remove_in_turn(frames, from.pages, first, give),
            DrainOrder::ExcessFirst => {
                let removed = self.remove_excess(frames, from.pages, give);
                let rest = DrainFrom { pages: from.pages - removed as i32, ..from };
                removed + self.remove_list_by_list(frames, rest, give)
            }
        }
    }

    /// Whether a free that put a block on `list` causes a drain. The caller has checked that the page set's
    /// number of pages has reached the limit. If the policy compares another count with the limit, this
    /// function computes the other count.
    pub fn is_due(
        &self,
        frames: &L::Frames<'_>,
        counting: Counting,
        list: ListIndex,
        due: &DueDrain,
    ) -> bool {
        let scheme = self.scheme();
        let blocks = |list: ListIndex| self.lists[list].len(frames) as i32;
        let counted: i32 = match counting {
            Counting::Pages => return true,
            // Without the feature `lab`, an allocator refuses a policy that counts anything but pages.
            _ if !HAS_LAB => return true,
            Counting::Blocks => (0..scheme.lists()).map(blocks).sum(),
            Counting::PagesOfClass => {
                scheme.class_of(list).map(|list| blocks(list) * scheme.order(list).frames() as i32).sum()
            }
        };
        counted >= due.limit
    }

    /// Visits the lists one after the other, and empties each list before it visits the next list.
    fn remove_list_by_list(
        &mut self,
        frames: &L::Frames<'_>,
        from: DrainFrom,
        give: &mut impl FnMut(L::Block, Order),
    ) -> u32 {
        self.remove_among(frames, 0..self.scheme().lists(), from, give)
    }

    /// Visits only the lists of the range `lists`, in the way of
    /// [`remove_list_by_list`](Self::remove_list_by_list). The range must contain `from.list`.
    fn remove_among(
        &mut self,
        frames: &L::Frames<'_>,
        lists: core::ops::Range<ListIndex>,
        from: DrainFrom,
        give: &mut impl FnMut(L::Block, Order),
    ) -> u32 {
        let mut left = from.pages;
        let mut removed = 0;
        for list in (from.list..lists.end).chain(lists.start..from.list) {
            let taken = self.remove_from(frames, list, left, give);
            left -= taken as i32;
            removed += taken;
        }
        removed
    }

    /// Takes up to one block from the first list, up to two blocks from the second list, and so on. Empty
    /// lists count, too. If a list has too few blocks, the next list gives the missing blocks as well. If
    /// only one list has blocks, this list gives all blocks.
    fn remove_in_turn(
        &mut self,
        frames: &L::Frames<'_>,
        pages: i32,
        first: FirstList,
        give: &mut impl FnMut(L::Block, Order),
    ) -> u32 {
        let lists = self.scheme().lists();
        let mut list = match first {
            FirstList::Zero => lists - 1,
            FirstList::One => 0,
            FirstList::AfterLast => usize::from(self.last_drained) % lists,
        };
        let (mut left, mut run, mut removed) = (pages, 0, 0);
        // If a page set is corrupted, its count may exceed the pages on its lists. If the lists are empty
        // before enough pages are removed, the check for a nonempty list ends the loop.
        while left > 0 && self.lists[..lists].iter().any(|list| !list.is_empty()) {
            loop {
                run += 1;
                list = (list + 1) % lists;
                if !self.lists[list].is_empty() {
                    break;
                }
            }
            if run == lists as i32 {
                run = left;
            }
            let order = self.scheme().order(list);
            while let Some(frame) = self.pop_cold(frames, list, order) {
                removed += order.frames();
                left -= order.frames() as i32;
                give(frame, order);
                if left <= 0 {
                    break;
                }
                run -= 1;
                if run == 0 {
                    break;
                }
            }
        }
        self.last_drained = list as u8;
        removed
    }

    /// Takes blocks from the fullest list, until `pages` pages are removed or no list holds more than an
    /// equal share of `high`.
    fn remove_excess(
        &mut self,
        frames: &L::Frames<'_>,
        pages: i32,
        give: &mut impl FnMut(L::Block, Order),
    ) -> u32 {
        let lists = self.scheme().lists();
        let share = self.high.max(0) as u32 / lists as u32;
        let held =
            |pcp: &Self, list: ListIndex| pcp.lists[list].len(frames) * pcp.scheme().order(list).frames();
        let mut removed = 0;
        while (removed as i32) < pages {
            let Some((list, pages_held)) =
                (0..lists).map(|list| (list, held(self, list))).max_by_key(|(_, pages)| *pages)
            else {
                break;
            };
            if pages_held <= share {
                break;
            }
            let most = (pages - removed as i32).min((pages_held - share) as i32);
            removed += self.remove_from(frames, list, most, give);
        }
        removed
    }

    /// Takes at least `pages` pages from one list, or all blocks of this list.
    fn remove_from(
        &mut self,
        frames: &L::Frames<'_>,
        list: ListIndex,
        pages: i32,
        give: &mut impl FnMut(L::Block, Order),
    ) -> u32 {
        let order = self.scheme().order(list);
        let (mut left, mut removed) = (pages, 0);
        while left > 0 {
            let Some(frame) = self.pop_cold(frames, list, order) else { break };
            left -= order.frames() as i32;
            removed += order.frames();
            give(frame, order);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::event::DrainReason;
    use crate::frame::tests::owned;
    use crate::frame::{FrameIndex, FrameTables};
    use crate::pcp::ListScheme;

    fn filled(scheme: ListScheme, blocks: &[(ListIndex, FrameIndex)]) -> (FrameTables<'static>, Pcp) {
        let (frames, mut pcp) = (owned(8192), Pcp::with_scheme(scheme));
        for &(list, frame) in blocks {
            pcp.push(&frames, list, frame, pcp.scheme().order(list));
        }
        (frames, pcp)
    }

    #[track_caller]
    fn removes(
        blocks: &[(ListIndex, FrameIndex)],
        (pages, list): (i32, ListIndex),
        order: &[FrameIndex],
    ) -> u32 {
        let (frames, mut pcp) = filled(ListScheme::TwoHugeLists, blocks);
        let mut seen = Vec::new();
        let removed = pcp
            .remove(&frames, DrainOrder::ListByList, DrainFrom { pages, list }, |frame, _| seen.push(frame));
        assert_eq!(seen, order);
        removed
    }

    /// Tests worked example E11: a drain of 20 pages takes three blocks of order 3.
    #[test]
    fn example_e11_the_last_block_overshoots() {
        assert_eq!(removes(&[(9, 0), (9, 8), (9, 16)], (20, 9), &[0, 8, 16]), 24);
    }

    #[test]
    fn a_list_is_emptied_before_the_next_is_visited() {
        let blocks = [(0, 1), (0, 2), (1, 3), (3, 4)];
        assert_eq!(removes(&blocks, (3, 1), &[3, 4]), 3);
        assert_eq!(removes(&blocks, (100, 1), &[3, 4, 1, 2]), 5);
        assert_eq!(removes(&blocks, (0, 1), &[]), 0);
    }

    /// Makes a page set with the six lists of `HighOrderV5`: three for order 0, and one for each order from 1
    /// to 3. Each list has the given number of blocks.
    fn six_lists(lengths: &[u32]) -> (FrameTables<'static>, Pcp) {
        let mut at = 0;
        let mut blocks = Vec::new();
        for (list, length) in lengths.iter().enumerate() {
            for _ in 0..*length {
                blocks.push((list, at));
                at += 8;
            }
        }
        filled(ListScheme::HighOrderV5, &blocks)
    }

    /// Tests the golden vectors of the 2016 series' drain. The last vector is worked example E20.
    #[test]
    fn example_e20_drains_in_turn_equal_the_vectors() {
        let table = include_str!("../../tests/vectors/v5_drain.csv");
        let numbers = |cell: &str| cell.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u32>>();
        assert!(table.lines().count() > 10);
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let (frames, mut pcp) = six_lists(&numbers(cells[0]));
            let owner: Vec<ListIndex> =
                (0..6).flat_map(|list| std::iter::repeat_n(list, numbers(cells[0])[list] as usize)).collect();
            let mut taken = Vec::new();
            let order = DrainOrder::RoundRobin(FirstList::Zero);
            let removed = pcp.remove(
                &frames,
                order,
                DrainFrom { pages: cells[1].parse().unwrap(), list: 0 },
                |frame, _| {
                    taken.push(owner[frame as usize / 8] as u32);
                },
            );
            if cells[2] == "HANG" {
                // If a drain asks for more pages than the page set has, the drain of the 2016 series never
                // ends. The drain here gives all pages.
                assert!((0..6).all(|list| pcp.list(list).is_empty()), "{line}");
                continue;
            }
            assert_eq!(removed.to_string(), cells[2], "{line}");
            let left: Vec<u32> = (0..6).map(|list| pcp.list(list).iter(&frames).count() as u32).collect();
            assert_eq!(left, numbers(cells[4]), "{line}");
            let mut visited = taken.clone();
            visited.dedup();
            let mut expected = numbers(cells[3]);
            expected.dedup();
            assert_eq!(visited, expected, "{line}");
        }
    }

    #[test]
    fn a_class_gives_its_blocks_before_the_other_class() {
        let taken = |lengths: &[u32], (pages, list): (i32, ListIndex)| {
            let (frames, mut pcp) = six_lists(lengths);
            let mut taken = Vec::new();
            pcp.remove(&frames, DrainOrder::ClassFirst, DrainFrom { pages, list }, |_, order| {
                taken.push(order.index());
            });
            taken
        };
        // The drain wants 12 pages, and the list of order 3 has only 8 pages. The list of order 1 gives the
        // rest, and the lists of order 0 give nothing.
        assert_eq!(taken(&[9, 0, 0, 4, 0, 1], (12, 5)), [3, 1, 1]);
        assert_eq!(taken(&[1, 2, 0, 4, 0, 1], (3, 1)), [0, 0, 0]);
        // A drain goes on to the other class only if it wants more pages than the first class has.
        assert_eq!(taken(&[2, 0, 0, 1, 0, 0], (4, 3)), [1, 0, 0]);
    }

    #[test]
    fn a_limit_counts_what_the_rule_says() {
        let (frames, pcp) = six_lists(&[9, 1, 0, 0, 0, 2]);
        let due = |counting, list, limit| {
            pcp.is_due(&frames, counting, list, &DueDrain { pages: 1, limit, reason: DrainReason::High })
        };
        assert!(due(Counting::Pages, 0, 1000), "the pages were compared before");
        assert_eq!([12, 13].map(|limit| due(Counting::Blocks, 0, limit)), [true, false]);
        assert_eq!([10, 11].map(|limit| due(Counting::PagesOfClass, 1, limit)), [true, false]);
        assert_eq!([16, 17].map(|limit| due(Counting::PagesOfClass, 4, limit)), [true, false]);
    }

    #[test]
    fn excess_is_taken_from_the_fullest_list_first() {
        let (frames, mut pcp) = six_lists(&[40, 2, 0, 1, 0, 0]);
        pcp.high = 60;
        let mut taken = Vec::new();
        let removed =
            pcp.remove(&frames, DrainOrder::ExcessFirst, DrainFrom { pages: 20, list: 3 }, |frame, _| {
                taken.push(frame / 8)
            });
        assert_eq!(removed, 20);
        assert!(taken.iter().all(|block| *block < 40), "all from list 0: {taken:?}");
    }
}
