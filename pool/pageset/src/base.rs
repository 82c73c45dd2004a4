//! The base: the allocator behind the arrays. Only this module allocates and frees in `pageset-blocks`. The
//! base has all frames that no user and no array has.
//!
//! The pool numbers its frames from the pool's start, with 32 bits. The allocator's frame numbers have 64
//! bits.

use std::ops::Range;
use std::sync::MutexGuard;

use pageset_blocks::{BlockAllocator, BlockCounters, RowBlocks, WholeUse};
pub(crate) use pageset_core::AllocError as BaseError;
use pageset_core::{
    Config, CpuId, FreeError, NodeId, Order, PAGEBLOCK_FRAMES, Pfn, Request, RequestTraits, Violation,
    Watermarks, ZoneConfig, ZoneId, ZoneKind,
};

use crate::BuildError;
use crate::arrays::{Batch, Caps, Class, Entry, ZeroState};
use crate::heap;
use crate::ledger::{FRAME_WORDS, Ledger};
use crate::lock::Lock;
use crate::passed::Passed;
use crate::tables::Allocator;

/// The blocks that one fetch has allocated. Each entry has blocks of one row of frames.
pub(crate) type Words = [Option<RowBlocks>; WORDS];

/// The zone of all frames.
const ZONE: ZoneId = ZoneId(0);

/// One hold of the lock may allocate blocks of at most this many rows. Usually, 12 rows have enough blocks
/// for half an array.
const WORDS: usize = 12;
/// The number of times that a waiting thread tries the lock before the thread sleeps. All tries together take
/// some microseconds.
const SPINS: u32 = 100;

/// The pool's frames, under one lock.
///
/// One thread at a time changes the frames, by plain stores. Plain stores under a lock took half the time of
/// lock-free exchanges (decision 0039). Threads seldom wait, because half an array moves under one hold of
/// the lock.
pub(crate) struct Base {
    frames: Apart<Lock<Frames>>,
    /// The number of CPUs that the allocator knows.
    cpus: usize,
    /// Bytes of the allocator's tables and of the lists of blocks that were passed on.
    bytes: usize,
}

/// A hold of the base's lock, which ends when this value is dropped.
pub(crate) struct Held<'a>(#[expect(dead_code, reason = "only held")] MutexGuard<'a, Frames>);

/// Keeps the lock on a cache line of its own. A waiting thread reads the lock again and again. Each read
/// would take other data on the same cache line away from the holder of the lock.
#[repr(align(128))]
struct Apart<T>(T);

/// The fields that every refill and flush of single pages changes come first, so that these fields lie on few
/// cache lines. If two CPUs use the base in turn, each of these cache lines moves from one CPU's cache to the
/// other CPU's cache each time.
#[repr(C)]
struct Frames {
    exchanges: Exchanges,
    /// Blocks that flushes of arrays left for the next refill of an array. The allocator counts blocks that
    /// were passed on as in use.
    passed: Passed,
    allocator: Allocator,
    /// The frame behind the last run that `wastes_much` was true for.
    next_run: u32,
}

/// How often blocks went from the base to an array (refills), and from an array to the base (flushes).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) refills: u64,
    pub(crate) flushes: u64,
}

/// Makes a request for a block. The request may use the last free frames. All memory of a pool has one
/// migratetype, so no request falls back to another migratetype.
#[inline]
const fn request(order: Order) -> Request {
    Request::new(order).movable().with(RequestTraits::NO_WATERMARKS)
}

fn pfn(frame: u32) -> Pfn {
    Pfn(u64::from(frame))
}

