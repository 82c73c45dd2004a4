//! Gives idle memory back to the system: first whole pageblocks, then free parts of pageblocks. Scans give
//! memory back at a limited rate. Allocations and frees never give idle memory back.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use pageset_core::{Order, PAGEBLOCK_FRAMES};

use super::{Inner, Pool, bytes_of};
use crate::background::Background;
use crate::ledger::{FRAME_WORDS, ReturnState};
use crate::sys::BLOCK_BYTES;
use crate::sys::advice::{Discarded, Giveback, discard};
use crate::sys::zero;
use crate::{Prezero, ReturnPolicy, Worker};

/// The most pageblocks that go back in one system call. 16 pageblocks are 32 MiB, and take about a
/// millisecond.
const BATCH_BLOCKS: usize = 16;
/// While a pool is in use, every tenth scan drains the arrays: once a second by default. (A guess.)
const LOOKS_PER_DRAIN: u32 = 10;
/// The smallest part of a pageblock that a trim gives back, in pages: 64 KiB. Smaller parts are not worth a
/// system call. (A guess.)
const TRIMMED_PAGES: u64 = 16;

/// The memory that one call gave back to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Trimmed {
    /// Bytes that went back to the system.
    pub returned_bytes: u64,
    /// Whether a later scan may give more memory back. The reason is that the rate was used up, some memory
    /// was not idle for long enough, or the pool was in use.
    pub more: bool,
}

/// The state that the last scan for idle memory left for the next scan.
#[derive(Debug, Default)]
pub(crate) struct Look {
    activity: u64,
    looks: u32,
}

/// Which pageblocks a scan may give back to the system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Free pageblocks that were also free at the previous scan. The scan marks the other free pageblocks for
    /// the next scan.
    IdleSinceLastLook,
    /// All free pageblocks.
    AllFree,
}

impl Pool {
    /// Gives idle memory back to the system. One call makes one scan. The pool's thread makes the same scan
    /// every [`interval`](crate::ReturnPolicy::interval). If the pool was not used since the last scan, the
    /// scan first frees the blocks in all arrays and in the lists of passed blocks. If the pool is in use,
    /// only every tenth scan empties the caches. After that, the scan gives back pageblocks that two scans in
    /// a row found free: the highest addresses first, and as many pageblocks as the rate allows.
    /// [`keep_bytes`](crate::ReturnPolicy::keep_bytes) and [populated](Self::populate) memory stay. O(pool /
    /// 2 MiB).
    pub fn tick(&self) -> Trimmed {
        self.enter().map(|(inner, _inside)| inner.look()).unwrap_or_default()
    }

    /// Gives free memory back to the system now, populated memory too. A trim empties all caches, then gives
    /// back whole pageblocks, then free parts of 64 KiB or more. A [pinned](crate::Builder::pinned) pool,
    /// hugetlb, locked memory and a caller's region give nothing back. A trim takes O(pool / 2 MiB) time, and
    /// the system needs about 20 µs more for each pageblock.
    ///
    /// Trim while the program is idle, not in a loop. After each trim, refills take blocks from other
    /// pageblocks, so the pages of a busy program spread over more and more pageblocks.
    /// [`resize`](Self::resize) spreads pages in the same way, and so does [`alloc_at`](Self::alloc_at) if
    /// the wanted pages are in use.
    pub fn trim(&self) -> Trimmed {
        let Ok((inner, _inside)) = self.enter() else { return Trimmed::default() };
        inner.populated_blocks.store(0, Relaxed);
        inner.drain_arrays();
        let whole = inner.return_blocks(Which::AllFree, usize::MAX, 0);
        let parts = inner.return_parts(Which::AllFree, TRIMMED_PAGES, u64::MAX);
        Trimmed { returned_bytes: whole.returned_bytes + parts, more: false }
    }
}

impl Pool {
    /// Sets the policy for idle memory. The new policy applies from the next scan on. With
    /// [`Worker::Thread`], the call starts the pool's thread if the pool has no thread and the policy has
    /// work for a thread. With [`Worker::None`], the call ends the thread, and waits until a scan that has
    /// begun is over.
    ///
    /// # Errors
    /// The system's error if the thread cannot be started. If the call returns an error, the policy has not
    /// changed.
    pub fn set_returns(&self, returns: ReturnPolicy) -> io::Result<()> {
        let Ok((inner, _inside)) = self.enter() else { return Ok(()) };
        let _no_other_starts_or_ends_it = inner.worker.lock();
        let has_thread = self.background.lock().is_some();
        if returns.worker == Worker::Thread && !has_thread && inner.has_work(&returns) {
            self.start_thread()?;
        }
        *inner.policy.lock() = returns;
        inner.capacity.bell.ring();
        if returns.worker == Worker::None {
            let thread = self.background.lock().take();
            thread.into_iter().for_each(Background::stop);
        }
        Ok(())
    }

