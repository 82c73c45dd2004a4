//! Tests an interrupt that arrives while its CPU holds the lock of its page set. The interrupt handler may
//! allocate and free, but must never wait for the page set's lock. A handler that waited would wait for ever,
//! because the lock's holder cannot run until the handler has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use pageset_core::lock_api::{GuardSend, RawMutex};
use pageset_core::{
    Config, CpuId, Event, EventSink, FreeError, NodeId, Order, PageAllocator, Pfn, Platform, Request,
    RequestTraits, Tables, ZoneConfig, ZoneKind,
};

/// A lock for one thread. If the lock is held, `lock` panics, because a wait would never end, and `try_lock`
/// fails.
struct OneThread(AtomicBool);

// SAFETY: between two unlocks, `swap` returns `false` to only one caller, so only one caller holds the lock.
unsafe impl RawMutex for OneThread {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        self.try_lock().expect("a deadlock: the interrupted code holds this lock")
    }

    fn try_lock(&self) -> Option<GuardSend> {
        (!self.0.swap(true, Ordering::Acquire)).then_some(GuardSend::new())
    }

    unsafe fn unlock(&self, _: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Host(Interrupt);

impl Platform for Host {
    type RawLock = OneThread;
    type Events = Interrupt;

    fn events(&self) -> &Interrupt {
        &self.0
    }
}

type Handler = Box<dyn FnOnce(&PageAllocator<'static, Host>) + Send>;

/// Runs its handler at an event that a free emits with the page set's lock held.
struct Interrupt(Mutex<Option<Handler>>);

impl EventSink for Interrupt {
    fn emit(&self, _: CpuId, event: Event) {
        let Event::MmPageFreeBatched { .. } = event else { return };
        let handler = self.0.lock().expect("one thread").take();
        if let Some(handler) = handler {
            handler(ALLOCATOR.get().expect("built before its first event"));
        }
    }
}

static ALLOCATOR: OnceLock<PageAllocator<'static, Host>> = OnceLock::new();

const CPU: CpuId = CpuId(0);

fn allocator() -> &'static PageAllocator<'static, Host> {
    ALLOCATOR.get_or_init(|| {
        let frames = [0..12_288];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..12_288, regions: &frames }];
        let config = Config::new(&zones, &[NodeId(0)]);
        let tables = Tables::on_heap(&config).expect("a small span");
        PageAllocator::new(Host(Interrupt(Mutex::new(None))), &config, tables).expect("a simple machine")
    })
}

fn one(allocator: &PageAllocator<'static, Host>) -> Pfn {
    allocator.alloc(CPU, &Request::new(Order::ZERO)).expect("memory enough")
}

#[test]
fn a_handler_that_allocates_and_frees_does_not_wait_for_the_page_set() {
    let allocator = allocator();
    let (batched, good, bad) = (one(allocator), one(allocator), one(allocator));
    allocator.mark_bad(CPU, bad).expect("allocated");
    let handler: Handler = Box::new(move |allocator| {
        assert_eq!(allocator.free(CPU, good, Order::ZERO), Ok(()));
        assert_eq!(allocator.free(CPU, good, Order::ZERO), Err(FreeError::DoubleFree(good)));
        assert_eq!(allocator.free(CPU, bad, Order::ZERO), Err(FreeError::Leaked(bad)));
        let atomic = Request::new(Order::ZERO).with(RequestTraits::HIGH_PRIORITY);
        let page = allocator.alloc(CPU, &atomic).expect("memory enough");
        assert_eq!(allocator.free(CPU, page, Order::ZERO), Ok(()));
    });
    *allocator.platform().0.0.lock().expect("one thread") = Some(handler);
    assert_eq!(allocator.free_batch(CPU, &[(batched, Order::ZERO)]), Ok(()));
    assert!(allocator.platform().0.0.lock().expect("one thread").is_none(), "the handler ran");
    assert_eq!(allocator.counters().bad_pages, 1);
    let census = allocator.validate().expect("every frame in its place");
    assert_eq!((census.allocated, census.leaked), (0, 1));
}
