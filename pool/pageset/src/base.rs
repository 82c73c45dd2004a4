//! The one edge to `pageset-blocks`: the base, which has every frame that is in no array and nobody's hands.
//!
//! The pool names frames by 32 bits from its start; so does the allocator, by 64.

use std::ops::Range;
use std::sync::MutexGuard;

use pageset_blocks::{BlockAllocator, BlockCounters, BlockWord, WholeUse};
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

/// Blocks that were just allocated.
pub(crate) type Words = [Option<BlockWord>; WORDS];

/// The zone that has all frames.
const ZONE: ZoneId = ZoneId(0);

/// Words of blocks that are taken under one hold of the lock: half an array's, mostly.
const WORDS: usize = 12;
/// Turns for which a thread waits before it sleeps: some microseconds.
const SPINS: u32 = 100;

/// The pool's frames, under one lock.
///
/// One thread at a time changes them, by stores. That is twice as fast as by exchanges, which need no lock: with half an array under
/// one hold of it, threads seldom meet. (Decision 0039.)
pub(crate) struct Base {
    frames: Apart<Lock<Frames>>,
    /// CPUs that the allocator knows.
    cpus: usize,
    /// Bytes of its tables.
    bytes: usize,
}

/// In lines of cache of its own: whoever waits for the lock looks at it again and again, and would take what is next to it away from
/// whoever has the lock.
#[repr(align(128))]
struct Apart<T>(T);

/// What every exchange of single pages changes comes first: on CPUs that take turns, each line has to come from another one.
#[repr(C)]
struct Frames {
    exchanges: Exchanges,
    /// In use, as the allocator sees it.
    passed: Passed,
    allocator: Allocator,
}

/// How often part of an array passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) refills: u64,
    pub(crate) flushes: u64,
}

/// A request for a block, though it be the last one that is free. All memory is of one type, so that nothing is stolen from
/// anybody.
#[inline]
const fn request(order: Order) -> Request {
    Request::new(order).movable().with(RequestTraits::NO_WATERMARKS)
}

fn pfn(frame: u32) -> Pfn {
    Pfn(u64::from(frame))
}

