//! Repeats the operations of a recorded CPU on one CPU of the run. Several CPUs together are a copy of the
//! recorded machine.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pageset_core::{MigrateType, Order};
use pageset_replay::operations::{BlockName, What};

use super::lists::Cursor;
use super::reading::Recording;
use crate::target::{Block, Fill, Target};

/// Longest gap between two events of a CPU that counts as busy time. In a longer gap, the CPU counts as idle.
/// Guess, because a recording of page events does not show whether a CPU worked.
const BUSY_NS_MAX: u64 = 100_000;
/// Time that a CPU sleeps before it checks again whether the other CPUs of its copy have caught up. Guess.
const WAIT_NS: u64 = 20_000;

/// State that the CPUs of one copy of the recorded machine share.
#[derive(Debug)]
pub(super) struct CopyState {
    /// Blocks in use. The key of a block consists of the block's name in the recording, and of the number of
    /// passes over the list that the allocating CPU had finished.
    blocks: HashMap<(u64, BlockName), Block>,
    /// For each CPU, the number of times that the CPU has finished its list.
    passes: Vec<u64>,
    /// Number of CPUs that have stopped playing because the run is over.
    ended: usize,
}

impl CopyState {
    /// Makes the state of a copy of the recorded machine on `cpus` CPUs.
    pub(super) fn new(cpus: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { blocks: HashMap::new(), passes: vec![0; cpus], ended: 0 }))
    }
}

/// One CPU of a copy of the recorded machine.
pub(super) struct Player {
    pub(super) recording: Arc<Recording>,
    pub(super) copy: Arc<Mutex<CopyState>>,
    /// Index of the recorded CPU whose list this player plays.
    pub(super) index: usize,
    /// Whether the copy has all CPUs of the recorded machine. In a copy that lacks CPUs, each CPU frees only
    /// the blocks that it allocated itself.
    pub(super) is_whole: bool,
}

impl Player {
    pub(super) fn play(self, target: &mut dyn Target) {
        // Blocks that this CPU should have freed, but that another CPU has not allocated yet.
        let mut early = VecDeque::new();
        let mut pass = 0;
        let lists = &self.recording.lists;
        let mut cursor = Cursor::new(self.index);
        // Each CPU begins at a random point of its list, as if it had run for a long time.
        let mut start = target.random() % lists.len(self.index);
        while target.running() {
            let mut kept = Vec::new();
            for position in std::mem::take(&mut start)..lists.len(self.index) {
                if !target.running() {
                    break;
                }
                let paced = cursor.at(lists, position);
                let think_ns = u64::from(paced.think_ns);
                if think_ns > BUSY_NS_MAX {
                    target.sleep(think_ns)
                } else {
                    target.compute(think_ns)
                }
                self.perform(target, (pass, paced.what), &mut kept, &mut early);
                target.score(1);
            }
            kept.into_iter().for_each(|block| target.free(block));
            // This CPU drops frees from earlier passes, because no CPU will allocate their blocks any more.
            // For example, the allocation failed, or the allocating CPU began in the middle of its list.
            early.retain(|(since, _)| since + 1 >= pass);
            pass += 1;
            self.copy().passes[self.index] = pass;
            // This CPU waits while it is two or more passes over its list ahead of the slowest CPU. If fast
            // CPUs did not wait for slow CPUs, memory could fill up.
            while target.running() && self.slowest() + 1 < pass {
                target.sleep(WAIT_NS);
            }
        }
        self.end(target);
    }

    fn perform(
        &self,
        target: &mut dyn Target,
        (pass, what): (u64, What),
        kept: &mut Vec<Block>,
        early: &mut VecDeque<(u64, BlockName)>,
    ) {
        match what {
            What::Alloc { block, order, migratetype, .. } => {
                self.alloc(target, (pass, block), (order, migratetype), kept);
            }
            What::Bulk { first, pages } => {
                for number in first..first + pages {
                    let page = (Order::ZERO, MigrateType::Unmovable);
                    self.alloc(target, (pass, BlockName::Bulk(number)), page, kept);
                }
            }
            What::Free { .. } if !self.is_whole => {
                kept.pop().into_iter().for_each(|block| target.free(block))
            }
            What::Free { block } => {
                early.push_back((pass, block));
                // This CPU frees the block of this operation, if a CPU has allocated the block. This CPU also
                // tries again to free one block that was not allocated yet when this CPU should have freed
                // the block.
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

    fn alloc(
        &self,
        target: &mut dyn Target,
        (pass, name): (u64, BlockName),
        (order, migratetype): (Order, MigrateType),
        kept: &mut Vec<Block>,
    ) {
        let Ok(pfn) = target.alloc(order, migratetype, Fill::Undefined) else { return };
        if !self.is_whole || self.recording.is_kept(name) {
            kept.push((pfn, order));
        } else {
            self.copy().blocks.insert((pass, name), (pfn, order));
        }
    }

    fn slowest(&self) -> u64 {
        self.copy().passes.iter().copied().min().unwrap_or(0)
    }

    /// Ends this CPU. The last CPU of a copy frees the remaining blocks of the copy.
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

    fn copy(&self) -> MutexGuard<'_, CopyState> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
