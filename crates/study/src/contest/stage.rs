//! A script is played on an allocator.

use pageset_core::{CpuId, FrameAllocator, Order, Pfn, Request};

use super::script::{Script, What};
use super::standing::Standing;

/// Nanoseconds between two ticks of a CPU (Linux's `stat_interval`).
const TICK_NS: u64 = 1_000_000_000;
/// How often memory is looked at while a recording is played.
const LOOKS: u64 = 500;
/// Ticks that are two idle seconds.
const IDLE_TICKS: u32 = 2;

/// Ticks that are caught up with at most: after a longer silence, all CPUs are long idle.
const MOST_TICKS: u64 = 100;

/// What an allocator counts in a way of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) fallbacks: u64,
    pub(super) line_transfers: u64,
    pub(super) contended_lines: u64,
}

/// An allocator that counts in a way of its own.
pub(super) trait Counting: FrameAllocator {
    /// The time of what follows, for those who count what is done at about the same time.
    fn set_time_ns(&self, now_ns: u64);
    /// This CPU allocated a block of pages, or is about to free it.
    fn note(&self, cpu: CpuId, pfn: Pfn);
    /// What it counted until now.
    fn counted(&self) -> Counted;
}

/// Plays a script.
pub(super) fn play(script: &Script, allocator: &impl Counting, cpus: u32) -> Standing {
    let mut stage =
        Stage { allocator, cpus, blocks: vec![None; script.blocks], standing: Standing::default() };
    stage.perform(script);
    let Counted { fallbacks, line_transfers, contended_lines } = allocator.counted();
    stage.standing = Standing { fallbacks, line_transfers, contended_lines, ..stage.standing };
    stage.end();
    stage.standing
}

struct Stage<'a, A> {
    allocator: &'a A,
    cpus: u32,
    blocks: Vec<Option<(Pfn, Order)>>,
    standing: Standing,
}

impl<A: Counting> Stage<'_, A> {
    fn perform(&mut self, script: &Script) {
        let began_ns = script.acts.first().map_or(0, |act| act.ts_ns);
        let ended_ns = script.acts.last().map_or(0, |act| act.ts_ns);
        let look_ns = (ended_ns.saturating_sub(began_ns) / LOOKS).max(1);
        let mut next_tick_ns = began_ns.saturating_add(TICK_NS);
        let mut next_look_ns = began_ns.saturating_add(look_ns);
        let (mut held, mut at_hand, mut looks) = (0, 0, 0);
        for act in &script.acts {
            if act.ts_ns >= next_tick_ns {
                let due = (act.ts_ns - next_tick_ns) / TICK_NS + 1;
                (0..due.min(MOST_TICKS)).for_each(|_| self.tick());
                next_tick_ns = next_tick_ns.saturating_add(due.saturating_mul(TICK_NS));
            }
            if act.ts_ns >= next_look_ns {
                let usage = self.allocator.usage();
                let now = usage.held;
                held += now;
                at_hand += usage.at_hand;
                looks += 1;
                self.standing.held_peak = self.standing.held_peak.max(now);
                next_look_ns = act.ts_ns.saturating_add(look_ns);
            }
            self.allocator.set_time_ns(act.ts_ns);
            // A hostile recording may name any CPU.
            let cpu = CpuId(u32::from(act.cpu) % self.cpus);
            match act.what {
                What::Alloc { order, migratetype, highest } => {
                    let request = Request::new(order).of_type(migratetype).in_zone(highest);
                    self.alloc(cpu, act.block as usize, &request);
                }
                What::Free => self.free(cpu, act.block as usize),
            }
        }
        let usage = self.allocator.usage();
        let mean = |sum: u64, last: u64| if looks == 0 { last as f64 } else { sum as f64 / looks as f64 };
        self.standing.held_mean = mean(held, usage.held);
        self.standing.at_hand_mean = mean(at_hand, usage.at_hand);
        self.standing.shared_visits = usage.shared_visits;
        self.standing.whole_at_end = usage.whole_pageblocks;
    }

    /// The CPUs fall idle, then the load goes.
    fn end(&mut self) {
        (0..IDLE_TICKS).for_each(|_| self.tick());
        self.standing.held_idle = self.allocator.usage().held;
        for block in 0..self.blocks.len() {
            self.free(CpuId((block % self.cpus as usize) as u32), block);
        }
        (0..IDLE_TICKS).for_each(|_| self.tick());
        self.standing.whole_when_gone = self.allocator.usage().whole_pageblocks;
    }

    fn tick(&self) {
        for cpu in 0..self.cpus {
            let ticked = self.allocator.tick(CpuId(cpu));
            debug_assert!(ticked.is_ok(), "it is one of the machine's CPUs");
        }
    }

    fn alloc(&mut self, cpu: CpuId, block: usize, request: &Request) {
        match self.allocator.alloc(cpu, request) {
            Ok(pfn) => {
                self.standing.allocs += 1;
                self.allocator.note(cpu, pfn);
                self.blocks[block] = Some((pfn, request.order));
            }
            Err(_) => self.standing.failures += 1,
        }
    }

    fn free(&mut self, cpu: CpuId, block: usize) {
        if let Some((pfn, order)) = self.blocks[block].take() {
            self.allocator.note(cpu, pfn);
            self.allocator.free(cpu, pfn, order).expect("the block is in use");
        }
    }
}
