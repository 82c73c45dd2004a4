//! Repeats a recording's operations on an allocator.

use pageset_core::{CpuId, FrameAllocator, Order, Pfn, Request};
use pageset_replay::operations::{BlockName, What};
use pageset_sim::SharedCounts;

use super::ContestError;
use super::recording::Recording;
use super::row::ContestRow;

/// Nanoseconds between two ticks of a CPU (Linux's `stat_interval`).
const TICK_NS: u64 = 1_000_000_000;
/// Number of samples of memory use over one recording.
const LOOKS: u64 = 500;
/// Number of ticks in two idle seconds.
const IDLE_TICKS: u32 = 2;

/// Largest number of ticks that a CPU does in one gap between two events of the recording. After
/// [`MOST_TICKS`] ticks, page sets do not change any more.
const MOST_TICKS: u64 = 100;

/// An allocator that keeps additional counters.
pub(super) trait Counting: FrameAllocator {
    /// Sets the recorded time of the next calls of the allocator. Counters of contended lines need the time
    /// between two changes.
    fn set_time_ns(&self, now_ns: u64);
    /// Records that this CPU allocated a block, or is about to free a block.
    fn note(&self, cpu: CpuId, pfn: Pfn);
    /// Returns counts of accesses to data that several CPUs use, since the allocator was built. The
    /// allocator's own `FrameUsage` has only one count of accesses to shared data, `shared_visits`.
    fn counted(&self) -> SharedCounts;
}

/// Repeats a recording on an allocator, and returns the counts.
pub(super) fn play(
    recording: &Recording,
    allocator: &impl Counting,
    cpus: u32,
) -> Result<ContestRow, ContestError> {
    let mut blocks = Vec::new();
    let bytes = recording.slots.saturating_mul(size_of::<Slot>());
    blocks
        .try_reserve_exact(recording.slots)
        .map_err(|_| ContestError::Memory { mib: (bytes >> 20).max(1) })?;
    blocks.resize(recording.slots, Slot::FREE);
    let mut stage = Stage { allocator, cpus, blocks, requests: 0, row: ContestRow::default() };
    stage.perform(recording)?;
    stage.row.shared = SharedCounts { shared_visits: stage.row.shared.shared_visits, ..allocator.counted() };
    stage.end();
    Ok(stage.row)
}

struct Stage<'a, A> {
    allocator: &'a A,
    cpus: u32,
    /// The blocks in use, by their slot in the recording.
    blocks: Vec<Slot>,
    /// Number of allocations so far.
    requests: u32,
    row: ContestRow,
}

/// A slot of the recording, in 16 bytes. The number of the block's first frame is in two halves, because a
/// field of 64 bits would make the slot larger.
#[derive(Clone, Copy, Debug)]
struct Slot {
    pfn_high: u32,
    pfn_low: u32,
    /// Number of the allocation that took the block, counted from 0.
    request: u32,
    order: Order,
    is_in_use: bool,
}

impl Slot {
    const FREE: Self = Self { pfn_high: 0, pfn_low: 0, request: 0, order: Order::ZERO, is_in_use: false };

    fn pfn(self) -> Pfn {
        Pfn(u64::from(self.pfn_high) << 32 | u64::from(self.pfn_low))
    }
}

impl<A: Counting> Stage<'_, A> {
    fn perform(&mut self, recording: &Recording) -> Result<(), ContestError> {
        let (began_ns, ended_ns) = recording.operations.times_ns();
        let look_ns = (ended_ns.saturating_sub(began_ns) / LOOKS).max(1);
        let mut next_tick_ns = began_ns.saturating_add(TICK_NS);
        let mut next_look_ns = began_ns.saturating_add(look_ns);
        let (mut held, mut at_hand, mut looks) = (0, 0, 0);
        let performed = recording.operations.each(|operation| {
            if operation.ts_ns >= next_tick_ns {
                let due = (operation.ts_ns - next_tick_ns) / TICK_NS + 1;
                (0..due.min(MOST_TICKS)).for_each(|_| self.tick());
                next_tick_ns = next_tick_ns.saturating_add(due.saturating_mul(TICK_NS));
            }
            if operation.ts_ns >= next_look_ns {
                let usage = self.allocator.usage();
                let now = usage.held;
                held += now;
                at_hand += usage.at_hand;
                looks += 1;
                self.row.held_peak = self.row.held_peak.max(now);
                next_look_ns = operation.ts_ns.saturating_add(look_ns);
            }
            self.allocator.set_time_ns(operation.ts_ns);
            // The remainder limits the CPU number, because a damaged or malicious recording may have any CPU
            // number.
            let cpu = CpuId(u32::from(operation.cpu) % self.cpus);
            match operation.what {
                What::Alloc { block: BlockName::Alone(block), order, migratetype, highest } => {
                    let request = Request::new(order).of_type(migratetype).in_zone(highest);
                    self.alloc(cpu, block as usize, &request);
                }
                What::Free { block: BlockName::Alone(block) } => self.free(cpu, block as usize),
                // `Recording::read` has left bulk allocations out.
                What::Alloc { .. } | What::Bulk { .. } | What::Free { .. } => {}
            }
        });
        performed.map_err(ContestError::File)?;
        let usage = self.allocator.usage();
        let mean = |sum: u64, last: u64| if looks == 0 { last as f64 } else { sum as f64 / looks as f64 };
        self.row.held_mean = mean(held, usage.held);
        self.row.at_hand_mean = mean(at_hand, usage.at_hand);
        self.row.shared.shared_visits = usage.shared_visits;
        self.row.whole_at_end = usage.whole_pageblocks;
        Ok(())
    }

    /// Leaves the CPUs idle for two seconds, then frees all blocks.
    fn end(&mut self) {
        (0..IDLE_TICKS).for_each(|_| self.tick());
        self.row.held_idle = self.allocator.usage().held;
        // The order of the slots is not needed any more. Sort in place, because a second table would need
        // memory.
        self.blocks.sort_unstable_by_key(|slot| slot.request);
        for slot in 0..self.blocks.len() {
            self.free(CpuId(self.blocks[slot].request % self.cpus), slot);
        }
        (0..IDLE_TICKS).for_each(|_| self.tick());
        self.row.whole_when_gone = self.allocator.usage().whole_pageblocks;
    }

    fn tick(&self) {
        for cpu in 0..self.cpus {
            let ticked = self.allocator.tick(CpuId(cpu));
            debug_assert!(ticked.is_ok(), "the CPU is one of the machine's");
        }
    }

    fn alloc(&mut self, cpu: CpuId, slot: usize, request: &Request) {
        match self.allocator.alloc(cpu, request) {
            Ok(pfn) => {
                self.row.allocs += 1;
                self.allocator.note(cpu, pfn);
                self.blocks[slot] = Slot {
                    pfn_high: (pfn.0 >> 32) as u32,
                    pfn_low: pfn.0 as u32,
                    request: self.requests,
                    order: request.order,
                    is_in_use: true,
                };
            }
            Err(_) => self.row.failures += 1,
        }
        self.requests += 1;
    }

    fn free(&mut self, cpu: CpuId, slot: usize) {
        let block = self.blocks[slot];
        if block.is_in_use {
            self.blocks[slot].is_in_use = false;
            self.allocator.note(cpu, block.pfn());
            self.allocator.free(cpu, block.pfn(), block.order).expect("the block is in use");
        }
    }
}
