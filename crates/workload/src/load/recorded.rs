//! A recording as a workload for any number of CPUs: each CPU plays one recorded CPU's allocations and frees, with the
//! recorded time between them, again and again.
//!
//! The loop is closed: who waits for a lock does everything later, as a program would. As many copies of the recorded
//! machine run as fit the CPUs; within a copy a block is freed on the CPU that freed it in the recording.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pageset_core::{MigrateType, Order};
use pageset_trace::{Event, EventKind, TraceError, TraceReader};

use super::{Plan, PlanError, Setup};
use crate::target::{Block, Fill, Target};

/// Events that are kept; the rest of a longer recording is left out. Guess: 64 MB of memory.
const EVENTS_MAX: usize = 4 << 20;
/// A longer gap between two events of a CPU is taken to be idle. Guess: a recording of page events does not tell.
const BUSY_NS_MAX: u64 = 100_000;
/// How long a CPU waits for the others of its copy to come up. Guess.
const WAIT_NS: u64 = 20_000;
/// CPUs of a recording that are told apart.
const CPUS_MAX: usize = 4096;

/// A recording, ready to be played.
#[derive(Debug)]
pub struct Recorded {
    /// What each recorded CPU that did anything did.
    cpus: Vec<Arc<[Act]>>,
    /// Allocations and frees that are played.
    pub events: u64,
    /// Frees of blocks whose allocation the recording does not show; they are left out.
    pub unmatched_frees: u64,
    /// Events beyond the part that is kept.
    pub left_out: u64,
}

/// One thing that a CPU did, and how long after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Act {
    think_ns: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Allocates a block that has this number; `is_kept`: the recording does not free it.
    Alloc { block: u32, order: Order, migratetype: MigrateType, is_kept: bool },
    /// Frees the block with this number.
    Free { block: u32 },
}

impl Recorded {
    /// Reads a recording.
    ///
    /// # Errors
    /// As the reader's.
    pub fn read(reader: &mut dyn TraceReader) -> Result<Self, TraceError> {
        let (mut events, mut left_out) = (Vec::new(), 0);
        let mut block = Vec::new();
        loop {
            block.clear();
            if reader.read_block(&mut block)? == 0 {
                break;
            }
            let wanted = block.iter().filter(|event| is_played(event));
            for event in wanted {
                if events.len() < EVENTS_MAX { events.push(*event) } else { left_out += 1 }
            }
        }
        Ok(Self { left_out, ..Self::of(&events) })
    }

    fn of(events: &[Event]) -> Self {
        let mut cpus: Vec<(Vec<Act>, u64)> = Vec::new();
        // Frame number to the allocation's number, and where its act is.
        let mut in_use: HashMap<u64, (u32, usize, usize)> = HashMap::new();
        let (mut blocks, mut unmatched_frees) = (0, 0);
        for event in events {
            let cpu = usize::from(event.cpu).min(CPUS_MAX - 1);
            if cpus.len() <= cpu {
                cpus.resize_with(cpu + 1, Default::default);
            }
            let what = if event.kind == EventKind::MmPageAlloc {
                let at = cpus[cpu].0.len();
                in_use.insert(event.pfn, (blocks, cpu, at));
                blocks += 1;
                let kind = usize::try_from(event.migratetype).ok().and_then(MigrateType::from_index);
                let migratetype = kind.filter(|kind| kind.is_mergeable()).unwrap_or(MigrateType::Movable);
                let order = Order::new(event.order).unwrap_or(Order::ZERO);
                What::Alloc { block: blocks - 1, order, migratetype, is_kept: true }
            } else {
                let Some((block, owner, at)) = in_use.remove(&event.pfn) else {
                    unmatched_frees += 1;
                    continue;
                };
                if let What::Alloc { is_kept, .. } = &mut cpus[owner].0[at].what {
                    *is_kept = false;
                }
                What::Free { block }
            };
            let (acts, last_ns) = &mut cpus[cpu];
            let since = if acts.is_empty() { 0 } else { event.ts_ns.saturating_sub(*last_ns) };
            *last_ns = event.ts_ns;
            acts.push(Act { think_ns: u32::try_from(since).unwrap_or(u32::MAX), what });
        }
        let cpus: Vec<Arc<[Act]>> = cpus
            .into_iter()
            .map(|(acts, _)| acts.into())
            .filter(|acts: &Arc<[Act]>| !acts.is_empty())
            .collect();
        let events = cpus.iter().map(|acts| acts.len() as u64).sum();
        Self { cpus, events, unmatched_frees, left_out: 0 }
    }

    /// The recording on as many CPUs as `setup` says. It has no parameters.
    ///
    /// # Errors
    /// If the machine has not that many CPUs, or the recording shows no allocation.
    pub fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        let present = setup.topology.nodes_of_cpus.len();
        if setup.cpus == 0 || setup.cpus as usize > present {
            return Err(PlanError::Cpus { wanted: setup.cpus, present });
        }
        if self.cpus.is_empty() {
            return Err(PlanError::EmptyRecording);
        }
        let mut plan = Plan::default();
        let cpus: Vec<_> = setup.each_cpu().collect();
        for members in cpus.chunks(self.cpus.len()) {
            let copy = Arc::new(Mutex::new(Copy { passes: vec![0; members.len()], ..Copy::default() }));
            for (index, cpu) in members.iter().enumerate() {
                let acts = Arc::clone(&self.cpus[index]);
                // A copy that is not whole frees what its missing CPUs would have freed.
                let player = Player {
                    copy: Arc::clone(&copy),
                    index,
                    acts,
                    is_whole: members.len() == self.cpus.len(),
                };
                plan.work(*cpu, move |target| player.play(target));
            }
        }
        Ok(plan)
    }
}

