//! Surveys a recording: allocations and frees by CPU and task, lifetimes of blocks, and the kernel's own
//! work.
//!
//! [`survey`] reads a recording once, in bounded memory. The survey replays nothing: every number is about
//! the recorded kernel.
//!
//! The files:
//! - `orders` counts blocks by size and type, and `cpus` counts blocks by the CPUs that allocated and freed
//!   them. `lifetimes` measures how long blocks stay allocated. `bursts` counts the pages that a CPU
//!   allocates before its next free, and the pages that a CPU frees before its next allocation.
//! - `kernel` has the kernel's refills and drains, `zone_lock` has waits for zone locks, and `zones` has the
//!   zones before and after the recording.
//! - `who` has totals of each task, `groups` combines tasks, and `extent` says whether only a part of the
//!   machine was recorded.
//! - `timeline` reads the recording again for counts over time. `blocks` is the table of
//!   allocated blocks.
//!
//! Every figure except those of `zones` comes from events. A figure is `None` if its events are not known to
//! be recorded (see [`Survey::recorded`]). Each file decides this for its own figures, when all events are
//! counted.

mod blocks;
mod bursts;
mod cpus;
mod extent;
mod groups;
mod kernel;
mod lifetimes;
mod log2;
mod orders;
#[cfg(test)]
mod smoke;
mod timeline;
mod who;
mod zone_lock;
mod zones;

use pageset_core::Order;
use pageset_trace::{Amount, Event, EventKind, LostEvents, TraceError, TraceInfo, TraceReader};

use blocks::{Block, LiveBlocks};
use bursts::{BurstCounter, Direction};
use cpus::CpuCounter;
use kernel::KernelCounter;
use orders::OrderCounter;

use crate::recorded::{KindCounts, RecordedKinds};
use crate::recorded_time::{RecordedTime, TimeCounter};

pub use bursts::{Bursts, Runs};
pub use cpus::{CpuTotals, Cpus, MATRIX_CPUS_MAX};
pub use extent::Extent;
pub use groups::{Group, GroupName};
pub use kernel::Kernel;
pub use lifetimes::Lifetimes;
pub use log2::Log2Counts;
pub use orders::{OrderBlocks, Orders, TYPE_COLUMNS, type_key, type_names};
pub use timeline::{CpuTimeline, Timeline, timeline};
pub use who::{TaskShare, TaskTotals, Who};
pub use zone_lock::{CallerWaits, OtherLock, WaitSum, ZoneLockWaits, ZoneLocks};
pub use zones::{PagesetState, ZoneState, ZoneSurvey};

/// Options of a survey.
#[derive(Clone, Debug)]
pub struct SurveyOptions {
    /// Bytes that the table of allocated blocks may use. The default of 1 GiB suffices for the blocks of 350
    /// GiB of memory. Allocations that do not fit are counted as [`Survey::not_followed`].
    pub table_bytes_max: u64,
}

impl Default for SurveyOptions {
    fn default() -> Self {
        Self { table_bytes_max: 1 << 30 }
    }
}

/// The contents of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Number of events read.
    pub events: u64,
    /// The number of events of each kind.
    pub kinds: [(EventKind, u64); EventKind::COUNT],
    /// The kinds of events that were recorded.
    pub recorded: RecordedKinds,
    /// Whether the events cover the whole machine.
    pub extent: Extent,
    /// When the events happened; `None` without events.
    pub time: Option<RecordedTime>,
    /// Events that are missing, or that could not be used.
    pub lost: LostEvents,
    /// Blocks by size and type.
    pub orders: Orders,
    /// Allocations and frees by CPU.
    pub cpus: Cpus,
    /// How long blocks stay allocated.
    pub lifetimes: Option<Lifetimes>,
    /// The count of [`Lifetimes::allocated_twice`]. The count is also known if no frees were recorded.
    pub allocated_twice: u64,
    /// The count of [`Lifetimes::not_followed`]. The count is also known if no frees were recorded.
    pub not_followed: u64,
    /// Runs of allocations and of frees.
    pub bursts: Option<Bursts>,
    /// The kernel's own work: for example refills, drains and waits.
    pub kernel: Kernel,
    /// Totals of each task.
    pub who: Who,
    /// The zones before and after the recording.
    pub zones: Vec<ZoneSurvey>,
}

/// Reads a recording to its end and makes its survey. After each block of events, `progress` receives the
/// number of events read.
///
/// # Errors
/// An error if the recording is damaged or unreadable.
pub fn survey(
    reader: &mut dyn TraceReader,
    options: &SurveyOptions,
    mut progress: impl FnMut(u64),
) -> Result<Survey, TraceError> {
    let mut counted = Counted::new(reader, options);
    let mut events = Vec::new();
    while counted.read_block(&mut events)? > 0 {
        progress(counted.counter.events);
    }
    Ok(counted.finish())
}

/// A reader that also counts the events that pass through it.
pub(crate) struct Counted<R> {
    reader: R,
    counter: Counter,
}

impl<R: TraceReader> Counted<R> {
    pub(crate) fn new(reader: R, options: &SurveyOptions) -> Self {
        Self { counter: Counter::new(options, reader.info()), reader }
    }