impl Base {
    /// Makes a base of `frames` free frames for `cpus` CPUs, whose arrays have the capacities `caps`.
    pub(crate) fn new(frames: u64, cpus: usize, caps: Caps) -> Result<Self, BuildError> {
        let region = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &region }];
        let nodes = heap::made(cpus.max(1), || NodeId(0))?;
        let config = Config::new(&zones, &nodes);
        let (allocator, bytes) = Allocator::with_tables(&config, |tables| {
            // Scans give the memory at the end of the pool back first, so allocate from the lowest whole
            // pageblocks first.
            let allocator = BlockAllocator::for_one(&config, tables)?.with_whole_use(WholeUse::LowestFirst);
            // A pool keeps no reserve: its users may have every page.
            allocator.set_watermarks(ZONE, Watermarks::default())?;
            Ok(allocator)
        })?;
        let passed = Passed::new(caps, frames.div_ceil(u64::from(PAGEBLOCK_FRAMES)) as usize)?;
        let bytes = bytes + passed.bytes();
        let frames = Frames { exchanges: Exchanges::default(), passed, allocator, next_run: 0 };
        Ok(Self { frames: Apart(Lock::new(frames)), cpus: nodes.len(), bytes })
    }

    /// Waits for the lock. The waiting thread spins first, because a thread usually holds the lock for less
    /// than a microsecond. Measured on two CPUs that free pages in random order, a thread that sleeps runs
    /// again only after 5 to 50 microseconds.
    fn lock(&self) -> MutexGuard<'_, Frames> {
        for _ in 0..SPINS {
            if let Some(frames) = self.frames.0.try_lock() {
                return frames;
            }
            std::hint::spin_loop();
        }
        self.frames.0.lock()
    }

    /// The allocator's number for this CPU. A CPU that appeared after the allocator was built shares the
    /// number of another CPU, and so the other CPU's reserved pageblocks.
    fn cpu(&self, cpu: usize) -> CpuId {
        CpuId((cpu % self.cpus) as u32)
    }

    /// Allocates a block for a CPU. Returns its first frame.
    pub(crate) fn alloc(&self, cpu: usize, order: Order) -> Option<u32> {
        let block = self.lock().allocator.get().alloc(self.cpu(cpu), &request(order)).ok()?;
        Some(block.0 as u32)
    }

    /// Allocates contiguous frames. Returns the first frame, which is a multiple of `align`.
    ///
    /// The allocator begins a long run in a pageblock of its own. A run that would waste much of its last
    /// pageblock begins behind the last run of the same kind instead, if the frames there are free. The
    /// allocation takes the lower of the two places, because a pool uses its lowest memory first.
    pub(crate) fn alloc_run(&self, cpu: usize, frames: u32, align: u32) -> Option<u32> {
        let mut state = self.lock();
        let (allocator, cpu, wanted) = (state.allocator.get(), self.cpu(cpu), request(Order::ZERO));
        let found = allocator.alloc_contiguous(cpu, frames.into(), align.into(), &wanted).ok()?;
        let mut first = found.0 as u32;
        if align == 1 && wastes_much(frames) {
            let pfns = |first: u32| u64::from(first)..u64::from(first) + u64::from(frames);
            let take = |first| allocator.alloc_range(cpu, pfns(first), &wanted).is_ok();
            if state.next_run < first {
                // The two places may overlap. No other thread takes frames of either place, because this
                // thread holds the lock.
                let freed = allocator.free_range(cpu, pfns(first)).is_ok();
                if freed && take(state.next_run) {
                    first = state.next_run;
                } else {
                    assert!(freed && take(first), "the frames were free a moment ago");
                }
            }
            state.next_run = first + frames;
        }
        Some(first)
    }

    /// Fetches up to `wanted` blocks for an array. If the batch is empty, first moves blocks that flushes
    /// passed on into the batch. If too few blocks were passed on, allocates further blocks, and returns
    /// these further blocks.
    #[inline]
    pub(crate) fn fetch(&self, cpu: usize, class: Class, wanted: usize, batch: &mut Batch) -> Words {
        let cpu = self.cpu(cpu);
        let request = request(class.order());
        let mut words = Words::default();
        let mut frames = self.lock();
        frames.exchanges.refills += 1;
        if batch.len() == 0 {
            frames.passed.take(class, wanted, |entries| batch.fill(entries));
        }
        let mut missing = wanted - batch.len();
        if class == Class::Order9 && missing > 0 {
            let (allocator, mut words_left) = (frames.allocator.get(), words.iter_mut());
            let take = |pfn| {
                if let Some(word) = words_left.next() {
                    *word = Some(RowBlocks::of(pfn, Order::PAGEBLOCK));
                }
            };
            missing -= allocator.alloc_pageblocks(cpu, &request, missing.min(WORDS), take);
        }
        for word in words.iter_mut().filter(|word| word.is_none()) {
            if missing == 0 {
                break;
            }
            let Ok(blocks) = frames.allocator.get().alloc_row(cpu, &request, missing) else { break };
            missing -= blocks.len();
            *word = Some(blocks);
        }
        words
    }

    /// Allocates the block of this order that begins with this frame.
    pub(crate) fn alloc_at(&self, frame: u32, order: Order) -> Result<(), BaseError> {
        self.lock().allocator.get().alloc_at(CpuId(0), pfn(frame), &request(order))
    }

    /// Frees a block.
    pub(crate) fn free(&self, cpu: usize, frame: u32, order: Order) -> Result<(), FreeError> {
        self.lock().allocator.get().free(self.cpu(cpu), pfn(frame), order)
    }

    /// Passes blocks of an array on to the next fetch. Frees the blocks instead if `to_pass` is `false`, or
    /// if the list for the class has no room for all these blocks. Returns the number of double frees: blocks
    /// that were free already.
    #[inline]
    pub(crate) fn flush(
        &self,
        cpu: usize,
        class: Class,
        entries: &[Entry],
        ledger: &Ledger,
        to_pass: bool,
    ) -> usize {
        let mut frames = self.lock();
        frames.exchanges.flushes += 1;
        let is_passed = to_pass && frames.passed.put(class, entries);
        if is_passed { 0 } else { self.free_entries(&frames, cpu, class, entries, ledger) }
    }

    /// Frees blocks of an array. Returns the number of blocks that were free already.
    pub(crate) fn free_many(&self, cpu: usize, class: Class, entries: &[Entry], ledger: &Ledger) -> usize {
        self.free_entries(&self.lock(), cpu, class, entries, ledger)
    }

    /// Frames of the blocks that were passed on.
    pub(crate) fn passed_frames(&self) -> u64 {
        self.lock().passed.frames()
    }

    /// Frees blocks of this class that were passed on, as many as a batch holds. Returns the number of blocks
    /// that the call freed or tried to free, and how many of these blocks were free already.
    pub(crate) fn free_passed(&self, class: Class, ledger: &Ledger) -> (usize, usize) {
        let batch: &mut Batch = &mut Batch::new();
        let mut frames = self.lock();
        frames.passed.take(class, batch.capacity(), |entries| batch.fill(entries));
        (batch.len(), self.free_entries(&frames, 0, class, batch.as_slice(), ledger))
    }

    #[inline(always)]
    fn free_entries(
        &self,
        to: &Frames,
        cpu: usize,
        class: Class,
        entries: &[Entry],
        ledger: &Ledger,
    ) -> usize {
        if entries.iter().fold(0, |any, entry| any | entry.raw() & 1) != 0 {
            // Note zero blocks before the blocks are free, because another thread can allocate free blocks.
            note_zero(class, entries, ledger);
        }
        let (allocator, cpu) = (to.allocator.get(), self.cpu(cpu));
        let blocks = entries.iter().map(|entry| pfn(entry.frame()));
        match class {
            // Single pages are the most frequent case. A separate call lets the compiler specialise the
            // function for order 0.
            Class::Order0 => allocator.free_many(cpu, Order::ZERO, blocks),
            _ => allocator.free_many(cpu, class.order(), blocks),
        }
    }

    /// Frees frames, which may be whole blocks or parts of blocks.
    pub(crate) fn free_range(&self, frames: Range<u32>) -> Result<(), FreeError> {
        let pfns = u64::from(frames.start)..u64::from(frames.end);
        self.lock().allocator.get().free_range(CpuId(0), pfns)
    }

    /// Splits the allocated block that contains a frame, so that one of the parts begins with the frame.
    pub(crate) fn split_at(&self, frame: u32) -> Result<(), FreeError> {
        self.lock().allocator.get().split_at(CpuId(0), pfn(frame))
    }

    /// Turns the blocks of these frames, which are in use, into the blocks of one run.
    pub(crate) fn join(&self, frames: Range<u32>) {
        let pfns = u64::from(frames.start)..u64::from(frames.end);
        // No other thread gets the frames between the two calls, because this thread holds the lock.
        let state = self.lock();
        let allocator = state.allocator.get();
        let freed = allocator.free_range(CpuId(0), pfns.clone());
        let is_back = freed.is_ok() && allocator.alloc_range(CpuId(0), pfns, &request(Order::ZERO)).is_ok();
        assert!(is_back, "the frames were in use, and no other thread could take them");
    }

    /// Allocates these frames if all of them are free. Returns whether the frames were allocated.
    pub(crate) fn alloc_range(&self, frames: Range<u32>) -> bool {
        let pfns = u64::from(frames.start)..u64::from(frames.end);
        self.lock().allocator.get().alloc_range(CpuId(0), pfns, &request(Order::ZERO)).is_ok()
    }

    /// Returns a bit for each frame of a pageblock. A frame's bit is set if the frame is free in the
    /// allocator. In the allocator, frames of blocks that were passed on are not free.
    pub(crate) fn free_bits(&self, frames: Range<u32>) -> [u64; FRAME_WORDS] {
        let state = self.lock();
        let mut bits = [0; FRAME_WORDS];
        for (at, frame) in frames.enumerate() {
            bits[at / 64] |= u64::from(state.allocator.get().is_free(pfn(frame))) << (at % 64);
        }
        bits
    }

    /// Frees a block that [`alloc_at`](Self::alloc_at) took for the pool itself, not for a user or an array.
    pub(crate) fn release(&self, frame: u32, order: Order) {
        let outcome = self.free(0, frame, order);
        debug_assert_eq!(outcome, Ok(()), "a block that was taken out is ours to put back");
    }

    /// The allocated block that contains a frame: its first frame and its order.
    pub(crate) fn block_in_use(&self, frame: u32) -> Option<(u32, Order)> {
        let frames = self.lock();
        if frames.passed.has(frame) {
            return None;
        }
        let (first, order) = frames.allocator.get().block_in_use(pfn(frame))?;
        Some((first.0 as u32, order))
    }

    /// Whether the pageblock that begins with `frame` is whole: all its frames are free.
    pub(crate) fn is_whole(&self, frame: u32) -> bool {
        self.lock().allocator.get().is_whole(pfn(frame))
    }

    /// The number of free frames, including the frames of blocks that were passed on.
    pub(crate) fn free_frames(&self) -> u64 {
        let frames = self.lock();
        frames.allocator.get().free_frames() + frames.passed.frames()
    }

    /// The largest order that has a free block.
    pub(crate) fn largest_free_order(&self) -> Option<Order> {
        self.lock().allocator.get().largest_free_order()
    }

    /// The numbers of refills from the base and of flushes to the base.
    pub(crate) fn exchanges(&self) -> Exchanges {
        self.lock().exchanges
    }

    /// The allocator's counters.
    pub(crate) fn counters(&self) -> BlockCounters {
        self.lock().allocator.get().counters()
    }

    /// Bytes of metadata.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that the allocator has each frame exactly once. Returns the number of frames in use.
    pub(crate) fn validate(&self) -> Result<u64, Violation> {
        let frames = self.lock();
        let census = frames.allocator.get().validate()?;
        Ok(census.allocated.saturating_sub(frames.passed.frames()))
    }

    /// Takes the lock and holds it until the result is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(self.lock())
    }
}

/// Whether runs of this length would waste more than an eighth of their length if each began in a pageblock
/// of its own. The allocator packs shorter runs into pageblocks by itself.
const fn wastes_much(frames: u32) -> bool {
    const PACKED: u32 = 128;
    frames > PACKED && (frames.next_multiple_of(PAGEBLOCK_FRAMES) - frames) > frames / 8
}

/// Notes in the ledger which of these blocks are zero.
#[cold]
fn note_zero(class: Class, entries: &[Entry], ledger: &Ledger) {
    for entry in entries.iter().filter(|entry| entry.zero() == ZeroState::Zero) {
        ledger.note_zero(entry.frame()..entry.frame() + class.frames());
    }
}