impl Base {
    /// An allocator of so many frames, all of them free, for so many CPUs that have arrays so large.
    pub(crate) fn new(frames: u64, cpus: usize, caps: Caps) -> Result<Self, BuildError> {
        let region = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &region }];
        let nodes = heap::made(cpus.max(1), || NodeId(0))?;
        let config = Config::new(&zones, &nodes);
        let (allocator, bytes) = Allocator::with_tables(&config, |tables| {
            // What lies at the end is given back first.
            let allocator = BlockAllocator::for_one(&config, tables)?.with_whole_use(WholeUse::LowestFirst);
            // A pool keeps no reserve: its users may have every page of it.
            allocator.set_watermarks(ZONE, Watermarks::default())?;
            Ok(allocator)
        })?;
        let passed = Passed::new(caps, frames.div_ceil(u64::from(PAGEBLOCK_FRAMES)) as usize)?;
        let bytes = bytes + passed.bytes();
        let frames = Frames { exchanges: Exchanges::default(), passed, allocator };
        Ok(Self { frames: Apart(Lock::new(frames)), cpus: nodes.len(), bytes })
    }

    /// Waits for the lock. It is mostly held for less than a microsecond, for which it is not worth to sleep: a thread that
    /// slept comes back after 5 to 50. (Measured on two CPUs that free in random order.)
    fn lock(&self) -> MutexGuard<'_, Frames> {
        for _ in 0..SPINS {
            if let Some(frames) = self.frames.0.try_lock() {
                return frames;
            }
            std::hint::spin_loop();
        }
        self.frames.0.lock()
    }

    /// As the allocator knows this CPU. Those beyond what it knows share the others' pageblocks.
    fn cpu(&self, cpu: usize) -> CpuId {
        CpuId((cpu % self.cpus) as u32)
    }

    /// Allocates a block for a CPU: its first frame.
    pub(crate) fn alloc(&self, cpu: usize, order: Order) -> Option<u32> {
        let block = self.lock().allocator.get().alloc(self.cpu(cpu), &request(order)).ok()?;
        Some(block.0 as u32)
    }

    /// Allocates so many frames that lie together: the first one.
    pub(crate) fn alloc_run(&self, cpu: usize, frames: u32) -> Option<u32> {
        let (cpu, request) = (self.cpu(cpu), request(Order::ZERO));
        let first = self.lock().allocator.get().alloc_contiguous(cpu, u64::from(frames), 1, &request).ok()?;
        Some(first.0 as u32)
    }

    /// Fetches up to `wanted` blocks for an array: into an empty batch what was passed on, and then words of blocks, as many as there is
    /// room for.
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
                    *word = Some(BlockWord::of(pfn, Order::PAGEBLOCK));
                }
            };
            missing -= allocator.alloc_pageblocks(cpu, &request, missing.min(WORDS), take);
        }
        for word in words.iter_mut().filter(|word| word.is_none()) {
            if missing == 0 {
                break;
            }
            let Ok(blocks) = frames.allocator.get().alloc_word(cpu, &request, missing) else { break };
            missing -= blocks.len();
            *word = Some(blocks);
        }
        words
    }

    /// Allocates the block at this place.
    pub(crate) fn alloc_at(&self, frame: u32, order: Order) -> Result<(), BaseError> {
        self.lock().allocator.get().alloc_at(CpuId(0), pfn(frame), &request(order))
    }

    /// Frees a block.
    pub(crate) fn free(&self, cpu: usize, frame: u32, order: Order) -> Result<(), FreeError> {
        self.lock().allocator.get().free(self.cpu(cpu), pfn(frame), order)
    }

    /// Puts blocks of an array where the next fetch finds them first, as they are; or, if there is no room or not to be any, frees them.
    /// Returns how many were free already.
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

    /// Frees blocks of an array. Returns how many were free already.
    pub(crate) fn free_many(&self, cpu: usize, class: Class, entries: &[Entry], ledger: &Ledger) -> usize {
        self.free_entries(&self.lock(), cpu, class, entries, ledger)
    }

    /// Frees some blocks that were passed on. Returns how many, and how many of them were free already.
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
            // Before somebody else can have them.
            note_zero(class, entries, ledger);
        }
        let (allocator, cpu) = (to.allocator.get(), self.cpu(cpu));
        let blocks = entries.iter().map(|entry| pfn(entry.frame()));
        match class {
            // Apart, so that the compiler knows the order of most blocks.
            Class::Order0 => allocator.free_many(cpu, Order::ZERO, blocks),
            _ => allocator.free_many(cpu, class.order(), blocks),
        }
    }

    /// Frees frames, whatever blocks they are or are parts of.
    pub(crate) fn free_range(&self, frames: Range<u32>) -> Result<(), FreeError> {
        let pfns = u64::from(frames.start)..u64::from(frames.end);
        self.lock().allocator.get().free_range(CpuId(0), pfns)
    }

    /// Cuts the block around a frame in use, so that one begins with it.
    pub(crate) fn split_at(&self, frame: u32) -> Result<(), FreeError> {
        self.lock().allocator.get().split_at(CpuId(0), pfn(frame))
    }

    /// Takes these frames, if all are free.
    pub(crate) fn alloc_range(&self, frames: Range<u32>) -> bool {
        let pfns = u64::from(frames.start)..u64::from(frames.end);
        self.lock().allocator.get().alloc_range(CpuId(0), pfns, &request(Order::ZERO)).is_ok()
    }

    /// Which frames of a pageblock are free and not passed on: a bit for each.
    pub(crate) fn free_bits(&self, frames: Range<u32>) -> [u64; FRAME_WORDS] {
        let state = self.lock();
        let mut bits = [0; FRAME_WORDS];
        for (at, frame) in frames.enumerate() {
            bits[at / 64] |= u64::from(state.allocator.get().is_free(pfn(frame))) << (at % 64);
        }
        bits
    }

    /// Puts back a block that nobody has.
    pub(crate) fn release(&self, frame: u32, order: Order) {
        let outcome = self.free(0, frame, order);
        debug_assert_eq!(outcome, Ok(()), "a block that was taken out is ours to put back");
    }

    /// The block around a frame that a user or an array has: its first frame and order.
    pub(crate) fn block_in_use(&self, frame: u32) -> Option<(u32, Order)> {
        let frames = self.lock();
        if frames.passed.has(frame) {
            return None;
        }
        let (first, order) = frames.allocator.get().block_in_use(pfn(frame))?;
        Some((first.0 as u32, order))
    }

    /// Whether the pageblock that begins here is free as a whole.
    pub(crate) fn is_whole(&self, frame: u32) -> bool {
        self.lock().allocator.get().is_whole(pfn(frame))
    }

    /// Frames that are free.
    pub(crate) fn free_frames(&self) -> u64 {
        let frames = self.lock();
        frames.allocator.get().free_frames() + frames.passed.frames()
    }

    /// The largest order of which a block is free.
    pub(crate) fn largest_free_order(&self) -> Option<Order> {
        self.lock().allocator.get().largest_free_order()
    }

    /// How often arrays were filled and emptied from here, in part.
    pub(crate) fn exchanges(&self) -> Exchanges {
        self.lock().exchanges
    }

    /// What it did.
    pub(crate) fn counters(&self) -> BlockCounters {
        self.lock().allocator.get().counters()
    }

    /// Bytes of metadata.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Proves that no frame is lost or doubled. Returns how many are in use.
    pub(crate) fn validate(&self) -> Result<u64, Violation> {
        let frames = self.lock();
        let census = frames.allocator.get().validate()?;
        Ok(census.allocated.saturating_sub(frames.passed.frames()))
    }

    /// Holds the lock, as a thread that stopped in the middle.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.lock()
    }
}

/// Notes which of these are zero.
#[cold]
fn note_zero(class: Class, entries: &[Entry], ledger: &Ledger) {
    for entry in entries.iter().filter(|entry| entry.zero() == ZeroState::Zero) {
        ledger.note_zero(entry.frame()..entry.frame() + class.frames());
    }
}
