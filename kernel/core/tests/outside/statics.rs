//! Tests an allocator as a kernel builds it: without a heap, and with all memory in statics that constant
//! functions make.

use std::ops::DerefMut;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

use pageset_core::{
    Config, CpuId, CpuMemory, FrameMemory, NodeId, Order, PageAllocator, Platform, Request, Zone, ZoneConfig,
    ZoneKind,
};

/// A static that is lent once and never given back, like a `static_cell::ConstStaticCell` in a kernel. `take`
/// never releases the static's lock.
struct Once<T: 'static> {
    value: Mutex<T>,
    lent: AtomicBool,
}

impl<T: Send + 'static> Once<T> {
    const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), lent: AtomicBool::new(false) }
    }

    #[track_caller]
    fn take(&'static self) -> &'static mut T {
        assert!(!self.lent.swap(true, Relaxed), "lent once");
        let guard: &'static mut MutexGuard<'static, T> =
            Box::leak(Box::new(self.value.lock().expect("nobody has held it")));
        guard.deref_mut()
    }
}

struct Kernel;

impl Platform for Kernel {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

const CPUS: usize = 4;
const ZONES: usize = 2;
/// Number of frames in each zone's tables. A table must have at least as many entries as the zone's span has
/// frames, rounded outwards to blocks of 1024 frames.
const FRAMES: [usize; ZONES] = [1024, 4096];

static LOW: Once<FrameMemory<{ FRAMES[0] }, 2>> = Once::new(FrameMemory::new());
static HIGH: Once<FrameMemory<{ FRAMES[1] }, 8>> = Once::new(FrameMemory::new());
static ZONE_TABLE: Once<Option<[Zone<'static, Kernel>; ZONES]>> = Once::new(None);
static CPU_TABLES: Once<CpuMemory<Kernel, CPUS, { ZONES * CPUS }, ZONES>> = Once::new(CpuMemory::new());
static ALLOCATOR: OnceLock<PageAllocator<'static, Kernel>> = OnceLock::new();

fn boot() -> PageAllocator<'static, Kernel> {
    let zones = ZONE_TABLE.take().insert([Zone::new(LOW.take().tables()), Zone::new(HIGH.take().tables())]);
    let tables = CPU_TABLES.take().tables(zones);
    let (low, high) = (1..1000, 1024..4000);
    let zones = [
        ZoneConfig { kind: ZoneKind::Dma, node: NodeId(0), span: low.clone(), regions: from_ref(&low) },
        ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: high.clone(), regions: from_ref(&high) },
    ];
    PageAllocator::new(Kernel, &Config::new(&zones, &[NodeId(0); CPUS]), tables)
        .expect("tables as the spans ask")
}

/// Tests that the tables lie in `.bss`. Tables that are not all zeros would lie in `.data`, and enlarge a
/// kernel's image.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn static_tables_take_no_room_in_the_image() {
    unsafe extern "C" {
        // The linker defines both symbols.
        static __bss_start: u8;
        static _end: u8;
    }
    static ONE: u8 = 1;
    let bss = (&raw const __bss_start).addr()..(&raw const _end).addr();
    assert!(!bss.contains(&(&raw const ONE).addr()), "the test can fail");
    assert!(bss.contains(&(&raw const LOW).addr()));
    assert!(bss.contains(&(&raw const HIGH).addr()));
    assert!(bss.contains(&(&raw const CPU_TABLES).addr()));
}

#[test]
fn an_allocator_lives_in_statics() {
    let allocator = ALLOCATOR.get_or_init(boot);
    std::thread::scope(|scope| {
        for cpu in (0..CPUS as u32).map(CpuId) {
            scope.spawn(move || {
                for size in [0, 3, 0, 9, 0] {
                    let order = Order::new(size).expect("an order");
                    let pfn = allocator.alloc(cpu, &Request::new(order)).expect("memory enough");
                    allocator.free(cpu, pfn, order).expect("just allocated");
                }
            });
        }
    });
    let census = allocator.validate().expect("everything in its place");
    assert_eq!((census.allocated, census.free + census.cached), (0, 999 + 2976));
}

/// Tests that tables may be longer than the zone needs.
#[test]
fn metadata_may_be_longer_than_the_zone() {
    static SPARE: Once<FrameMemory<3072, 6>> = Once::new(FrameMemory::new());
    let mut zones = [Zone::new(SPARE.take().tables())];
    let mut cpus = CpuMemory::<Kernel, 1>::new();
    let tables = cpus.tables(&mut zones);
    let span = 5..1000;
    let shape = [ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: span.clone(),
        regions: from_ref(&span),
    }];
    let allocator =
        PageAllocator::new(Kernel, &Config::new(&shape, &[NodeId(0)]), tables).expect("long enough");
    let pfn = allocator.alloc(CpuId(0), &Request::new(Order::ZERO)).expect("memory enough");
    assert_eq!(allocator.free(CpuId(0), pfn, Order::ZERO), Ok(()));
    assert_eq!(allocator.validate().map(|census| census.free + census.cached), Ok(995));
}