    /// Pins or unpins the pool. When this call has returned, a pinned pool keeps the page behind every
    /// address, as if built [pinned](crate::Builder::pinned). Use `set_pinned` if you register the pool with
    /// a device for a time. Pin the pool before you register it with the device, and unpin the pool after you
    /// have unregistered it. A pool that was built pinned has no thread that gives memory back. After you
    /// unpin a pool that was built pinned, call [`set_returns`](Self::set_returns), which starts the thread,
    /// or [`tick`](Self::tick).
    pub fn set_pinned(&self, is_pinned: bool) {
        if let Ok((inner, _inside)) = self.enter() {
            // A thread that gives memory back holds the lock `returning` while the thread checks the flag and
            // discards the memory. Wait until no thread holds the lock.
            let _none_is_returning = inner.returning.lock();
            inner.is_pinned.store(is_pinned, Relaxed);
        }
        // Every later scan or trim takes the lock `returning` before the scan or trim discards memory, and so
        // sees the new flag.
    }
}

impl Inner {
    pub(crate) fn look(&self) -> Trimmed {
        let mut look = self.looks.lock();
        let activity = self.activity();
        let is_idle = activity == look.activity;
        look.activity = activity;
        look.looks += 1;
        let returns = self.returns();
        let kept = returns.kept_blocks(self.memory.bytes());
        let is_thorough = is_idle || look.looks.is_multiple_of(LOOKS_PER_DRAIN);
        if is_thorough {
            self.drain_arrays();
        }
        // Emptying the caches may change the activity too, but is not a use of the pool. Read the activity
        // again.
        look.activity = self.activity();
        if let Prezero::Blocks(blocks) = returns.prezero {
            self.prezero(blocks as usize);
        }
        let limit = returns.blocks_per_scan();
        let mut outcome = self.return_blocks(Which::IdleSinceLastLook, limit, kept);
        if is_thorough && returns.part_bytes > 0 {
            let least = returns.part_bytes.div_ceil(crate::PAGE_BYTES as u64);
            let limit = (limit * BLOCK_BYTES) as u64;
            outcome.returned_bytes += self.return_parts(Which::IdleSinceLastLook, least, limit);
        }
        outcome.more |= !is_idle;
        outcome
    }

    /// Returns a number that changes when blocks are allocated or freed.
    fn activity(&self) -> u64 {
        let live = self.capacity.out().wrapping_sub(self.percpu.frames());
        self.percpu
            .popped()
            .wrapping_add(self.counts.slow_alloc.load(Relaxed))
            .wrapping_mul(3)
            .wrapping_add(live)
    }

    /// Gives up to `limit` pageblocks back to the system. Unless `which` is `AllFree`, populated pageblocks
    /// stay, and so do the lowest `kept` pageblocks that are free and resident.
    fn return_blocks(&self, which: Which, limit: usize, kept: usize) -> Trimmed {
        let mut outcome = Trimmed::default();
        if self.giveback() == Giveback::Never {
            return outcome;
        }
        let begun = Instant::now();
        let mut left = limit;
        let blocks = self.frames / PAGEBLOCK_FRAMES;
        // Leave the populated pageblocks and the kept pageblocks at the pool's beginning.
        let mut searched = match which {
            Which::IdleSinceLastLook => {
                let populated = self.populated_blocks.load(Relaxed).min(blocks);
                populated.max(self.end_of_kept(kept))..blocks
            }
            Which::AllFree => 0..blocks,
        };
        while searched.start < searched.end {
            if left == 0 {
                outcome.more = true;
                break;
            }
            let _batch = self.returning.lock();
            let run = self.isolate_last_run(&mut searched, which, left.min(BATCH_BLOCKS), &mut outcome);
            if run.is_empty() {
                continue;
            }
            left -= run.len();
            outcome.returned_bytes += self.discard_run(&run) * BLOCK_BYTES as u64;
            run.for_each(|block| self.base.release(block * PAGEBLOCK_FRAMES, Order::PAGEBLOCK));
        }
        self.note_returned(outcome.returned_bytes, begun.elapsed());
        outcome
    }

