//! Counters and gauges, with the kernel's names where the kernel has the same counter.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pageset_blocks::BlockCounters;
use pageset_core::{Order, PAGEBLOCK_FRAMES};

use super::{Inner, Pool};
use crate::arrays::{Class, Entry};
use crate::error::{AllocError, ValidateError};
use crate::ledger::ReturnState;
use crate::rseq;

/// The state of a pool at one moment. A page has 4 KiB. While other threads use the pool, numbers of pages
/// may be inexact by a few pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Pages allocated since the pool was built (kernel: `pgalloc_normal`).
    pub pgalloc: u64,
    /// Pages freed (kernel: `pgfree`).
    pub pgfree: u64,
    /// Free pages that are in no array (kernel: `nr_free_pages`).
    pub nr_free_pages: u64,
    /// Pages in the arrays of the fast path.
    pub nr_array: u64,
    /// Pages that users hold.
    pub nr_used: u64,
    /// Pages out of service after a [`Pool::resize`].
    pub nr_retired: u64,
    /// The most pages that users and arrays may have.
    pub capacity_pages: u64,
    /// The largest order of a free block in the base. `None` if no page is free in the base.
    pub largest_free_order: Option<Order>,
    /// How often an array or a bulk allocation fetched blocks from the base.
    pub array_refills: u64,
    /// How often blocks went to the base because an array had no room for them.
    pub array_flushes: u64,
    /// How often the pool emptied the arrays of all CPUs.
    pub array_drains: u64,
    /// How often a drain failed because the system refused membarrier(2). The system refuses membarrier(2) if
    /// a filter of system calls was installed after the pool was built. While drains fail, pages in arrays
    /// neither form larger blocks nor go back to the system.
    pub array_drains_refused: u64,
    /// How often the kernel restarted a sequence, in all pools of the process.
    pub rseq_restarts: u64,
    /// Number of frees that the base refused: see [`Pages::from_raw`](crate::Pages::from_raw).
    pub bad_frees: u64,
    /// Bytes that allocations of zeroed memory have cleared.
    pub cleared_bytes: u64,
    /// Bytes that scans cleared in advance ([`Prezero`](crate::Prezero)).
    pub prezeroed_bytes: u64,
    /// Bytes that went back to the system.
    pub returned_bytes: u64,
    /// Bytes of pageblocks that went back to the system and were used again.
    pub refaulted_bytes: u64,
    /// The time that giving memory back took.
    pub return_time: Duration,
    /// Bytes of mapped metadata. Only the used part of the metadata is resident.
    pub metadata_bytes: u64,
    /// Counters of the base, the allocator behind the arrays.
    pub base: BlockCounters,
}

