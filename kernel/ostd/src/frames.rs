//! OSTD's interface to a frame allocator, implemented by pageset's allocators.

use alloc::vec;
use core::alloc::Layout;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ostd::cpu::{PinCurrentCpu, num_cpus};
use ostd::irq::{self, DisabledLocalIrqGuard, InterruptLevel};
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};
use pageset_blocks::BlockAllocator;
use pageset_core::policy::Policy;
use pageset_core::{Config, CpuId, FreeError, NodeId, Order, PageAllocator, Pfn, Request};
use spin::{Mutex, Once};

use crate::arrays::ArrayEngine;
use crate::engine::{Engine, Ostd};
use crate::pieces::Pieces;
use crate::place;
use crate::zones::Zones;

/// Linux's allocator, under a policy.
pub type LinuxFrames = Frames<PageAllocator<'static, Ostd>>;
/// pageset's own allocator. This allocator ignores the policy that is given.
pub type OwnFrames = Frames<BlockAllocator<'static>>;
/// pageset's own allocator with each CPU's arrays of free blocks above it. This allocator ignores the policy,
/// too.
pub type ArrayFrames = Frames<ArrayEngine>;

/// A frame allocator for OSTD's `global_frame_allocator`.
///
/// OSTD first adds the memory, then allocates. The first allocation builds the allocator. The allocator's
/// tables are on the heap. While the allocator is built, the heap takes its frames from the added pieces of
/// memory.
pub struct Frames<E: Engine> {
    policy: Policy,
    early: Mutex<Early>,
    ready: Once<Ready<E>>,
    /// Frames that could not be freed or used.
    lost: AtomicU64,
}

/// The state before there is an allocator.
struct Early {
    pieces: Pieces,
    /// The CPU that builds the allocator. While this CPU builds, its allocations are for the tables.
    builder: Option<CpuId>,
}

/// An allocator, and its zones.
pub(crate) struct Ready<E> {
    pub(crate) engine: E,
    pub(crate) zones: Zones,
    /// Frames that the heap took while the allocator was built.
    table_frames: u64,
}

impl<E: Engine> Frames<E> {
    /// An allocator that will follow `policy` once it has memory.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            early: Mutex::new(Early { pieces: Pieces::new(), builder: None }),
            ready: Once::new(),
            lost: AtomicU64::new(0),
        }
    }

    /// The allocator, once it is built, for inspection and settings.
    pub fn engine(&self) -> Option<&E> {
        self.ready.get().map(|ready| &ready.engine)
    }

    /// The number of frames that the allocator's tables take.
    pub fn table_frames(&self) -> u64 {
        self.ready.get().map_or(0, |ready| ready.table_frames)
    }

    /// The number of frames that were added or freed but are lost. The log has a line for each loss.
    pub fn lost_frames(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Does this CPU's periodic work. The CPU's timer must call `tick` once a second.
    pub fn tick(&self) {
        if let Some(ready) = self.ready.get() {
            let pin = irq::disable_local();
            ready.engine.tick(this_cpu(&pin)).expect("OSTD has no CPU that the allocator was not built for");
        }
    }

    // ANCHOR: build
    /// Builds the allocator. The heap calls `alloc` again from here.
    fn build(&self) {
        let pieces = self.early.lock().pieces.clone();
        let zones = Zones::of(&pieces);
        let cpus = vec![NodeId(0); num_cpus()];
        let tables = zones.with_config(&pieces, |zones| E::tables(&Config::new(zones, &cpus)));
        let early = self.early.lock();
        let engine = zones.with_config(&early.pieces, |zones| {
            E::build(&Config::new(zones, &cpus).with_policy(self.policy), tables?)
        });
        // A kernel cannot run without frames.
        let engine = engine.expect("the zones of the memory that OSTD added make an allocator");
        let table_frames = pieces.frames() - early.pieces.frames();
        self.ready.call_once(|| Ready { engine, zones, table_frames });
    }
    // ANCHOR_END: build

    #[cold]
    fn alloc_early(&self, layout: Layout) -> Option<Paddr> {
        let cpu = this_cpu(&irq::disable_local());
        let mut early = self.early.lock();
        match early.builder {
            None => {
                early.builder = Some(cpu);
                drop(early);
                self.build();
            }
            Some(builder) if builder != cpu => {
                drop(early);
                while !self.ready.is_completed() {
                    core::hint::spin_loop();
                }
            }
            Some(_) => {
                let (frames, align) = place::in_frames(layout);
                return early.pieces.take(frames, align).map(|start| paddr(Pfn(start)));
            }
        }
        self.alloc(layout)
    }

    /// Frees frames that are not exactly one block: parts of blocks, several blocks, or new memory.
    #[cold]
    fn dealloc_frames(&self, ready: &Ready<E>, cpu: CpuId, frames: Range<u64>) {
        for pfn in frames {
            let freed = place::free_range(&ready.engine, cpu, pfn..pfn + 1);
            // ANCHOR: late
            match freed {
                Ok(()) => {}
                // OSTD took this frame for its first page tables, before there was an allocator.
                Err(FreeError::Foreign(_)) => self.add(ready, cpu, pfn..pfn + 1),
                Err(error) => self.lose(1, error),
            }
            // ANCHOR_END: late
        }
    }

    fn add(&self, ready: &Ready<E>, cpu: CpuId, frames: Range<u64>) {
        let len = frames.end - frames.start;
        if let Err(error) = ready.engine.add_memory(cpu, frames) {
            self.lose(len, error);
        }
    }

    fn lose(&self, frames: u64, why: impl core::fmt::Display) {
        self.lost.fetch_add(frames, Relaxed);
        ostd::error!("{frames} frames are not taken: {why}");
    }
}

