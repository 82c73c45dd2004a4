//! Bundles: the sums of consecutive acts on up to 32 blocks, by page set and list.
//!
//! A page set refills or drains once in dozens or thousands of acts. Acts between refills and drains only
//! change counts of the page set, by the same amounts under each policy and on each CPU. `bundles` therefore
//! adds up acts once, and each play applies whole bundles (`PageSets::pass`). If an act of a bundle may cause
//! a refill or drain, the play plays the acts of this bundle one by one.

use std::collections::TryReserveError;
use std::ops::Range;

use pageset_core::pcp::Traffic;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::act::{Act, ActKind, BlockKind};
use super::portions::{Acts, BUNDLES_BYTES_MAX, PORTION};
use crate::memory;

/// Minimum number of acts in a bundle. A play of fewer acts is faster one by one.
const ACTS_MIN: usize = 4;

/// Maximum number of portions with bundles. The bundles take at most 112 MiB. For the same memory, the
/// bundles of three portions in the file save a play more time than the acts of one portion in memory.
const PORTIONS_MAX: usize = (112 << 20) / BUNDLES_BYTES_MAX;

/// Maximum number of portions with bundles now. Their bundles take at most a quarter of the free memory.
pub(super) fn portions_max() -> usize {
    let room = memory::to_be_had().map_or(u64::MAX, |bytes| bytes / 4 / BUNDLES_BYTES_MAX as u64);
    usize::try_from(room).unwrap_or(usize::MAX).min(PORTIONS_MAX)
}

/// The bundles of a portion of acts.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    bundles: Vec<Bundle>,
    sets: Vec<OfSet>,
    lists: Vec<OfList>,
}

/// The sums of consecutive acts, over all page sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bundle {
    /// The index of the bundle's first act in the portion of acts. The field `to` is the index after the
    /// bundle's last act.
    from: u32,
    to: u32,
    /// The index of the bundle's first page set in [`Bundles::sets`], and the number of its page sets.
    first_set: u32,
    sets: u8,
    pub(super) allocs: u8,
    pub(super) frees: u8,
    /// Number of pages that the acts of the bundle allocate, plus the pages that the acts free.
    pub(super) asked_pages: u16,
    /// The highest number of pages that all page sets together have gained at any moment within the bundle.
    pub(super) most: i16,
}

/// The acts of a bundle on one page set.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfSet {
    /// `zone * CPUs + CPU`.
    pub(super) at: u32,
    first_list: u32,
    lists: u8,
    /// The highest zone that an allocation may use; `None` without an allocation.
    pub(super) highest_zone: Option<u8>,
    pub(super) traffic: Traffic,
}

/// The acts of a bundle on one list of a page set.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfList {
    /// Order and type of the blocks on the list.
    pub(super) block: BlockKind,
    /// Number of blocks that the list must hold before the bundle, so that no allocation of the bundle finds
    /// the list empty.
    pub(super) needed: u8,
    /// Number of blocks that the list gains in the bundle.
    pub(super) gained: i8,
}

impl Bundles {
    /// Makes the bundles of each portion that is in memory, and of portions in the file up to `portions_max`
    /// portions in all. `borders` are sorted indices of acts. No bundle lies on both sides of a border.
    ///
    /// A play without bundles takes longer than a play with bundles, and has the same result.
    pub(super) fn of_portions(acts: &Acts, borders: &[usize], portions_max: usize) -> Vec<Self> {
        let portions = acts.portions_in_memory();
        let mut room_for_file = portions_max.saturating_sub(portions.iter().flatten().count());
        let portions = portions.into_iter().enumerate().filter_map(|(at, portion)| {
            let is_in_file = portion.is_none();
            if is_in_file {
                room_for_file = room_for_file.checked_sub(1)?;
            }
            Some((at, portion))
        });
        let portions: Vec<_> = portions.collect();
        let bundles = portions.into_par_iter().map(|(at, portion)| {
            let first = at * PORTION;
            let mut bundles = Self::default();
            match portion {
                _ if memory::is_short() => {}
                Some(acts) => bundles = Self::of(acts, first, borders),
                None => {
                    let read = acts.each(first..acts.len().min(first + PORTION), |acts| {
                        bundles = Self::of(acts, first, borders);
                        true
                    });
                    // A play of acts that cannot be read returns the error.
                    drop(read);
                }
            }
            (at, bundles)
        });
        let mut all = Vec::new();
        all.resize_with(acts.len().div_ceil(PORTION), Self::default);
        for (at, bundles) in bundles.collect::<Vec<_>>() {
            all[at] = bundles;
        }
        all
    }