impl Pool {
    /// Counters and gauges of the pool. All numbers are zero in a child of [`fork`](crate::Fork), and in a
    /// signal handler that interrupted its thread inside an operation of this pool. O(CPUs + pool / 2 MiB),
    /// or O(pool / 4 KiB) if no pageblock is free.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Ok((inner, _inside)) = self.enter() else { return Stats::default() };
        let counts = &inner.counts;
        let page = crate::PAGE_BYTES as u64;
        let nr_array = inner.percpu.frames();
        let exchanges = inner.base.exchanges();
        let nr_used = inner.capacity.out().saturating_sub(nr_array);
        let pgalloc = inner.percpu.popped() + counts.slow_alloc.load(Relaxed);
        let arrays = inner.percpu.bytes();
        Stats {
            pgalloc,
            pgfree: pgalloc.saturating_sub(nr_used),
            nr_free_pages: inner.base.free_frames(),
            nr_array,
            nr_used,
            nr_retired: *inner.retired.lock() as u64 * u64::from(PAGEBLOCK_FRAMES),
            capacity_pages: inner.capacity.limit(),
            largest_free_order: inner.base.largest_free_order(),
            array_refills: exchanges.refills,
            array_flushes: exchanges.flushes,
            array_drains: counts.array_drains.load(Relaxed),
            array_drains_refused: counts.array_drains_refused.load(Relaxed),
            rseq_restarts: rseq::restarts(),
            bad_frees: counts.bad_frees.load(Relaxed),
            cleared_bytes: counts.cleared.load(Relaxed) * page,
            prezeroed_bytes: counts.prezeroed.load(Relaxed) * page,
            returned_bytes: counts.returned.load(Relaxed),
            refaulted_bytes: inner.ledger.refaulted_blocks() * crate::sys::BLOCK_BYTES as u64,
            return_time: Duration::from_nanos(counts.return_nanos.load(Relaxed)),
            metadata_bytes: (inner.base.bytes() + inner.ledger.bytes() + arrays) as u64,
            base: inner.base.counters(),
        }
    }

    /// Checks the pool's tables. The base checks that the base has each frame exactly once. Every block in an
    /// array must be allocated in the base, and be in only one array. The number of pages that are allocated
    /// in the base must equal a sum. The sum has the pages of users, the pages of arrays, and the pages out
    /// of service. O(pages). The result is exact only while no other thread uses the pool.
    ///
    /// # Errors
    /// The first violation. In a child of [`fork`](crate::Fork), the error is [`ValidateError::Forked`],
    /// because a child cannot check a pool.
    pub fn validate(&self) -> Result<(), ValidateError> {
        let (inner, _inside) = self.enter().map_err(|error| match error {
            AllocError::WouldBlock => ValidateError::WouldBlock,
            _ => ValidateError::Forked,
        })?;
        // The pool's own thread waits for the lock `looks` before its next scan.
        let _no_look = inner.looks.lock();
        let used = inner.base.validate().map_err(ValidateError::Base)?;
        for (class, entry) in inner.percpu.entries() {
            let (page, order) = (entry.frame(), class.order());
            if inner.base.block_in_use(page) != Some((page, order)) {
                return Err(ValidateError::NotAllocated { page, order });
            }
        }
        if let Some(page) = inner.doubled_in_arrays() {
            return Err(ValidateError::Doubled { page });
        }
        let retired = *inner.retired.lock() as u64 * u64::from(PAGEBLOCK_FRAMES);
        let out = inner.capacity.out() + retired;
        if used != out {
            return Err(ValidateError::Sum { allocated: used, accounted: out });
        }
        Ok(())
    }
}

/// The number of frames that [`Inner::doubled_in_arrays`] checks at once. The check needs one bit for each
/// frame, so 4 KiB of stack for `WINDOW_FRAMES` frames.
const WINDOW_FRAMES: u32 = 32_768;

impl Inner {
    /// Finds a frame that two blocks in arrays contain. Reads all arrays once for each 128 MiB of the pool,
    /// and needs no memory of the heap.
    fn doubled_in_arrays(&self) -> Option<u32> {
        (0..self.frames).step_by(WINDOW_FRAMES as usize).find_map(|start| {
            let window = start..start.saturating_add(WINDOW_FRAMES);
            let mut seen = [0_u64; WINDOW_FRAMES as usize / 64];
            let frames = |(class, entry): (Class, Entry)| entry.frame()..entry.frame() + class.frames();
            let mut frames = self.percpu.entries().flat_map(frames).filter(|frame| window.contains(frame));
            frames.find(|frame| {
                let (word, bit) = ((frame - start) / 64, 1 << (frame % 64));
                let before = seen[word as usize];
                seen[word as usize] |= bit;
                before & bit != 0
            })
        })
    }

    /// Whether these frames are whole blocks that belong to users. The answer may be wrong while other
    /// threads allocate or free the same frames.
    pub(crate) fn looks_allocated(&self, frames: Range<u32>) -> bool {
        let overlaps = |(class, entry): (Class, Entry)| {
            entry.frame() < frames.end && frames.start < entry.frame() + class.frames()
        };
        let mut next = frames.start;
        while next < frames.end {
            match self.block_at(next) {
                Some(block) if block.start == next => next = block.end,
                _ => return false,
            }
        }
        next == frames.end && !self.percpu.entries().any(overlaps)
    }

    /// The frames of the allocated block that contains `frame`.
    fn block_at(&self, frame: u32) -> Option<Range<u32>> {
        if self.ledger.block((frame / PAGEBLOCK_FRAMES) as usize) == ReturnState::Retired {
            return None;
        }
        let (first, order) = self.base.block_in_use(frame)?;
        Some(first..first + order.frames())
    }
}