impl<E: Engine> GlobalFrameAllocator for Frames<E> {
    // ANCHOR: calls
    fn alloc(&self, layout: Layout) -> Option<Paddr> {
        let Some(ready) = self.ready.get() else { return self.alloc_early(layout) };
        let pin = irq::disable_local();
        ready.alloc(this_cpu(&pin), layout, request()).map(paddr)
    }

    fn dealloc(&self, addr: Paddr, size: usize) {
        let frames = frames_of(addr, size);
        let Some(ready) = self.ready.get() else { return self.add_free_memory(addr, size) };
        let pin = irq::disable_local();
        let cpu = this_cpu(&pin);
        if size == PAGE_SIZE && ready.engine.free(cpu, Pfn(frames.start), Order::ZERO).is_ok() {
            return;
        }
        self.dealloc_frames(ready, cpu, frames);
    }
    // ANCHOR_END: calls

    fn add_free_memory(&self, addr: Paddr, size: usize) {
        let frames = frames_of(addr, size);
        if let Some(ready) = self.ready.get() {
            let pin = irq::disable_local();
            return self.add(ready, this_cpu(&pin), frames);
        }
        let len = frames.end - frames.start;
        if !self.early.lock().pieces.add(frames) {
            self.lose(len, "OSTD added more pieces of memory than are kept");
        }
    }
}

// ANCHOR: request
/// A request with the permissions of the current context: an interrupt handler cannot wait, and may use
/// reserves.
#[inline]
fn request() -> Request {
    let request = Request::new(Order::ZERO);
    if InterruptLevel::current().is_interrupt_context() { request.atomic() } else { request }
}
// ANCHOR_END: request

#[inline]
fn this_cpu(pin: &DisabledLocalIrqGuard) -> CpuId {
    CpuId(pin.current_cpu().into())
}

fn paddr(pfn: Pfn) -> Paddr {
    pfn.0 as usize * PAGE_SIZE
}

fn frames_of(addr: Paddr, size: usize) -> Range<u64> {
    let start = (addr / PAGE_SIZE) as u64;
    start..start + (size / PAGE_SIZE) as u64
}
