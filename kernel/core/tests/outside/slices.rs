//! Tests frees that drain in slices. If another CPU takes the page set's lock between two slices, the
//! remaining pages stay in the page set.

use std::cell::Cell;
use std::slice::from_ref;

use pageset_core::lock_api::{GuardSend, RawMutex};
use pageset_core::policy::{LINUX_6_18, LINUX_6_19};
use pageset_core::{
    Config, Event, NodeId, Order, PageAllocator, Pfn, Platform, Policy, Request, Tables, ZoneConfig, ZoneKind,
};

use crate::log::{CPU, Log, OTHER};

/// Number of frames of the zone. A zone of `FRAMES` frames has a batch of 63.
const FRAMES: u64 = 180_224;
const BATCH: u32 = 63;

thread_local! {
    /// Number of attempts to take the lock that succeed before an attempt fails. `None`: all attempts
    /// succeed.
    static GRANTED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A lock for one thread. The test decides when the lock appears to be taken by another thread.
struct Contended(Cell<bool>);

// SAFETY: only one thread uses the lock, so no two threads use the cell at once.
unsafe impl Sync for Contended {}

// SAFETY: only one thread uses the lock, and `replace` returns `false` only once between two unlocks.
unsafe impl RawMutex for Contended {
    const INIT: Self = Self(Cell::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        assert!(!self.0.replace(true), "a deadlock");
        GuardSend::new()
    }

    fn try_lock(&self) -> Option<GuardSend> {
        let granted = GRANTED.get();
        if granted == Some(0) {
            GRANTED.set(None);
            return None;
        }
        GRANTED.set(granted.map(|tries| tries - 1));
        (!self.0.replace(true)).then_some(GuardSend::new())
    }

    unsafe fn unlock(&self, _: GuardSend) {
        self.0.set(false);
    }

    fn is_locked(&self) -> bool {
        self.0.get()
    }
}

struct Host(Log);

impl Platform for Host {
    type RawLock = Contended;
    type Events = Log;

    fn events(&self) -> &Log {
        &self.0
    }
}

/// Frees pages of another CPU until a free drains more than a batch, or until an attempt to take the lock
/// fails. Returns the number of pages in each slice of the last free. In each free, the first `granted`
/// attempts to take a page set's lock succeed, and the next attempt fails.
fn large_drain(policy: Policy, granted: Option<u32>) -> Vec<u32> {
    let span = 0..FRAMES;
    let zones = [ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: span.clone(),
        regions: from_ref(&span),
    }];
    let config = Config::new(&zones, &[NodeId(0); 2]).with_policy(policy);
    let tables = Tables::on_heap(&config).expect("a small span");
    let allocator = PageAllocator::new(Host(Log::default()), &config, tables).expect("a simple machine");
    let movable = Request::new(Order::ZERO).movable();
    let pages: Vec<Pfn> =
        (0..40_000).map(|_| allocator.alloc(OTHER, &movable).expect("memory enough")).collect();
    for page in pages {
        allocator.platform().0.take();
        GRANTED.set(granted);
        allocator.free(CPU, page, Order::ZERO).expect("allocated");
        let is_refused = granted.is_some() && GRANTED.replace(None).is_none();
        let drains = allocator.platform().0.take().into_iter().filter_map(|event| match event {
            Event::PcpDrain { pages, .. } => Some(pages),
            _ => None,
        });
        let drains: Vec<u32> = drains.collect();
        if drains.iter().sum::<u32>() > BATCH || is_refused {
            return drains;
        }
    }
    panic!("no drain of more than a batch");
}

#[test]
fn a_free_drains_in_slices_of_a_batch_since_6_19() {
    let whole = large_drain(LINUX_6_18, None);
    let slices = large_drain(LINUX_6_19, None);
    assert_eq!(whole.len(), 1);
    assert_eq!(slices.iter().sum::<u32>(), whole[0], "as many are due");
    assert_eq!(slices[0], BATCH);
    assert!(slices.iter().all(|pages| *pages <= BATCH), "{slices:?}");
}

#[test]
fn a_slice_that_finds_the_lock_taken_leaves_the_rest() {
    assert_eq!(large_drain(LINUX_6_19, Some(1)), [BATCH]);
    assert_eq!(large_drain(LINUX_6_18, Some(1)).len(), 1);
}
