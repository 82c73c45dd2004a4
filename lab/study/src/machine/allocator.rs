//! Measures the costs of the allocator's operations on this machine.

use anyhow::Result;
use pageset_core::{MigrateType, Order};

use super::rig::{fixed, measure, score_per_ns};
use super::shape::Shape;
use crate::{Access, Block, Fill, Target};

/// Number of blocks that one timed phase allocates or frees. One timed phase takes much longer than reading
/// the clock, and has far fewer blocks than a sawtooth.
const BLOCKS: usize = 2048;
/// Number of blocks in a *sawtooth*, which allocates many blocks and then frees all of them. A page set holds
/// only a small part of the blocks.
const SAWTOOTH: usize = 16_384;
/// Number of times that each measurement is repeated. The result is the median of the repetitions.
const ROUNDS: usize = 21;
/// Two batch sizes. The batch size decides the number of zone visits. So the difference between the time with
/// 15 and the time with 127 gives the cost of a zone visit.
const BATCHES: [i32; 2] = [15, 127];

/// Costs of the allocator, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllocatorCosts {
    /// Cost of one allocation or free that the page set serves.
    pub(super) hit: f64,
    /// Cost of moving one block between the page set and the zone's free lists.
    pub(super) block: f64,
    /// Cost of taking the zone's lock once.
    pub(super) visit: f64,
    /// Two costs of a page's metadata: from the last-level cache, and from memory. The cost from the core's
    /// own caches is subtracted from both.
    pub(super) metadata: [f64; 2],
    /// Three costs of clearing a page: if the page is in the core's own caches, in the last-level cache, or
    /// only in memory.
    pub(super) clear: [f64; 3],
    /// Three costs of reading a page: if the page is in the core's own caches, in the last-level cache, or
    /// only in memory.
    pub(super) read: [f64; 3],
    /// The measured size of the part of the last-level cache that one CPU can use, in KiB. In a virtual
    /// machine the system reports the size of the host's whole cache, which is too large.
    pub(super) last_level_kib: u32,
    /// Number of blocks per nanosecond that two CPUs together allocate, and later free, with the smaller
    /// batch.
    pub(super) contended: f64,
}

impl AllocatorCosts {
    pub(super) fn measure(shape: &Shape) -> Result<Self> {
        let hit = measure(fixed(BATCHES[1]), |target, found| {
            for _ in 0..ROUNDS {
                let again = |target: &mut dyn Target| {
                    (0..BLOCKS).for_each(|_| {
                        let block = take(target);
                        give(target, block);
                    })
                };
                found(time(target, again) / 2.0);
            }
        })?;
        let [small, large] = [sawtooth(BATCHES[0])?, sawtooth(BATCHES[1])?];
        let [small_batch, large_batch] = BATCHES.map(f64::from);
        let visit = ((small - large) / (1.0 / small_batch - 1.0 / large_batch)).max(0.0);
        let block = (large - hit - visit / large_batch).max(0.0);
        let warm = phases(0)?;
        let colder = |pages| anyhow::Ok((phases(pages)? - warm).max(0.0));
        let sizes = [16, shape.pages_in_last_level(), shape.pages_beyond_caches()];
        let clear =
            |pages| sweep(pages, move |target, slot| *slot = renew(target, *slot)).map(|ns| ns - 2.0 * hit);
        let read = |pages| sweep(pages, |target, slot| target.touch(slot.0, 4096, Access::Read));
        let levels = [read(sizes[0])?, read(sizes[1])?, read(sizes[2])?];
        let nearer_to_cache = |ns: f64| ns < f64::midpoint(levels[1], levels[2]);
        let mut pages_in_cache = sizes[1];
        while 2 * pages_in_cache < sizes[2] && nearer_to_cache(read(2 * pages_in_cache)?) {
            pages_in_cache *= 2;
        }
        Ok(Self {
            hit,
            block,
            visit,
            metadata: [colder(sizes[1])?, colder(sizes[2])?],
            clear: [clear(sizes[0])?, clear(sizes[1])?, clear(sizes[2])?],
            read: levels,
            last_level_kib: (4 * pages_in_cache as u32).min(shape.l3_kib),
            contended: if shape.cpus > 1 { contended()? } else { 0.0 },
        })
    }