    /// Makes the bundles of `acts`. The first entry of `acts` is act number `first` of the recording. If an
    /// allocation fails, or if the bundles exceed `BUNDLES_BYTES_MAX`, only the first acts have bundles.
    pub(super) fn of(acts: &[Act], first: usize, borders: &[usize]) -> Self {
        let mut all = Self::default();
        let mut borders = borders.iter().map(|border| border.saturating_sub(first)).peekable();
        let mut open = Open::default();
        for (at, act) in acts.iter().enumerate() {
            let is_border = borders.peek() == Some(&at);
            while borders.next_if(|border| *border <= at).is_some() {}
            let blocks = usize::from(act.count);
            let ends = is_border || open.blocks + blocks > Traffic::BLOCKS_MAX || !is_passable(*act);
            if ends && (open.close(&mut all, at).is_err() || all.bytes() > BUNDLES_BYTES_MAX) {
                return all.shrunk();
            }
            if is_passable(*act) {
                open.add(*act, at);
            }
        }
        // The last acts are played one by one if there is no memory for their bundle.
        let _ = open.close(&mut all, acts.len());
        all.shrunk()
    }

    /// Gives back memory that was reserved for further bundles.
    fn shrunk(mut self) -> Self {
        self.bundles.shrink_to_fit();
        self.sets.shrink_to_fit();
        self.lists.shrink_to_fit();
        self
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.bundles) + size_of_val(&*self.sets) + size_of_val(&*self.lists)
    }

    /// Returns the bundles that lie within the acts `range` of the portion, in order.
    pub(super) fn within(&self, range: Range<usize>) -> &[Bundle] {
        let from = self.bundles.partition_point(|bundle| (bundle.from as usize) < range.start);
        let to = self.bundles.partition_point(|bundle| (bundle.to as usize) <= range.end);
        &self.bundles[from..to.max(from)]
    }

    pub(super) fn sets_of(&self, bundle: &Bundle) -> &[OfSet] {
        let first = bundle.first_set as usize;
        &self.sets[first..first + usize::from(bundle.sets)]
    }

    pub(super) fn lists_of(&self, set: &OfSet) -> &[OfList] {
        let first = set.first_list as usize;
        &self.lists[first..first + usize::from(set.lists)]
    }
}

