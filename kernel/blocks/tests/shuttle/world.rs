//! An allocator under shuttle, and the owner of each frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool as Flag, Ordering};

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    Config, CpuId, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneKind,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Mutex;

use crate::FRAMES;

pub(crate) type Blocks = Vec<(Pfn, Order)>;

/// Runs many schedules. Some schedules are random at each step. In other schedules, threads seldom wait, but
/// wait for long.
#[allow(dead_code, reason = "one of the targets that have this module runs no such schedules")]
pub(crate) fn check(body: impl Fn() + Send + Sync + 'static) {
    let iterations = std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|text| text.parse().ok());
    let (iterations, body) = (iterations.unwrap_or(2000), Arc::new(body));
    let other = body.clone();
    check_with(RandomScheduler::new(iterations), move || other());
    check_with(PctScheduler::new(3, iterations), move || body());
}

/// Runs `body` once in each schedule of `scheduler`. The stack is larger than usual, because tables are built
/// on the stack.
pub(crate) fn check_with(scheduler: impl Scheduler + 'static, body: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000_000);
    shuttle::Runner::new(scheduler, config).run(body);
}

#[allow(dead_code, reason = "one of the targets that have this module has its orders elsewhere")]
pub(crate) fn order(order: u8) -> Order {
    Order::new(order).expect("small")
}

/// An allocator, the owner of each frame, and blocks on their way from one CPU to another.
pub(crate) struct World {
    pub(crate) allocator: BlockAllocator<'static>,
    owned: Vec<Flag>,
    pub(crate) mailbox: Mutex<Blocks>,
    #[allow(dead_code, reason = "one of the targets that have this module uses it")]
    pub(crate) left: Mutex<Blocks>,
}

impl World {
    pub(crate) fn new(cpus: usize) -> Self {
        Self::with_memory(cpus, FRAMES)
    }

    /// A machine whose last frames are holes.
    pub(crate) fn with_memory(cpus: usize, frames: u64) -> Self {
        let regions = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &regions }];
        let nodes = vec![NodeId(0); cpus];
        let mut config = Config::new(&zones, &nodes);
        config.min_free_kbytes = Some(0);
        let tables = Tables::on_heap(&config).expect("the zone is possible");
        Self {
            allocator: BlockAllocator::new(&config, tables).expect("the zone is possible"),
            owned: (0..FRAMES).map(|_| Flag::new(false)).collect(),
            mailbox: Mutex::new(Vec::new()),
            left: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn mark(&self, pfn: Pfn, frames: u64, to: bool) {
        for frame in pfn.0..pfn.0 + frames {
            let before = self.owned[frame as usize].swap(to, Ordering::Relaxed);
            assert_ne!(before, to, "frame {frame} has two owners, or none");
        }
    }

    pub(crate) fn alloc(&self, cpu: CpuId, order: Order, migratetype: MigrateType) -> Option<(Pfn, Order)> {
        let request = Request::new(order).of_type(migratetype).with(RequestTraits::NO_WATERMARKS);
        let pfn = self.allocator.alloc(cpu, &request).ok()?;
        self.mark(pfn, u64::from(order.frames()), true);
        Some((pfn, order))
    }

    pub(crate) fn free(&self, cpu: CpuId, (pfn, order): (Pfn, Order)) {
        self.mark(pfn, u64::from(order.frames()), false);
        self.allocator.free(cpu, pfn, order).expect("it is in use");
    }

    /// Frees the blocks in the mailbox, and checks that all frames are free.
    pub(crate) fn end(&self) {
        self.end_without(0);
    }

    /// Does the same as [`end`](Self::end) if `lost` frames of one pageblock are out of service.
    pub(crate) fn end_without(&self, lost: u64) {
        let left = std::mem::take(&mut *self.mailbox.lock().expect("nobody panicked"));
        left.into_iter().for_each(|block| self.free(CpuId(0), block));
        self.allocator.drain_all();
        let census = self.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!((census.free, census.leaked), (FRAMES - lost, lost));
        assert_eq!((census.cached, census.allocated), (0, 0));
        let whole: u64 = self.allocator.zones().map(|zone| zone.whole_pageblocks).sum();
        assert_eq!(whole, FRAMES / 512 - lost.min(1), "a pageblock whose frames are all free is whole");
    }
}