    /// Returns the time of a zone visit without the work for its blocks, while two CPUs request the zone's
    /// lock all the time, in nanoseconds.
    pub(super) fn contended_visit(&self) -> f64 {
        let batch = f64::from(BATCHES[0]);
        if self.contended > 0.0 { batch / (2.0 * self.contended) - batch * self.block } else { 0.0 }
    }
}

fn take(target: &mut dyn Target) -> Block {
    let pfn = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined);
    (pfn.expect("a gibibyte is enough"), Order::ZERO)
}

fn give(target: &mut dyn Target, block: Block) {
    target.free(block);
}

/// Frees `block` and allocates a cleared block, which is the same block, because a page set hands out the
/// block that was freed last.
fn renew(target: &mut dyn Target, block: Block) -> Block {
    target.free(block);
    let pfn = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Zeroed);
    (pfn.expect("a page was just freed"), Order::ZERO)
}

/// Measures `work`, which handles [`BLOCKS`] blocks. Returns the time for one block, in nanoseconds.
fn time(target: &mut dyn Target, work: impl FnOnce(&mut dyn Target)) -> f64 {
    let began = target.now_ns();
    work(target);
    (target.now_ns() - began) as f64 / BLOCKS as f64
}

/// Allocates many blocks and frees all of them. Nearly all blocks come from the zone's free lists, and go
/// back to these lists. Returns the average time of an allocation or free, in nanoseconds.
fn sawtooth(batch: i32) -> Result<f64> {
    measure(fixed(batch), |target, found| {
        let mut held = Vec::with_capacity(SAWTOOTH);
        for _ in 0..ROUNDS {
            let began = target.now_ns();
            held.extend((0..SAWTOOTH).map(|_| take(target)));
            held.drain(..).for_each(|block| give(target, block));
            found((target.now_ns() - began) as f64 / (2 * SAWTOOTH) as f64);
        }
    })
}

/// Allocates blocks and frees them in separate phases. Before each phase, writes to `pages_between` other
/// pages, which evict metadata from caches. Returns the average time of an allocation or free, in
/// nanoseconds.
fn phases(pages_between: usize) -> Result<f64> {
    measure(fixed(BATCHES[1]), move |target, found| {
        let others: Vec<_> = (0..pages_between).map(|_| take(target)).collect();
        let evict = |target: &mut dyn Target| {
            others.iter().for_each(|(pfn, _)| target.touch(*pfn, 4096, Access::Write));
        };
        let mut held = Vec::with_capacity(BLOCKS);
        for _ in 0..ROUNDS {
            evict(target);
            let taking = time(target, |target| held.extend((0..BLOCKS).map(|_| take(target))));
            evict(target);
            let giving = time(target, |target| held.drain(..).for_each(|block| give(target, block)));
            found(f64::midpoint(taking, giving));
        }
        others.into_iter().for_each(|block| give(target, block));
    })
}

/// Does `work` on each of `pages` pages, again and again. Returns the time of `work` on one page, in
/// nanoseconds.
fn sweep(pages: usize, work: impl Fn(&mut dyn Target, &mut Block) + Send + 'static) -> Result<f64> {
    measure(fixed(BATCHES[1]), move |target, found| {
        let mut held: Vec<_> = (0..pages).map(|_| take(target)).collect();
        held.iter().for_each(|(pfn, _)| target.touch(*pfn, 4096, Access::Write));
        let sweeps = BLOCKS.div_ceil(pages);
        for _ in 0..ROUNDS {
            let began = target.now_ns();
            for _ in 0..sweeps {
                held.iter_mut().for_each(|slot| work(target, slot));
            }
            found((target.now_ns() - began) as f64 / (sweeps * pages) as f64);
        }
        held.into_iter().for_each(|block| give(target, block));
    })
}

/// Makes two CPUs allocate and free blocks of one zone all the time. Returns the number of blocks per
/// nanosecond that both CPUs together allocate and later free.
fn contended() -> Result<f64> {
    let body = |target: &mut dyn Target| {
        let mut held = Vec::with_capacity(SAWTOOTH);
        while target.running() {
            held.extend((0..SAWTOOTH).map(|_| take(target)));
            held.drain(..).for_each(|block| give(target, block));
            target.score(SAWTOOTH as u64);
        }
    };
    score_per_ns(fixed(BATCHES[0]), Vec::new(), vec![Box::new(body), Box::new(body)])
}