    /// The end of the lowest `kept` pageblocks that are whole and resident. The lowest pageblocks stay,
    /// because the pool uses the lowest whole pageblocks first.
    fn end_of_kept(&self, kept: usize) -> u32 {
        let is_resident = |block: &u32| {
            matches!(self.ledger.block(*block as usize), ReturnState::Resident | ReturnState::Idle)
        };
        let blocks = self.frames / PAGEBLOCK_FRAMES;
        let Some(last) = kept.checked_sub(1) else { return 0 };
        let mut free =
            self.ledger.blocks_in_use(0..blocks).filter(|block| is_resident(block) && self.is_free(*block));
        free.nth(last).map_or(blocks, |block| block + 1)
    }

    /// Gives the memory of isolated pageblocks back to the system. Returns the number of pageblocks that went
    /// back. The system refuses pageblocks that a user locked (`mlock`) and did not unlock.
    fn discard_run(&self, run: &Range<u32>) -> u64 {
        let discard_all = |run: &Range<u32>| {
            let frames = run.start * PAGEBLOCK_FRAMES..run.end * PAGEBLOCK_FRAMES;
            let is_gone = discard(&self.memory, bytes_of(&frames), self.giveback()) == Discarded::Yes;
            if is_gone {
                run.clone().for_each(|block| self.ledger.set_block(block as usize, ReturnState::Returned));
                self.ledger.note_zero(frames);
            }
            is_gone
        };
        if discard_all(run) {
            return run.len() as u64;
        }
        // The failed call may have discarded some of the pageblocks. Discarded pageblocks read as zero but
        // count as dirty, which only costs a needless clear. Try each pageblock by itself.
        let singles = run.clone().filter(|block| run.len() > 1 && discard_all(&(*block..block + 1)));
        singles.count() as u64
    }

    /// Finds the last run of adjacent pageblocks that may go back, and takes them out of the base. Shortens
    /// `searched` to the range that is still to be searched.
    fn isolate_last_run(
        &self,
        searched: &mut Range<u32>,
        which: Which,
        limit: usize,
        outcome: &mut Trimmed,
    ) -> Range<u32> {
        let mut run = searched.end..searched.end;
        while searched.start < searched.end && run.len() < limit {
            let Some(block) = self.ledger.blocks_in_use(searched.clone()).next_back() else {
                searched.end = searched.start;
                return run;
            };
            if run.is_empty() {
                run = block + 1..block + 1;
            } else if block + 1 < run.start {
                return run;
            }
            let may_go = match self.ledger.block(block as usize) {
                ReturnState::Fresh | ReturnState::Returned | ReturnState::Retired => false,
                ReturnState::Idle => self.is_free(block),
                ReturnState::Resident if !self.is_free(block) => false,
                ReturnState::Resident if which == Which::AllFree => true,
                ReturnState::Resident => {
                    self.ledger.exchange_block(block as usize, ReturnState::Resident, ReturnState::Idle);
                    outcome.more = true;
                    false
                }
            };
            let is_isolated = may_go && self.isolate(block);
            // Continue the search below this pageblock. If this scan only marked the pageblock as idle, the
            // next scan may give the pageblock back.
            searched.end = block;
            if is_isolated {
                run.start = block;
            } else if run.is_empty() {
                run = block..block;
            } else {
                return run;
            }
        }
        run
    }

    /// Whether all frames of this pageblock are free in the base.
    fn is_free(&self, block: u32) -> bool {
        self.base.is_whole(block * PAGEBLOCK_FRAMES)
    }

    /// Takes a free pageblock out of the base. The pageblock's frames do not count towards the capacity,
    /// because no user gets them. The caller must put the pageblock back with `release`, or mark it as
    /// retired.
    pub(super) fn isolate(&self, block: u32) -> bool {
        self.base.alloc_at(block * PAGEBLOCK_FRAMES, Order::PAGEBLOCK).is_ok()
    }

