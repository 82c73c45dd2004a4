//! Tests that the allocator's operations do not use the heap. In one test, the allocator's tables are
//! statics, made by constant functions. In the other test, the allocator's tables lie on the heap.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;

use pageset_blocks::{BlockAllocator, TableCounts, TableMemory, Tables, table_memory};
use pageset_core::{
    Config, ConfigError, CpuId, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, Watermarks,
    ZoneConfig, ZoneId, ZoneKind,
};

/// The system's heap. This allocator counts the thread's requests to the heap, and refuses one of them.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread holds.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The number of the request to refuse, among this thread's requests.
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged, or refused, which an allocator may do.
// Counting touches only thread-local integers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        if ASKED.get() == REFUSED.get() {
            return std::ptr::null_mut();
        }
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: `memory` came from `System`, through `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const FRAMES: u64 = 4096;
const BLOCKS: usize = 8;
/// Frames that are added after the allocator was built.
const HOLE: Range<u64> = 1000..1100;

/// A kernel's static tables.
static MEMORY: Mutex<table_memory!(COUNTS)> = Mutex::new(TableMemory::new());
const COUNTS: TableCounts = TableCounts::new(BLOCKS, 1, 2, 1);

fn order(order: u8) -> Order {
    Order::new(order).expect("tests name orders that there are")
}

fn request(of: u8) -> Request {
    Request::new(order(of)).movable().with(RequestTraits::NO_WATERMARKS)
}

/// Runs most operations of the allocator, many of them along several paths. `held` has room for all frames.
fn everything(allocator: &BlockAllocator<'_>, held: &mut [Option<(Pfn, Order)>]) {
    // The blocks come from a reserved pageblock, from a new one, from whole pageblocks, from other types and
    // from larger blocks. The last request fails.
    for (index, slot) in held.iter_mut().enumerate() {
        let size = [0, 0, 1, 2, 3, 0, 7, 9][index % 8];
        let wanted = request(size).of_type(MigrateType::ALL[index % 3]);
        *slot = allocator.alloc(CpuId(index as u32 % 2), &wanted).ok().map(|pfn| (pfn, order(size)));
    }
    assert!(allocator.alloc(CPU, &request(10)).is_err(), "memory is exhausted");
    // Frees all blocks. Some freed pageblocks enter a CPU's stock.
    for (index, slot) in held.iter_mut().enumerate() {
        if let Some((pfn, size)) = slot.take() {
            allocator.free(CpuId((index / 3) as u32 % 2), pfn, size).expect("allocated above");
        }
        if index % 50 == 0 {
            allocator.tick(OTHER).expect("it exists");
        }
    }
    allocator.drain_all();
    assert!(allocator.free(CPU, Pfn(5), Order::ZERO).is_err());
    let mut slots = [None; 40];
    allocator.alloc_bulk(CPU, &request(0), &mut slots).expect("memory enough");
    let blocks: [_; 40] = std::array::from_fn(|slot| (slots[slot].unwrap_or_default(), Order::ZERO));
    allocator.free_batch(OTHER, &blocks).expect("allocated above");
    let page = allocator.alloc(CPU, &request(0)).expect("memory enough");
    allocator.free(OTHER, page, Order::ZERO).expect("allocated above");
    let together = allocator.alloc_row(CPU, &request(1), 9).expect("memory enough");
    assert_eq!(allocator.free_row(OTHER, together), None);
    assert_eq!(allocator.free_row(OTHER, together), Some(together));
    allocator.drain_all();
    let start = allocator.alloc_exact(CPU, 77, &request(0)).expect("memory enough").0;
    allocator.free_range(CPU, start + 10..start + 20).expect("allocated above");
    assert!(allocator.free_range(CPU, start..start + 77).is_err());
    allocator.free_range(CPU, start..start + 10).expect("allocated above");
    allocator.free_range(CPU, start + 20..start + 77).expect("allocated above");
    allocator.drain_all();
    allocator.add_memory(CPU, HOLE).expect("the frames are a hole");
    let start = allocator.alloc_contiguous(CPU, 1536, 512, &request(0)).expect("memory enough").0;
    allocator.split_at(CPU, Pfn(start + 700)).expect("allocated above");
    allocator.free_range(CPU, start..start + 1536).expect("allocated above");
    let range = || (600..1300).map(Pfn);
    allocator.alloc_range(CPU, 600..1300, &request(0)).expect("all memory is free");
    allocator.split_range(CPU, 600..1300).expect("allocated above");
    assert_eq!(allocator.free_many(OTHER, Order::ZERO, range()), 0);
    let (mut huge, mut count) = ([Pfn(0); 3], 0);
    let taken = allocator.alloc_pageblocks(CPU, &request(9), huge.len(), |pfn| {
        huge[count] = pfn;
        count += 1;
    });
    assert_eq!(taken, huge.len());
    assert_eq!(allocator.free_many(CPU, order(9), huge.into_iter()), 0);
    allocator.drain_all();
    allocator.alloc_at(CPU, Pfn(1024), &request(5)).expect("all memory is free");
    allocator.free(CPU, Pfn(1024), order(5)).expect("allocated above");
    allocator.isolate_pageblock(CPU, Pfn(3000)).expect("it exists");
    allocator.unisolate_pageblock(CPU, Pfn(3000), MigrateType::Movable).expect("it is isolated");
    allocator.mark_bad(CPU, Pfn(3001)).expect("it exists");
    allocator.cpu_offline(OTHER).expect("a CPU");
    allocator.cpu_online(OTHER).expect("a CPU");
    allocator.set_min_free_kbytes(256);
    allocator.set_watermarks(ZoneId(0), Watermarks { min: 1, low: 2, high: 3 }).expect("it exists");
    allocator.drain_cpu(CPU).expect("it exists");
    let census = allocator.validate().expect("nothing broke");
    assert_eq!((census.free, census.cached, census.allocated, census.leaked), (FRAMES - 1, 0, 0, 1));
    let counters = allocator.counters();
    assert!(counters.adopted > 0 && counters.claimed > 0, "{counters:?}");
}

/// Tables that are not all zeros would lie in `.data`, and a kernel's image would hold them.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn static_tables_take_no_room_in_the_image() {
    unsafe extern "C" {
        // The linker sets both.
        static __bss_start: u8;
        static _end: u8;
    }
    static ONE: u8 = 1;
    let bss = (&raw const __bss_start).addr()..(&raw const _end).addr();
    assert!(!bss.contains(&(&raw const ONE).addr()), "the test can fail");
    assert!(bss.contains(&(&raw const MEMORY).addr()));
}

#[test]
fn in_statics_no_operation_asks_the_heap() {
    let mut held = vec![None; FRAMES as usize];
    let regions = [0..HOLE.start, HOLE.end..FRAMES];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &regions }];
    let nodes = [NodeId(0); 2];
    let config = Config::new(&zones, &nodes);
    let mut memory = MEMORY.lock().expect("nobody panicked");
    let before = ASKED.get();
    assert!(before > 0, "what the test asks is counted");
    let counts = TableCounts::for_config(&config).expect("the zone is possible");
    assert_eq!((counts.pageblocks, counts.bad, counts.shares), (BLOCKS, 16, 2));
    let allocator = memory
        .tables(&config)
        .and_then(|tables| BlockAllocator::new(&config, tables))
        .expect("the zone is possible");
    everything(&allocator, &mut held);
    assert_eq!(ASKED.get(), before);
}

/// Refuses the first request to the heap, then the second, and so on, until `build` succeeds. Checks that
/// each refusal makes `build` return an error, and leaks nothing.
fn each_request_refused<T>(mut build: impl FnMut() -> Result<T, ConfigError>) -> T {
    for request in 1.. {
        let held = HELD.get();
        REFUSED.set(ASKED.get() + request);
        let built = build();
        let is_over = ASKED.get() < REFUSED.replace(0);
        match built {
            Ok(built) if is_over => {
                assert!(request > 4, "only {request} requests: what is built is not on the heap");
                return built;
            }
            Ok(_) => panic!("request {request} was refused, and nobody noticed"),
            Err(error) => assert!(matches!(error, ConfigError::OutOfMemory(bytes) if bytes > 0), "{error}"),
        }
        assert_eq!(HELD.get(), held, "what was made before request {request} is given back");
    }
    unreachable!("there are not so many requests")
}

#[test]
fn fault_06_an_allocator_that_finds_no_memory_for_its_tables_is_an_error() {
    let mut held = vec![None; FRAMES as usize];
    let regions = [0..HOLE.start, HOLE.end..FRAMES];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0); 2]);
    let allocator = each_request_refused(|| BlockAllocator::new(&config, Tables::on_heap(&config)?));
    // Any request of an operation would be refused.
    REFUSED.set(ASKED.get() + 1);
    everything(&allocator, &mut held);
    assert_eq!(ASKED.get() + 1, REFUSED.replace(0));
}