    /// Returns the survey of all events that were read so far.
    pub(crate) fn finish(self) -> Survey {
        let info = self.reader.info();
        Survey { lost: self.reader.lost(), zones: zones::zones(info), ..self.counter.finish(info) }
    }
}

impl<R: TraceReader> TraceReader for Counted<R> {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn amount(&self) -> Amount {
        self.reader.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        let read = self.reader.read_block(events)?;
        self.counter.record_all(events);
        Ok(read)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}

/// The state of a survey that is not finished.
struct Counter {
    events: u64,
    kinds: KindCounts,
    extent: Extent,
    time: TimeCounter,
    orders: OrderCounter,
    cpus: CpuCounter,
    lifetimes: Lifetimes,
    bursts: BurstCounter,
    kernel: KernelCounter,
    blocks: LiveBlocks,
}

impl Counter {
    fn new(options: &SurveyOptions, info: &TraceInfo) -> Self {
        Self {
            events: 0,
            kinds: [0; EventKind::COUNT],
            extent: Extent::default(),
            time: TimeCounter::default(),
            orders: OrderCounter::default(),
            cpus: CpuCounter::default(),
            lifetimes: Lifetimes::default(),
            bursts: BurstCounter::default(),
            kernel: KernelCounter::of(info),
            blocks: LiveBlocks::new(options.table_bytes_max),
        }
    }

    /// Counts a list of events that the reader read at once. This function is not generic, so that the
    /// compiler uses this crate's optimisation level. For a generic function, the compiler uses the
    /// optimisation level of the calling crate.
    fn record_all(&mut self, events: &[Event]) {
        self.time.record(events);
        events.iter().for_each(|event| self.record(event));
    }

    #[inline]
    fn record(&mut self, event: &Event) {
        self.events += 1;
        self.kinds[event.kind.index()] += 1;
        self.cpus.counts(event.cpu).events += 1;
        self.extent.record(event);
        self.kernel.record(event);
        match event.kind {
            EventKind::MmPageAlloc => self.allocated(event),
            // Usually, an earlier event of the same batched free was already counted.
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => self.freed(event),
            _ => {}
        }
    }

    /// Returns the block that an event is about, if its order and frame are possible. Damaged or malicious
    /// recordings may have any order and frame.
    #[inline]
    fn block_of(&mut self, event: &Event) -> Option<(pageset_core::Pfn, Order)> {
        let block = event.frame().zip(event.block_order()).filter(|(pfn, order)| pfn.is_aligned(*order));
        self.orders.impossible += u64::from(block.is_none());
        block
    }

    #[inline]
    fn allocated(&mut self, event: &Event) {
        if event.is_failed_allocation() {
            self.orders.failed += 1;
            return;
        }
        let Some((pfn, order)) = self.block_of(event) else { return };
        let pages = u64::from(order.frames());
        self.orders.allocated(event, order);
        self.cpus.counts(event.cpu).allocated_pages += pages;
        self.bursts.record(event.cpu, Direction::Allocation, pages, event.ts_ns);
        let block = Block { since_ns: event.ts_ns, cpu: event.cpu, order };
        match self.blocks.insert(pfn, block) {
            Some(replaced) => self.lifetimes.allocated_twice += u64::from(replaced),
            None => self.lifetimes.not_followed += 1,
        }
    }

    #[inline]
    fn freed(&mut self, event: &Event) {
        let Some((pfn, order)) = self.block_of(event) else { return };
        let pages = u64::from(order.frames());
        self.orders.freed(order);
        self.cpus.counts(event.cpu).freed_pages += pages;
        self.bursts.record(event.cpu, Direction::Free, pages, event.ts_ns);
        let Self { blocks, cpus, lifetimes, .. } = self;
        let found = blocks.remove(pfn, order, |block| {
            cpus.freed(block.cpu, event.cpu, u64::from(block.order.frames()));
            lifetimes.ns.record(event.ts_ns.saturating_sub(block.since_ns));
        });
        lifetimes.freed(order.frames(), found);
    }

    fn finish(mut self, info: &TraceInfo) -> Survey {
        for (order, blocks) in self.blocks.live().into_iter().enumerate() {
            self.lifetimes.alive_at_end += blocks;
            self.lifetimes.alive_pages_at_end += blocks << order;
        }
        let recorded = RecordedKinds::new(info, &self.kinds);
        let orders = self.orders.finish(&recorded, &self.kinds);
        let (kernel, who) = self.kernel.finish(&recorded, &self.kinds, &orders);
        Survey {
            events: self.events,
            kinds: EventKind::ALL.map(|kind| (kind, self.kinds[kind.index()])),
            recorded,
            extent: self.extent,
            time: self.time.time(),
            lost: LostEvents::default(),
            orders,
            cpus: self.cpus.finish(&recorded),
            allocated_twice: self.lifetimes.allocated_twice,
            not_followed: self.lifetimes.not_followed,
            lifetimes: self.lifetimes.finish(&recorded),
            bursts: self.bursts.finish(&recorded),
            kernel,
            who,
            zones: Vec::new(),
        }
    }
}