/// Whether an event is an allocation that succeeded, or a free.
fn is_played(event: &Event) -> bool {
    match event.kind {
        EventKind::MmPageAlloc => event.pfn != pageset_trace::PFN_NONE && Order::new(event.order).is_some(),
        EventKind::MmPageFree => true,
        _ => false,
    }
}

/// What the CPUs of one copy share.
#[derive(Debug, Default)]
struct Copy {
    /// Blocks in use, by pass and number.
    blocks: HashMap<(u64, u32), Block>,
    /// The pass that each CPU is in.
    passes: Vec<u64>,
    /// CPUs that have ended.
    ended: usize,
}

/// One CPU of a copy.
struct Player {
    copy: Arc<Mutex<Copy>>,
    index: usize,
    acts: Arc<[Act]>,
    is_whole: bool,
}

impl Player {
    fn play(self, target: &mut dyn Target) {
        // Blocks that this CPU is to free, but that another has not allocated yet.
        let mut early = VecDeque::new();
        let mut pass = 0;
        // Copies that run for long are not in step.
        let mut start = (target.random() % self.acts.len() as u64) as usize;
        while target.running() {
            let mut kept = Vec::new();
            for act in &self.acts[std::mem::take(&mut start)..] {
                if !target.running() {
                    break;
                }
                let think_ns = u64::from(act.think_ns);
                if think_ns > BUSY_NS_MAX {
                    target.sleep(think_ns)
                } else {
                    target.compute(think_ns)
                }
                self.act(target, (pass, act.what), &mut kept, &mut early);
                target.score(1);
            }
            kept.into_iter().for_each(|block| target.free(block));
            // What nobody allocates any more: its allocation failed, or its CPU began in the middle.
            early.retain(|(since, _)| since + 1 >= pass);
            pass += 1;
            self.copy().passes[self.index] = pass;
            // At most one pass ahead of the slowest, so that memory stays bounded.
            while target.running() && self.slowest() + 1 < pass {
                target.sleep(WAIT_NS);
            }
        }
        self.end(target);
    }

    fn act(
        &self,
        target: &mut dyn Target,
        (pass, what): (u64, What),
        kept: &mut Vec<Block>,
        early: &mut VecDeque<(u64, u32)>,
    ) {
        match what {
            What::Alloc { block, order, migratetype, is_kept } => {
                let Ok(pfn) = target.alloc(order, migratetype, Fill::Undefined) else { return };
                if is_kept || !self.is_whole {
                    kept.push((pfn, order));
                } else {
                    self.copy().blocks.insert((pass, block), (pfn, order));
                }
            }
            What::Free { .. } if !self.is_whole => {
                kept.pop().into_iter().for_each(|block| target.free(block))
            }
            What::Free { block } => {
                early.push_back((pass, block));
                // The one that is due, and one that was early.
                for _ in 0..early.len().min(2) {
                    let Some(key) = early.pop_back() else { break };
                    let found = self.copy().blocks.remove(&key);
                    match found {
                        Some(block) => target.free(block),
                        None => early.push_front(key),
                    }
                }
            }
        }
    }

    fn slowest(&self) -> u64 {
        self.copy().passes.iter().copied().min().unwrap_or(0)
    }

    /// The last CPU of a copy frees what is left of it.
    fn end(&self, target: &mut dyn Target) {
        let left = {
            let mut copy = self.copy();
            copy.ended += 1;
            if copy.ended < copy.passes.len() {
                return;
            }
            std::mem::take(&mut copy.blocks)
        };
        let mut left: Vec<_> = left.into_values().collect();
        left.sort_unstable();
        left.into_iter().for_each(|block| target.free(block));
    }

    fn copy(&self) -> MutexGuard<'_, Copy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ts_ns: u64, cpu: u16, kind: EventKind, pfn: u64) -> Event {
        Event { pfn, migratetype: 0, ..Event::new(kind, ts_ns, cpu) }
    }

    #[test]
    fn acts_keep_their_cpu_distance_and_partner() {
        let recorded = Recorded::of(&[
            event(100, 0, EventKind::MmPageAlloc, 7),
            event(250, 0, EventKind::MmPageAlloc, 8),
            event(300, 1, EventKind::MmPageFree, 7),
            event(400, 1, EventKind::MmPageFree, 9),
            event(500, 1, EventKind::MmPageAlloc, 7),
        ]);
        assert_eq!((recorded.events, recorded.unmatched_frees), (4, 1));
        let alloc = |block, is_kept| What::Alloc {
            block,
            order: Order::ZERO,
            migratetype: MigrateType::Unmovable,
            is_kept,
        };
        let expected = [
            vec![Act { think_ns: 0, what: alloc(0, false) }, Act { think_ns: 150, what: alloc(1, true) }],
            vec![
                Act { think_ns: 0, what: What::Free { block: 0 } },
                Act { think_ns: 200, what: alloc(2, true) },
            ],
        ];
        assert_eq!(recorded.cpus.iter().map(|acts| acts.to_vec()).collect::<Vec<_>>(), expected);
    }
}
