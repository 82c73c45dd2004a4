//! An allocator as a kernel builds it: all memory is in statics made by constant functions, without a heap.

use std::ops::DerefMut;
use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard, OnceLock};

use pageset_core::{
    Config, Cpu, CpuId, FrameLinks, FrameState, FrameTables, NodeId, Order, PageAllocator, PageblockType,
    Pageset, Platform, Request, Tables, Zone, ZoneConfig, ZoneId, ZoneKind,
};

/// A static that is lent once and for ever, as `static_cell::ConstStaticCell` does in a kernel. Its lock is
/// never released.
struct Once<T: 'static> {
    value: Mutex<T>,
    lent: OnceLock<()>,
}

impl<T: Send + 'static> Once<T> {
    const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), lent: OnceLock::new() }
    }

    #[track_caller]
    fn take(&'static self) -> &'static mut T {
        self.lent.set(()).expect("lent once");
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
/// 4 MiB and 16 MiB. Each table is as long as the zone's span, rounded outwards to blocks of 1024 frames.
const FRAMES: [usize; ZONES] = [1024, 4096];

/// Metadata of a zone with these table lengths.
struct Metadata<const FRAMES: usize, const PAGEBLOCKS: usize> {
    links: [FrameLinks; FRAMES],
    states: [FrameState; FRAMES],
    pageblocks: [PageblockType; PAGEBLOCKS],
}

impl<const FRAMES: usize, const PAGEBLOCKS: usize> Metadata<FRAMES, PAGEBLOCKS> {
    const fn new() -> Self {
        Self {
            links: [const { FrameLinks::new() }; FRAMES],
            states: [const { FrameState::new() }; FRAMES],
            pageblocks: [const { PageblockType::new() }; PAGEBLOCKS],
        }
    }

    fn lend(&'static mut self) -> FrameTables<'static> {
        FrameTables {
            links: (&mut self.links).into(),
            states: (&mut self.states).into(),
            pageblocks: (&mut self.pageblocks).into(),
        }
    }
}

static LOW: Once<Metadata<{ FRAMES[0] }, 2>> = Once::new(Metadata::new());
static HIGH: Once<Metadata<{ FRAMES[1] }, 8>> = Once::new(Metadata::new());
static ZONE_TABLE: Once<Option<[Zone<'static, Kernel>; ZONES]>> = Once::new(None);
static PAGESETS: Once<[Pageset<Kernel>; ZONES * CPUS]> = Once::new([const { Pageset::new() }; ZONES * CPUS]);
static CPU_TABLE: Once<[Cpu; CPUS]> = Once::new([const { Cpu::new() }; CPUS]);
static ZONELISTS: Once<[ZoneId; ZONES]> = Once::new([ZoneId(0); ZONES]);
static ALLOCATOR: OnceLock<PageAllocator<'static, Kernel>> = OnceLock::new();

fn boot() -> PageAllocator<'static, Kernel> {
    let zones = ZONE_TABLE.take().insert([Zone::new(LOW.take().lend()), Zone::new(HIGH.take().lend())]);
    let tables = Tables {
        zones: zones.into(),
        pagesets: PAGESETS.take().into(),
        cpus: CPU_TABLE.take().into(),
        zonelists: ZONELISTS.take().into(),
    };
    let (low, high) = (1..1000, 1024..4000);
    let zones = [
        ZoneConfig { kind: ZoneKind::Dma, node: NodeId(0), span: low.clone(), regions: from_ref(&low) },
        ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: high.clone(), regions: from_ref(&high) },
    ];
    PageAllocator::new(Kernel, &Config::new(&zones, &[NodeId(0); CPUS]), tables)
        .expect("tables as the spans ask")
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

/// Tables may be longer than the zone needs.
#[test]
fn metadata_may_be_longer_than_the_zone() {
    static SPARE: Once<Metadata<3072, 6>> = Once::new(Metadata::new());
    let mut zones = [Zone::<Kernel>::new(SPARE.take().lend())];
    let (mut pagesets, mut cpus, mut zonelists) = ([Pageset::new()], [Cpu::new()], [ZoneId(0)]);
    let tables = Tables {
        zones: (&mut zones).into(),
        pagesets: (&mut pagesets).into(),
        cpus: (&mut cpus).into(),
        zonelists: (&mut zonelists).into(),
    };
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