    /// Gives free parts of pageblocks back to the system, each of at least `least` pages, until about `limit`
    /// bytes have gone back. Unless `which` is `AllFree`, free and populated pageblocks stay. Returns the
    /// number of bytes that went back.
    fn return_parts(&self, which: Which, least: u64, limit: u64) -> u64 {
        if self.giveback() == Giveback::Never || self.backing_page_bytes() > crate::PAGE_BYTES {
            return 0;
        }
        let begun = Instant::now();
        let mut bytes = 0;
        let end = self.frames.div_ceil(PAGEBLOCK_FRAMES);
        let searched = match which {
            Which::IdleSinceLastLook => self.populated_blocks.load(Relaxed).min(end)..end,
            Which::AllFree => 0..end,
        };
        // `return_blocks` has already decided whether a completely free pageblock goes back or stays.
        let may_go = |block: &u32| which == Which::AllFree || !self.is_free(*block);
        let blocks = self.ledger.blocks_in_use(searched).filter(may_go);
        for frames in blocks.flat_map(|block| self.free_parts_of(block)) {
            if (frames.len() as u64) < least {
                continue;
            }
            if bytes >= limit {
                break;
            }
            let _batch = self.returning.lock();
            if self.base.alloc_range(frames.clone()) {
                bytes += self.discard_part(&frames);
                let outcome = self.base.free_range(frames);
                debug_assert_eq!(outcome, Ok(()), "pages that were taken out are ours to put back");
            }
        }
        self.note_returned(bytes, begun.elapsed());
        bytes
    }

    /// Gives the memory of isolated pages back to the system. Returns the number of bytes that went back. The
    /// system refuses pages that a user locked (`mlock`) and did not unlock. If the system refuses the whole
    /// part, this function tries pieces of 64 KiB.
    fn discard_part(&self, frames: &Range<u32>) -> u64 {
        let discard_all = |frames: Range<u32>| {
            let bytes = bytes_of(&frames);
            let is_gone = discard(&self.memory, bytes.clone(), self.giveback()) == Discarded::Yes;
            if is_gone {
                self.ledger.note_zero(frames);
            }
            if is_gone { bytes.len() as u64 } else { 0 }
        };
        let all = discard_all(frames.clone());
        let most = TRIMMED_PAGES as u32;
        if all > 0 || frames.len() as u32 <= most {
            return all;
        }
        let parts = frames.start / most..frames.end.div_ceil(most);
        parts.map(|part| discard_all(frames.start.max(part * most)..frames.end.min((part + 1) * most))).sum()
    }

    /// The runs of contiguous pages of a pageblock that are free and not known to be zero.
    fn free_parts_of(&self, block: u32) -> impl Iterator<Item = Range<u32>> {
        let first = block * PAGEBLOCK_FRAMES;
        let end = self.frames.min(first + PAGEBLOCK_FRAMES);
        let free = self.base.free_bits(first..end);
        let dirty = self.ledger.dirty_bits(first..end);
        let wanted: [u64; FRAME_WORDS] = std::array::from_fn(|word| free[word] & dirty[word]);
        let is_wanted = move |frame: &u32| {
            let at = frame - first;
            wanted[(at / 64) as usize] >> (at % 64) & 1 == 1
        };
        let mut at = first;
        std::iter::from_fn(move || {
            let start = (at..end).find(is_wanted)?;
            at = (start..end).find(|frame| !is_wanted(frame)).unwrap_or(end);
            Some(start..at)
        })
    }

    /// Clears at most `limit` free pageblocks that are not known to be zero.
    fn prezero(&self, limit: usize) {
        let mut left = limit;
        for block in self.ledger.blocks_in_use(0..self.frames / PAGEBLOCK_FRAMES) {
            if left == 0 {
                return;
            }
            let frames = block * PAGEBLOCK_FRAMES..(block + 1) * PAGEBLOCK_FRAMES;
            let is_dirty = !self.ledger.is_zero(frames.clone());
            if is_dirty && self.is_free(block) {
                let _batch = self.returning.lock();
                if self.isolate(block) {
                    self.percpu.note_handed_out(frames.start, PAGEBLOCK_FRAMES);
                    zero::clear(&self.memory, bytes_of(&frames));
                    self.percpu.note_taken_back(frames.start, PAGEBLOCK_FRAMES);
                    self.ledger.note_zero(frames.clone());
                    self.base.release(frames.start, Order::PAGEBLOCK);
                    self.counts.prezeroed.fetch_add(u64::from(PAGEBLOCK_FRAMES), Relaxed);
                    left -= 1;
                }
            }
        }
    }

    pub(super) fn note_returned(&self, bytes: u64, time: Duration) {
        if bytes > 0 {
            self.counts.returned.fetch_add(bytes, Relaxed);
            self.counts.return_nanos.fetch_add(time.as_nanos() as u64, Relaxed);
        }
    }
}
