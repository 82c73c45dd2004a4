//! Allocates runs of any number of contiguous pages, and splits and shrinks them.

use std::ops::Range;

use pageset_core::{Order, PAGEBLOCK_FRAMES};

use super::{Inner, Pool};
use crate::arrays::ZeroState;
use crate::error::AllocError;
use crate::pages::Span;
use crate::{HugePageSize, PAGE_BYTES, Pages};

impl Pool {
    /// Allocates contiguous memory of `bytes`, rounded up to pages. The largest run is the whole pool. The
    /// contents are unspecified.
    ///
    /// Does the same as [`alloc_exact`](Self::alloc_exact) for a number of bytes. A run of more than 4 MiB
    /// takes the first free pageblocks that are contiguous. The search costs O(pool / 2 MiB). The unused rest
    /// of the last pageblock stays free. The run begins at a multiple of 2 MiB if enough free pageblocks are
    /// contiguous, and the rest is at most an eighth of the run. If the rest would be more than an eighth of
    /// the run, the run begins behind the last run with such a rest, so that runs of any length fill the
    /// pool. For aligned runs, call [`alloc_run_aligned`](Self::alloc_run_aligned).
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let guest = pool.alloc_run_zeroed(48 << 20)?;
    /// assert_eq!(guest.len(), 48 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::BadCount`] for 0 bytes. Otherwise the errors of [`alloc_exact`](Self::alloc_exact).
    pub fn alloc_run(&self, bytes: usize) -> Result<Pages<'_>, AllocError> {
        self.alloc_exact(bytes.div_ceil(PAGE_BYTES))
    }

    /// Does the same as [`alloc_run`](Self::alloc_run), and makes all bytes zero. Pageblocks that are known
    /// to be zero are not cleared again.
    ///
    /// # Errors
    /// The errors of `alloc_run`.
    pub fn alloc_run_zeroed(&self, bytes: usize) -> Result<Pages<'_>, AllocError> {
        self.zeros(bytes.div_ceil(PAGE_BYTES), 1)
    }

    /// Does the same as [`alloc_run`](Self::alloc_run). The run's address is a multiple of `align` bytes, a
    /// power of two.
    ///
    /// A pool begins at a multiple of 4 MiB. If there is enough address space, a pool of 1 GiB or more begins
    /// at a multiple of 1 GiB. If the pool's beginning is no multiple of `align`, the pool looks for a run
    /// that is longer than `bytes` by `align`, and frees the two ends of the longer run.
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let heap = pool.alloc_run_aligned(5 << 20, 2 << 20)?;
    /// assert_eq!(heap.as_ptr().addr().get() % (2 << 20), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::BadAlign`] if `align` is no power of two; otherwise the errors of `alloc_run`.
    pub fn alloc_run_aligned(&self, bytes: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        self.unspecified(bytes.div_ceil(PAGE_BYTES), align_pages(align)?)
    }

    /// Does the same as [`alloc_run_aligned`](Self::alloc_run_aligned), and makes all bytes zero. Pageblocks
    /// that are known to be zero are not cleared again.
    ///
    /// # Errors
    /// The errors of `alloc_run_aligned`.
    pub fn alloc_run_aligned_zeroed(&self, bytes: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        self.zeros(bytes.div_ceil(PAGE_BYTES), align_pages(align)?)
    }

    /// Allocates exactly `count` contiguous pages, up to the whole pool. The run may begin at any page. Runs
    /// of one length fill at least 97 % of a pool of 1 GiB (example `runs`, for lengths of 3 to 5000 pages).
    /// For aligned pages, call [`alloc_run_aligned`](Self::alloc_run_aligned).
    ///
    /// # Errors
    /// [`AllocError::BadCount`] for 0 pages. [`AllocError::NoRun`] if `count` is more than 1024 and no run of
    /// `count` pages is free. Otherwise the errors of [`alloc`](Self::alloc).
    pub fn alloc_exact(&self, count: usize) -> Result<Pages<'_>, AllocError> {
        self.unspecified(count, 1)
    }

    /// Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start. The contents are
    /// unspecified. If there is enough address space, a pool of 1 GiB or more itself begins at a multiple of
    /// 1 GiB. With `Hugetlb`, the allocated memory is then one hugetlb page of 1 GiB, or 512 hugetlb pages of
    /// 2 MiB. With `Thp`, the allocated memory is up to 512 transparent huge pages. See
    /// [`Backing`](crate::Backing) and [`collapse`](Self::collapse).
    ///
    /// ```
    /// use pageset::{Backing, HugePageSize, Pool};
    ///
    /// let backing = Backing::HugetlbOrThp(HugePageSize::Gib1);
    /// let pool = Pool::builder().size(2 << 30).backing(backing).build()?;
    /// let table = pool.alloc_gib()?;
    /// assert_eq!(table.len(), 1 << 30);
    /// let report = pool.backing()?;
    /// match report.page_bytes {
    ///     0x4000_0000 => println!("pages of 1 GiB"),
    ///     _ => println!("{} pages of 2 MiB are huge", report.huge_bytes >> 21),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::NoRun`] if no contiguous, aligned 1 GiB is free. Otherwise the errors of
    /// [`alloc`](Self::alloc).
    pub fn alloc_gib(&self) -> Result<Pages<'_>, AllocError> {
        let frames = HugePageSize::Gib1.bytes() / PAGE_BYTES;
        Ok(self.handed_out(self.run_of(frames, frames)?))
    }

    /// Allocates pages whose contents are unspecified, at an address that is a multiple of `align` pages.
    fn unspecified(&self, count: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        match block_order(count) {
            Some(order) if align <= count => self.alloc(order),
            _ => Ok(self.handed_out(self.run_at(count, align)?)),
        }
    }

    /// Allocates pages of zeros at an address that is a multiple of `align` pages.
    fn zeros(&self, count: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        if let Some(order) = block_order(count).filter(|_| align <= count) {
            return self.alloc_zeroed(order);
        }
        let mut pages = self.run_at(count, align)?;
        let inner = self.inner();
        let frames = pages.frames();
        for part in pageblocks_of(frames.clone()) {
            if inner.ledger.hand_out(part.clone()) == ZeroState::Unknown {
                inner.counts.note_cleared(part.end - part.start);
                pages.clear_part((part.start - frames.start) as usize..(part.end - frames.start) as usize);
            } else {
                inner.percpu.note_zero(part.start, part.end - part.start);
            }
        }
        Ok(pages)
    }

    /// Notes in the ledger that a user gets this run.
    fn handed_out<'p>(&'p self, pages: Pages<'p>) -> Pages<'p> {
        pageblocks_of(pages.frames()).for_each(|part| {
            self.inner().ledger.hand_out(part);
        });
        pages
    }

    /// Allocates a run without telling the ledger, at an address that is a multiple of `align` pages.
    fn run_at(&self, count: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        let start = self.start().addr() / PAGE_BYTES;
        if count == 0 || start.is_multiple_of(align) {
            return self.run_of(count, align);
        }
        // The largest alignment that the pool's start has.
        let nearest = 1 << start.trailing_zeros();
        let longer = self.run_of(count.saturating_add(align - nearest), nearest);
        let mut pages = longer.map_err(|error| if error.is_shortage() { none_of(count) } else { error })?;
        let before = (start + pages.frames().start as usize).wrapping_neg() % align;
        pages.shrink_to(before..before + count);
        Ok(pages)
    }

    /// Allocates a run without telling the ledger. The run begins at a multiple of `align` pages from the
    /// pool's start.
    fn run_of(&self, count: usize, align: usize) -> Result<Pages<'_>, AllocError> {
        // Every page number is below 2^30, so a larger alignment also allows only the pool's first page.
        let align = align.min(1 << 30) as u32;
        self.inner().or_reclaimed(count, || {
            let (inner, _inside) = self.enter()?;
            inner.alloc_run(count, align)
        })
    }
}

