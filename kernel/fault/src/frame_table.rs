//! The engine keeps 16 bytes of data about each frame. The data corresponds to the parts of Linux's struct
//! page that anonymous memory needs.

use alloc::boxed::Box;
use core::ops::Range;

use pageset_core::{Order, Pfn};

use crate::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// The data of one frame. The first frame of a block has the reference count, the mark and the links of the
/// whole block.
pub(crate) struct Frame {
    /// Number of page-table words that map the block or a part of it, plus temporary references.
    refs: AtomicU32,
    /// Order of the block that the frame belongs to.
    order: AtomicU8,
    /// The mark that says whether the block is on a list of pages in use. See [`lru`](crate::lru).
    pub(crate) listed: AtomicU16,
    /// The index of the first frame of the next newer block on the same list, plus 1. 0 if there is no newer
    /// block.
    pub(crate) newer: AtomicU32,
    pub(crate) older: AtomicU32,
}

/// The data of all frames of an engine.
pub(crate) struct FrameTable {
    frames: Box<[Frame]>,
    start: u64,
}

impl FrameTable {
    pub(crate) fn new(span: Range<u64>) -> Self {
        let frame = |_| Frame {
            refs: AtomicU32::new(0),
            order: AtomicU8::new(0),
            listed: AtomicU16::new(0),
            newer: AtomicU32::new(0),
            older: AtomicU32::new(0),
        };
        Self { start: span.start, frames: span.map(frame).collect() }
    }

    /// Index of a frame in the table.
    #[inline]
    pub(crate) fn index(&self, pfn: Pfn) -> u32 {
        (pfn.0 - self.start) as u32
    }

    pub(crate) fn pfn(&self, index: u32) -> Pfn {
        Pfn(self.start + u64::from(index))
    }

    #[inline]
    pub(crate) fn frame(&self, pfn: Pfn) -> &Frame {
        &self.frames[self.index(pfn) as usize]
    }

    /// The first frame and the order of the block that contains a frame in use. A block begins at a multiple
    /// of its size.
    #[inline]
    pub(crate) fn block(&self, pfn: Pfn) -> (Pfn, Order) {
        let order = Order::new(self.frame(pfn).order.load(Ordering::Relaxed)).unwrap_or_default();
        (Pfn(pfn.0 & !u64::from(order.frames() - 1)), order)
    }

    /// Prepares a new block that `refs` words are about to map. Race: another task may still have an older
    /// word for a frame of the block. After `begin`, that task may take a temporary reference to the block.
    /// So even if no word ever maps the block, the caller must give the block up by [`put`](Self::put).
    #[inline]
    pub(crate) fn begin(&self, pfn: Pfn, order: Order, refs: u32) {
        let first = self.index(pfn) as usize;
        debug_assert!(
            pfn.0.is_multiple_of(u64::from(order.frames())),
            "{pfn} is no block of order {order:?}"
        );
        for frame in &self.frames[first..first + order.frames() as usize] {
            debug_assert_eq!(
                frame.refs.load(Ordering::Relaxed),
                0,
                "block {pfn}: one of its frames is in use"
            );
            frame.order.store(order.get(), Ordering::Relaxed);
        }
        self.frames[first].refs.store(refs, Ordering::Relaxed);
    }

    /// Adds `refs` references to the block of `pfn`. The caller has the right to change a word that maps the
    /// block, so no other task can free the block now.
    pub(crate) fn get(&self, pfn: Pfn, refs: u32) {
        let before = self.frame(self.block(pfn).0).refs.fetch_add(refs, Ordering::Relaxed);
        debug_assert!(before > 0, "frame {pfn} is free, and a task maps it");
    }

    /// Takes a temporary reference to the block of `pfn`, unless the block is free. Returns the block's first
    /// frame, which [`put`](Self::put) needs. Race: after the caller read a word that names the frame, other
    /// tasks may have freed the frame and used the frame in another block. So after this call, the caller
    /// reads the word and [`block`](Self::block) again. If the word or the block has changed, the caller
    /// gives the reference back.
    pub(crate) fn try_get(&self, pfn: Pfn) -> Option<Pfn> {
        let more = |refs: u32| (refs > 0).then_some(refs + 1);
        let head = self.block(pfn).0;
        let refs = &self.frame(head).refs;
        refs.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok().then_some(head)
    }

    /// Drops `refs` references to the block of `pfn`. If no reference is left, returns the block, and the
    /// caller must free the block.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, pfn: Pfn, refs: u32) -> Option<(Pfn, Order)> {
        let block = self.block(pfn);
        let before = self.frame(block.0).refs.fetch_sub(refs, Ordering::AcqRel);
        debug_assert!(before >= refs, "block {}: {refs} words less, of {before}", block.0);
        (before == refs).then_some(block)
    }

    /// The number of references to the block that begins at `head`.
    pub(crate) fn refs(&self, head: Pfn) -> u32 {
        self.frame(head).refs.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_block_lives_until_its_last_word() {
        let table = FrameTable::new(16..64);
        let order = Order::new(2).expect("an order");
        table.begin(Pfn(20), order, 4);
        assert_eq!(table.block(Pfn(23)), (Pfn(20), order));
        assert_eq!(table.try_get(Pfn(22)), Some(Pfn(20)));
        assert_eq!(table.put(Pfn(21), 4), None);
        assert_eq!(table.put(Pfn(20), 1), Some((Pfn(20), order)));
        assert_eq!(table.try_get(Pfn(22)), None);
    }
}