impl Bundle {
    /// Returns the range of the bundle's acts in the portion of acts.
    pub(super) fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Whether an act may be part of a bundle. An act in a bundle has no effect, or allocates or frees at most 32
/// blocks of a small order.
fn is_passable(act: Act) -> bool {
    match act.kind {
        ActKind::Nothing => true,
        ActKind::Alloc | ActKind::BulkAlloc | ActKind::Free => {
            act.block.order().index() <= Traffic::ORDER_MAX && usize::from(act.count) <= Traffic::BLOCKS_MAX
        }
        // Policies differ in the blocks that enter the page set when a block is freed page by page.
        ActKind::FreePart | ActKind::FreeLastPart => false,
        ActKind::PastSet | ActKind::Tick | ActKind::ReclaimStarts | ActKind::ReclaimStops => false,
    }
}

/// A bundle that still gets acts.
#[derive(Default)]
struct Open {
    from: usize,
    blocks: usize,
    allocs: u8,
    frees: u8,
    asked_pages: u16,
    pages: i16,
    most: i16,
    sets: Vec<OfSet>,
    /// The lists of the bundle. Each list has the index of its page set in `sets`.
    lists: Vec<(usize, OfList)>,
}

impl Open {
    fn add(&mut self, act: Act, at: usize) {
        if self.blocks == 0 {
            self.from = at;
        }
        if act.kind == ActKind::Nothing || act.count == 0 {
            return;
        }
        let set = self.sets.iter().position(|set| set.at == act.at).unwrap_or_else(|| {
            self.sets.push(OfSet {
                at: act.at,
                first_list: 0,
                lists: 0,
                highest_zone: None,
                traffic: Traffic::NONE,
            });
            self.sets.len() - 1
        });
        let block = act.block.without_zone();
        let list = self.lists.iter().position(|(of, list)| (*of, list.block) == (set, block));
        let list = list.unwrap_or_else(|| {
            self.lists.push((set, OfList { block, needed: 0, gained: 0 }));
            self.lists.len() - 1
        });
        let (set, list, order) = (&mut self.sets[set], &mut self.lists[list].1, block.order());
        let pages = order.frames() as i16;
        for _ in 0..act.count {
            match act.kind {
                ActKind::Free => {
                    set.traffic.free(order);
                    self.frees += 1;
                    list.gained += 1;
                    self.pages += pages;
                    self.most = self.most.max(self.pages);
                }
                kind => {
                    match kind {
                        ActKind::Alloc => set.traffic.alloc(order),
                        _ => set.traffic.bulk_alloc(order),
                    }
                    set.highest_zone = set.highest_zone.max(Some(act.block.highest_zone() as u8));
                    self.allocs += 1;
                    list.gained -= 1;
                    list.needed = list.needed.max(list.gained.min(0).unsigned_abs());
                    self.pages -= pages;
                }
            }
            self.blocks += 1;
            self.asked_pages += pages as u16;
        }
    }

