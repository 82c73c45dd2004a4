//! vm-scalability `lru-file-mmap-read`: processes read files larger than memory through mappings. So the page
//! cache must free old pages as fast as it allocates new ones. Mostly, a page is freed on another CPU than
//! the CPU that read the page into the cache (spec fault.md §4.2).

use super::page_cache::{CpuCache, PageCache};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Target};

const CACHE: Parameter = Parameter {
    key: "cache_pages",
    default: 4096,
    min: 64,
    meaning: "pages of the page cache for each CPU; all other memory is in use for other purposes",
    source: "guess: more than page sets hold; a real cache is larger, but only its oldest pages leave it",
};
const READ_NS: Parameter = Parameter {
    key: "read_page_ns",
    default: 1200,
    min: 1,
    meaning: "work to read one page through the mapping, with its share of the fault, in ns",
    source: "guess: 512 reads of 8 bytes, and a fault for 16 pages",
};
const RECLAIM_NS: Parameter = Parameter {
    key: "reclaim_page_ns",
    default: 300,
    min: 1,
    meaning: "work to find, unmap and drop one page, in ns",
    source: "guess",
};
/// Number of pages that the kernel reads if a page of a sequential reader is not cached. Source: Linux's
/// readahead of 128 KiB, which is general knowledge and not in the spec.
const READAHEAD: u32 = 32;

/// The benchmark lru-file-mmap-read, with sequential reads. If a page is not cached, the kernel reads further
/// pages ahead.
pub(super) const LRU_FILE_READ: Workload = Workload {
    name: "lru-file-mmap-read",
    summary: "vm-scalability lru-file-mmap-read: stream files through a full page cache",
    source: "spec fault.md §4.2",
    unit: "pages",
    duration_ms: (300, 200),
    parameters: &[CACHE, READ_NS, RECLAIM_NS, lru::HOLD_NS],
    build: |setup| build(setup, READAHEAD),
};

/// The benchmark lru-file-mmap-read-rand, with random reads. If a page is not cached, the kernel reads only
/// this page.
pub(super) const LRU_FILE_READ_RAND: Workload = Workload {
    name: "lru-file-mmap-read-rand",
    summary: "vm-scalability lru-file-mmap-read-rand: as lru-file-mmap-read, one page at a time",
    parameters: &[CACHE, Parameter { default: 3000, ..READ_NS }, RECLAIM_NS, lru::HOLD_NS],
    build: |setup| build(setup, 1),
    ..LRU_FILE_READ
};

fn build(setup: &Setup<'_>, per_miss: u32) -> Result<Plan, PlanError> {
    if setup.cpus < 2 {
        return Err(PlanError::TooFewCpus { needed: 2 });
    }
    let mut plan = Plan::default();
    let lrus = Lru::for_nodes(&mut plan, setup);
    let cache = PageCache::new(setup, setup.get(&CACHE));
    plan.free_pages = Some(cache.rooms());
    let (read_ns, reclaim_ns) = (setup.get(&READ_NS), setup.get(&RECLAIM_NS));
    for (cpu, lrus) in setup.each_cpu().zip(lrus) {
        let mut own = cache.of_cpu(cpu, lrus, reclaim_ns);
        if cache.is_reclaimer(cpu) {
            plan.work(cpu, move |target| {
                own.reclaim_in_background(target);
                own.empty(target);
            });
        } else {
            plan.work(cpu, move |target| {
                own.fill(target);
                read(&mut own, target, per_miss, read_ns);
                own.empty(target);
            });
        }
    }
    Ok(plan)
}

/// Reads files until the measured time is over. Each miss of the cache brings `per_miss` pages into the
/// cache.
fn read(cache: &mut CpuCache, target: &mut dyn Target, per_miss: u32, read_ns: u64) {
    let mut fresh = Vec::new();
    while target.running() {
        fresh.extend((0..per_miss).map_while(|_| cache.page(target)));
        for pfn in &fresh {
            target.touch(*pfn, u64::from(PAGE_BYTES), Access::Write);
            target.compute(read_ns);
        }
        target.score(fresh.len() as u64);
        fresh.drain(..).for_each(|pfn| cache.put(target, pfn));
    }
}
