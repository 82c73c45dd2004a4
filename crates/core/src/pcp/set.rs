//! A page set's lists and the few numbers that steer it.

use super::{ListIndex, ListScheme, MAX_LISTS};
use crate::Order;
use crate::frame::{FrameIndex, FrameTables, List};

/// One CPU's page set of one zone.
///
/// # Invariants
/// `count` is the pages on the lists; every block on a list has the list's order.
#[derive(Debug)]
pub struct Pcp {
    pub(super) lists: [List; MAX_LISTS],
    pub(super) scheme: ListScheme,
    /// Pages held.
    pub count: i32,
    /// Pages from which a free drains, before pressure is taken into account.
    pub high: i32,
    /// Pages freed lately; with a counted free history.
    pub free_count: i32,
    /// Fewest pages held since the last tick; with decay of unused pages.
    pub count_min: i32,
    /// Power of two by which the next drain exceeds `batch`; with a factor as free history.
    pub free_factor: u8,
    /// Power of two by which the next refill of order 0 exceeds `batch`.
    pub alloc_factor: u8,
    /// List where the last drain in turn stopped.
    pub(super) last_drained: u8,
    /// Ticks until a page set of a remote node is drained.
    pub expire: u8,
    /// Whether the last free was of order 1 to 3.
    pub previous_was_high_order: bool,
    /// Whether this CPU's share of the data caches is large.
    pub has_large_slice: bool,
}

// The 2023 series keeps the kernel's structure at 256 bytes on 64-bit machines (spec, series cover letter).
const _: () = assert!(size_of::<Pcp>() <= 256);

impl Pcp {
    pub(crate) const fn new() -> Self {
        Self {
            lists: [List::EMPTY; MAX_LISTS],
            scheme: ListScheme::LowOrders,
            count: 0,
            high: 0,
            free_count: 0,
            count_min: 0,
            free_factor: 0,
            alloc_factor: 0,
            last_drained: 0,
            expire: 0,
            previous_was_high_order: false,
            has_large_slice: false,
        }
    }

    /// An empty page set.
    #[must_use]
    pub fn with_scheme(scheme: ListScheme) -> Self {
        Self { scheme, ..Self::new() }
    }

    /// Which list holds what.
    #[must_use]
    pub fn scheme(&self) -> ListScheme {
        self.scheme
    }

    /// Stops a debug build if `count` contradicts the lists, as far as their heads show it. O(lists).
    #[inline]
    pub(super) fn assert_consistent(&self) {
        if cfg!(debug_assertions) {
            let is_empty = self.lists.iter().all(List::is_empty);
            assert!(
                self.count >= 0 && is_empty == (self.count == 0),
                "a page set's count equals its lists (7): {} pages, and lists are {}",
                self.count,
                if is_empty { "empty" } else { "not empty" }
            );
        }
    }

    pub(crate) fn list(&self, list: ListIndex) -> &List {
        &self.lists[list]
    }

    /// Takes the block that was freed last, or else fetched first.
    #[inline]
    pub fn pop(&mut self, frames: &FrameTables<'_>, list: ListIndex, order: Order) -> Option<FrameIndex> {
        debug_assert_eq!(self.scheme.order(list), order, "a block has its list's order (8)");
        let frame = self.lists[list].pop_head(frames)?;
        self.count -= order.frames() as i32;
        self.count_min = self.count_min.min(self.count);
        Some(frame)
    }

    /// Takes the coldest block.
    #[inline]
    pub(super) fn pop_cold(
        &mut self,
        frames: &FrameTables<'_>,
        list: ListIndex,
        order: Order,
    ) -> Option<FrameIndex> {
        let frame = self.lists[list].pop_tail(frames)?;
        self.count -= order.frames() as i32;
        Some(frame)
    }

    /// Adds a freed block: it is the next to be allocated.
    #[inline]
    pub fn push(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex, order: Order) {
        debug_assert_eq!(self.scheme.order(list), order, "a block has its list's order (8)");
        self.lists[list].push_head(frames, frame);
        self.count += order.frames() as i32;
    }

    /// Adds a fetched block behind the others. `count` follows once per refill.
    #[inline]
    pub(super) fn push_cold(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex) {
        self.lists[list].push_tail(frames, frame);
    }

    /// Adds a block behind the others, as a refill does, and counts it.
    pub fn append(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex, order: Order) {
        self.push_cold(frames, list, frame);
        self.count += order.frames() as i32;
    }

    /// Takes a block out of the middle. It must be on that list.
    pub fn unlink(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex, order: Order) {
        self.lists[list].remove(frames, frame);
        self.count -= order.frames() as i32;
    }

    /// The blocks of a list, the next to be allocated first.
    pub fn blocks<'f>(
        &self,
        frames: &'f FrameTables<'_>,
        list: ListIndex,
    ) -> impl Iterator<Item = FrameIndex> + 'f {
        self.lists[list].iter(frames)
    }

    /// Whether a list holds nothing.
    #[must_use]
    pub fn is_list_empty(&self, list: ListIndex) -> bool {
        self.lists[list].is_empty()
    }
}