    /// Ends the bundle. `to` is the index of the first act after the bundle. Returns an error if there is no
    /// memory for the bundle.
    fn close(&mut self, all: &mut Bundles, to: usize) -> Result<(), TryReserveError> {
        if to - self.from.min(to) >= ACTS_MIN && self.blocks > 0 {
            all.lists.try_reserve(self.lists.len())?;
            all.sets.try_reserve(self.sets.len())?;
            all.bundles.try_reserve(1)?;
            let first_set = all.sets.len() as u32;
            for (at, set) in self.sets.iter().enumerate() {
                let first_list = all.lists.len();
                all.lists.extend(self.lists.iter().filter(|(of, _)| *of == at).map(|(_, list)| *list));
                let lists = (all.lists.len() - first_list) as u8;
                all.sets.push(OfSet { first_list: first_list as u32, lists, ..*set });
            }
            all.bundles.push(Bundle {
                from: self.from as u32,
                to: to as u32,
                first_set,
                sets: self.sets.len() as u8,
                allocs: self.allocs,
                frees: self.frees,
                asked_pages: self.asked_pages,
                most: self.most,
            });
        }
        self.sets.clear();
        self.lists.clear();
        let (sets, lists) = (std::mem::take(&mut self.sets), std::mem::take(&mut self.lists));
        *self = Self { sets, lists, ..Self::default() };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::{MigrateType, Order};

    use super::*;

    fn act(kind: ActKind, order: u8) -> Act {
        let block = BlockKind::new(Order::new(order).unwrap(), MigrateType::Movable, 1);
        Act { kind, block, count: 1, at: 0 }
    }

    fn ranges(acts: &[Act], first: usize, borders: &[usize]) -> Vec<Range<usize>> {
        Bundles::of(acts, first, borders).bundles.iter().map(Bundle::range).collect()
    }

    #[test]
    fn bundles_end_at_borders_and_at_acts_that_cannot_be_passed() {
        let mut acts = vec![act(ActKind::Free, 0); 100];
        assert_eq!(ranges(&acts, 0, &[]), [0..32, 32..64, 64..96, 96..100]);
        assert_eq!(
            ranges(&acts, 0, &[0, 10, 10, 13]),
            [0..10, 13..45, 45..77, 77..100],
            "three acts between two borders are too few for a bundle"
        );
        assert_eq!(ranges(&acts, 1000, &[9, 1040]), [0..32, 32..40, 40..72, 72..100]);
        for other in [act(ActKind::Tick, 0), act(ActKind::PastSet, 0), act(ActKind::Alloc, 4)] {
            acts[20] = other;
            assert_eq!(ranges(&acts, 0, &[]), [0..20, 21..53, 53..85, 85..100]);
        }
        acts[20] = act(ActKind::Nothing, 0);
        assert_eq!(ranges(&acts, 0, &[])[0], 0..33);
        acts[20].kind = ActKind::BulkAlloc;
        acts[20].count = 13;
        assert_eq!(
            ranges(&acts, 0, &[])[..2],
            [0..20, 20..40],
            "expected a bundle to end after 20 acts, because they have 32 blocks"
        );
        assert!(ranges(&[act(ActKind::Nothing, 0); 50], 0, &[]).is_empty());
    }

    #[test]
    fn portions_in_the_file_have_the_same_bundles_as_in_memory() {
        let all = 5 * PORTION + 9;
        let acts = (0..all).map(|at| act(if at % 9 == 0 { ActKind::Tick } else { ActKind::Free }, 0));
        let mut in_file = Acts::with_room(2);
        in_file.extend(acts.clone());
        let in_memory: Acts = acts.collect();
        let is_in_file: Vec<bool> = in_file.portions_in_memory().iter().map(Option::is_none).collect();
        assert_eq!(is_in_file.iter().filter(|is_in_file| **is_in_file).count(), 4);
        let said = |bundles: &Bundles| format!("{bundles:?}");
        let expected = Bundles::of_portions(&in_memory, &[], 0);
        for (portions_max, in_file_max) in [(2, 0), (5, 3), (99, 4)] {
            let mut left = in_file_max;
            let found = Bundles::of_portions(&in_file, &[], portions_max);
            assert_eq!(found.len(), expected.len());
            for ((found, expected), is_in_file) in found.iter().zip(&expected).zip(&is_in_file) {
                if *is_in_file && left == 0 {
                    assert!(found.bundles.is_empty(), "there is room for {in_file_max} portions of the file");
                    continue;
                }
                left -= usize::from(*is_in_file);
                assert!(said(found) == said(expected) && !found.bundles.is_empty());
            }
        }
    }

    #[test]
    fn bundles_within_a_range_lie_in_it_whole() {
        let bundles = Bundles::of(&[act(ActKind::Free, 0); 100], 0, &[50]);
        let within =
            |range: Range<usize>| bundles.within(range).iter().map(Bundle::range).collect::<Vec<_>>();
        assert_eq!(within(0..100), [0..32, 32..50, 50..82, 82..100]);
        assert_eq!(within(0..50), [0..32, 32..50]);
        assert_eq!(within(50..100), [50..82, 82..100]);
        assert_eq!(within(1..49), []);
        assert_eq!(within(40..45), []);
    }

    /// Tests that a bundle needs two blocks on a list if it takes two blocks before it frees a block.
    #[test]
    fn a_bundle_needs_what_a_list_lacks_on_the_way() {
        let kinds = [ActKind::Alloc, ActKind::Alloc, ActKind::Free, ActKind::Free, ActKind::Free];
        let bundles = Bundles::of(&kinds.map(|kind| act(kind, 1)), 0, &[]);
        let bundle = bundles.within(0..5)[0];
        assert_eq!((bundle.allocs, bundle.frees, bundle.asked_pages, bundle.most), (2, 3, 10, 2));
        let set = bundles.sets_of(&bundle)[0];
        assert_eq!((set.highest_zone, set.traffic.pages()), (Some(1), 2));
        let lists = bundles.lists_of(&set);
        assert_eq!((lists.len(), lists[0].needed, lists[0].gained), (1, 2, 1));
    }
}