/// The pages of an alignment in bytes.
fn align_pages(align: usize) -> Result<usize, AllocError> {
    let pages = align.is_power_of_two().then(|| align.div_ceil(PAGE_BYTES));
    pages.ok_or(AllocError::BadAlign)
}

/// The error if no run of this length is free.
fn none_of(count: usize) -> AllocError {
    match Order::holding(count as u64) {
        _ if count == 0 => AllocError::BadCount,
        Some(order) => AllocError::OutOfMemory { order },
        None => AllocError::NoRun { page_count: count },
    }
}

/// The order of a block with exactly `count` pages, if there is such an order.
fn block_order(count: usize) -> Option<Order> {
    Order::holding(count as u64).filter(|order| order.frames() as usize == count)
}

impl Inner {
    /// Does the same as [`Pool::run_of`] for a caller that has entered the pool.
    fn alloc_run(&self, count: usize, align: u32) -> Result<Pages<'_>, AllocError> {
        let none = none_of(count);
        if count == 0 {
            return Err(none);
        }
        // A count above `u32::MAX` is larger than any pool. To charge `u32::MAX` frames in its place fails as
        // well.
        let frames = u32::try_from(count).unwrap_or(u32::MAX);
        let first = self.charged_run(frames, align, none).or_else(|_| {
            self.drain_arrays();
            // Another thread may have taken blocks out of the base for a moment, to discard or clear the
            // blocks. Wait until the blocks are back in the base.
            let _all_there = self.returning.lock();
            self.charged_run(frames, align, none)
        })?;
        self.counts.note_slow_alloc(frames);
        self.percpu.note_handed_out(first, frames);
        Ok(Pages::of_run(self, first, frames))
    }

    fn charged_run(&self, frames: u32, align: u32, none: AllocError) -> Result<u32, AllocError> {
        if !self.capacity.try_charge(u64::from(frames)) {
            let has_limit = self.capacity.limit() < u64::from(self.frames);
            return Err(if has_limit { AllocError::OverCapacity } else { none });
        }
        self.base.alloc_run(self.percpu.cpu(), frames, align).ok_or_else(|| {
            self.capacity.uncharge(u64::from(frames));
            none
        })
    }

    /// Keeps the pages `keep` of a span and frees the span's other pages.
    ///
    /// # Panics
    /// If `keep` is empty or reaches beyond these pages.
    pub(crate) fn shrink(&self, span: &mut Span, keep: Range<usize>) {
        let (first, count) = (span.frame(), span.count());
        assert!(keep.start < keep.end && keep.end <= count as usize, "keep {keep:?} of {count} pages");
        let (start, end) = (keep.start as u32, keep.end as u32);
        // Change the span first. If a panic comes before the other pages are freed, the pool only loses these
        // pages.
        *span = Span::of(first + start, end - start);
        self.free_frames(first..first + start);
        self.free_frames(first + end..first + count);
    }

    /// Joins two runs if the second begins where the first ends. Returns whether `span` now has the frames of
    /// both runs. If the result is `false`, both runs are unchanged.
    pub(crate) fn join(&self, span: &mut Span, next: Span) -> bool {
        if span.frames().end != next.frame() {
            return false;
        }
        let Ok(_inside) = self.enter() else { return false };
        let all = span.frame()..next.frames().end;
        self.base.join(all.clone());
        *span = Span::of(all.start, all.end - all.start);
        true
    }

    /// Keeps the first `at` pages of a span and returns the span's other pages.
    ///
    /// # Panics
    /// If one of the parts would be empty.
    pub(crate) fn split(&self, span: &mut Span, at: usize) -> Span {
        let (first, count) = (span.frame(), span.count());
        assert!(0 < at && at < count as usize, "split {count} pages at {at}");
        let border = first + at as u32;
        // A child of `fork` cannot split the block in the base, and neither can a signal handler if its
        // thread was inside of the pool. If the split failed here, a later free of one of the parts splits
        // the block.
        let is_known = self.enter().is_ok_and(|_inside| self.base.split_at(border).is_ok());
        let of = if is_known { Span::of } else { Span::loose };
        *span = of(first, at as u32);
        of(border, count - at as u32)
    }
}

/// The parts of a range of frames, one for each pageblock.
fn pageblocks_of(frames: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let blocks = frames.start / PAGEBLOCK_FRAMES..frames.end.div_ceil(PAGEBLOCK_FRAMES);
    blocks.map(move |block| {
        let first = block * PAGEBLOCK_FRAMES;
        frames.start.max(first)..frames.end.min(first + PAGEBLOCK_FRAMES)
    })
}
