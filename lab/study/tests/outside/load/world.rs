//! A test target that records the operations of a workload. Only one worker runs at a time: of the workers
//! that do not wait, the worker with the earliest clock. Workers are coroutines, because switching between
//! threads would take long.
//!
//! Memory is unlimited, a frame number is never used twice, and each call takes a fixed time. So equal runs
//! have equal results, and a workload's requests do not depend on an allocator.

use std::cell::{RefCell, RefMut};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use corosensei::{Coroutine, Yielder};
use pageset_core::{AllocError, CpuId, MigrateType, Order, Pfn};
use pageset_study::load::{Generation, Plan, Settings, Setup, Topology, Workload};
use pageset_study::{Access, Block, ChannelId, Fill, Hold, LockId, Message, Received, Target};

/// Virtual time that each call takes, except calls that compute or sleep.
const CALL_NS: u64 = 10;

/// One allocation, free or lock operation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Alloc {
        order: Order,
        migratetype: MigrateType,
        fill: Fill,
    },
    /// A free of a block. The fields say where and when the block was allocated, and whether the worker frees
    /// the block in a list.
    Free {
        order: Order,
        allocated_on: CpuId,
        allocated_ns: u64,
        listed: bool,
    },
    Lock(LockId, Hold),
}

/// All recorded operations of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) acts: Vec<(u64, CpuId, Act)>,
    pub(crate) score: u64,
    /// Number of blocks that the workload has not freed at the end.
    pub(crate) left: usize,
    /// Largest number of pages in use at once.
    pub(crate) pages_peak: u64,
}

impl Log {
    /// Returns the allocations at or after `start_ns`.
    pub(crate) fn allocs(&self, start_ns: u64) -> Vec<(CpuId, Order, MigrateType)> {
        let acts = self.acts.iter().filter(|(time, ..)| *time >= start_ns);
        acts.filter_map(|(_, cpu, act)| match act {
            Act::Alloc { order, migratetype, .. } => Some((*cpu, *order, *migratetype)),
            _ => None,
        })
        .collect()
    }

    /// Returns the number of allocations of each order at or after `start_ns`.
    pub(crate) fn orders(&self, start_ns: u64) -> [usize; 11] {
        let mut orders = [0; 11];
        self.allocs(start_ns).iter().for_each(|(_, order, _)| orders[order.index()] += 1);
        orders
    }

    /// Returns the number of frees on the CPU that allocated the block, and on other CPUs.
    pub(crate) fn frees(&self) -> (usize, usize) {
        let mut counts = (0, 0);
        for (_, cpu, act) in &self.acts {
            if let Act::Free { allocated_on, .. } = act {
                if allocated_on == cpu { counts.0 += 1 } else { counts.1 += 1 }
            }
        }
        counts
    }
}

/// Runs `workload` on `cpus` CPUs of two nodes for `duration_ns`, with the settings in `set`.
pub(crate) fn run(workload: &str, cpus: u32, duration_ns: u64, set: &[(&str, u64)]) -> Log {
    let mut settings = Settings::default();
    set.iter().for_each(|(key, value)| settings.set(key, *value));
    let topology = Topology::even(cpus, 2);
    let setup = Setup { topology: &topology, cpus, generation: Generation::V6_6, settings: &settings };
    let workload = Workload::named(workload).expect("a known workload");
    run_plan(workload.plan(&setup).expect("a valid plan"), duration_ns)
}

/// Runs a plan on test targets, and returns the log.
pub(crate) fn run_plan(plan: Plan, duration_ns: u64) -> Log {
    let state = Rc::new(RefCell::new(State::new(&plan, duration_ns)));
    let mut workers: Vec<_> = plan
        .workers
        .into_iter()
        .enumerate()
        .map(|(index, worker)| {
            let state = Rc::clone(&state);
            Coroutine::new(move |yielder: &Yielder<(), ()>, ()| {
                let random = index as u64 + 1;
                (worker.body)(&mut Recorder { state, yielder, index, cpu: worker.cpu, random });
            })
        })
        .collect();
    loop {
        let Some(next) = state.borrow().next() else { break };
        workers[next].resume(());
        if workers[next].done() {
            state.borrow_mut().leave(next);
        }
    }
    let mut state = state.borrow_mut();
    state.log.left = state.blocks.len();
    assert!(
        state.channels.iter().all(|channel| channel.queue.is_empty()),
        "no channel may have a message left"
    );
    assert!(state.locks.iter().all(|lock| *lock == (0, false)), "no worker may hold a lock at the end");
    std::mem::take(&mut state.log)
}

struct State {
    clocks: Vec<u64>,
    /// For each worker, whether the worker waits for a channel or a lock.
    waiting: Vec<bool>,
    done: Vec<bool>,
    end_ns: u64,
    channels: Vec<Channel>,
    /// For each lock, the number of workers that hold the lock in shared mode now, and whether a worker holds
    /// the lock exclusively.
    locks: Vec<(u32, bool)>,
    blocks: HashMap<u64, (Order, CpuId, u64)>,
    next_pfn: u64,
    pages: u64,
    log: Log,
}

struct Channel {
    queue: VecDeque<Message>,
    capacity: usize,
    senders: u32,
}

impl State {
    fn new(plan: &Plan, end_ns: u64) -> Self {
        let workers = plan.workers.len();
        let channels = plan.channels.iter().map(|spec| Channel {
            queue: VecDeque::new(),
            capacity: spec.capacity as usize,
            senders: spec.senders,
        });
        Self {
            clocks: vec![0; workers],
            waiting: vec![false; workers],
            done: vec![false; workers],
            end_ns,
            channels: channels.collect(),
            locks: vec![(0, false); plan.locks.len()],
            blocks: HashMap::new(),
            next_pfn: 1024,
            pages: 0,
            log: Log::default(),
        }
    }

    /// Lets waiting workers try again. Moves the clock of each waiting worker at least to the time of the
    /// operation that `actor` just did.
    fn wake(&mut self, actor: usize) {
        let now = self.clocks[actor];
        for worker in (0..self.clocks.len()).filter(|worker| *worker != actor) {
            if std::mem::replace(&mut self.waiting[worker], false) {
                self.clocks[worker] = self.clocks[worker].max(now);
            }
        }
        self.waiting[actor] = false;
    }

    /// Returns the worker that runs next: of the workers that do not wait, the worker with the earliest
    /// clock. If all workers wait, returns the worker with the earliest clock.
    fn next(&self) -> Option<usize> {
        let workers = (0..self.clocks.len()).filter(|worker| !self.done[*worker]);
        workers.min_by_key(|worker| (self.waiting[*worker], self.clocks[*worker], *worker))
    }

    /// Records that a worker has ended.
    fn leave(&mut self, index: usize) {
        self.done[index] = true;
        self.wake(index);
    }
}

struct Recorder<'a> {
    state: Rc<RefCell<State>>,
    yielder: &'a Yielder<(), ()>,
    index: usize,
    cpu: CpuId,
    random: u64,
}

impl Recorder<'_> {
    /// Moves this worker's clock forward by `ns`, and lets the worker that is next run.
    fn pass(&self, ns: u64) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        state.clocks[self.index] += ns;
        if state.next() == Some(self.index) {
            return state;
        }
        drop(state);
        self.yielder.suspend(());
        self.state.borrow_mut()
    }

    /// Waits until `attempt` succeeds. Other workers run while this worker waits.
    fn wait_for<R>(&self, mut attempt: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = self.pass(CALL_NS);
        for _ in 0..1_000_000 {
            if let Some(result) = attempt(&mut state) {
                state.wake(self.index);
                return result;
            }
            state.waiting[self.index] = true;
            assert!(state.waiting.iter().zip(&state.done).any(|(waits, done)| !waits && !done), "deadlock");
            drop(state);
            state = self.pass(CALL_NS);
        }
        panic!("worker {} waits, and no other worker can run", self.index);
    }

    fn note(&self, state: &mut State, act: Act) {
        let now = state.clocks[self.index];
        state.log.acts.push((now, self.cpu, act));
    }

    fn free_one(&self, state: &mut State, (pfn, order): Block, listed: bool) {
        let (expected, allocated_on, allocated_ns) =
            state.blocks.remove(&pfn.0).unwrap_or_else(|| panic!("frame {pfn} is not allocated"));
        assert_eq!(order, expected, "frame {pfn} is freed with another order");
        state.pages -= u64::from(order.frames());
        self.note(state, Act::Free { order, allocated_on, allocated_ns, listed });
    }
}

impl Target for Recorder<'_> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn now_ns(&self) -> u64 {
        self.state.borrow_mut().clocks[self.index]
    }

    fn running(&mut self) -> bool {
        let state = self.pass(CALL_NS);
        state.clocks[self.index] < state.end_ns
    }

    fn random(&mut self) -> u64 {
        // xorshift64*, by Vigna.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn score(&mut self, units: u64) {
        self.state.borrow_mut().log.score += units;
    }

    fn alloc(&mut self, order: Order, migratetype: MigrateType, fill: Fill) -> Result<Pfn, AllocError> {
        let mut state = self.pass(CALL_NS);
        let pfn = Pfn(state.next_pfn);
        state.next_pfn += 1024;
        state.pages += u64::from(order.frames());
        state.log.pages_peak = state.log.pages_peak.max(state.pages);
        let now = state.clocks[self.index];
        state.blocks.insert(pfn.0, (order, self.cpu, now));
        self.note(&mut state, Act::Alloc { order, migratetype, fill });
        Ok(pfn)
    }

    fn free(&mut self, block: Block) {
        let mut state = self.pass(CALL_NS);
        self.free_one(&mut state, block, false);
    }

    fn free_list(&mut self, blocks: &mut Vec<Block>) {
        let mut state = self.pass(CALL_NS);
        blocks.drain(..).for_each(|block| self.free_one(&mut state, block, true));
    }

    fn compute(&mut self, ns: u64) {
        drop(self.pass(ns));
    }

    fn sleep(&mut self, ns: u64) {
        drop(self.pass(ns));
    }

    fn touch(&mut self, pfn: Pfn, bytes: u64, _: Access) {
        let state = self.pass(CALL_NS);
        let (order, ..) = state.blocks[&pfn.0];
        assert!(bytes <= u64::from(order.frames()) * 4096, "touches beyond the block");
    }

    fn send(&mut self, channel: ChannelId, message: Message) {
        let mut message = Some(message);
        self.wait_for(|state| {
            let channel = &mut state.channels[channel.0 as usize];
            let has_room = channel.queue.len() < channel.capacity;
            has_room.then(|| channel.queue.extend(message.take()))
        });
    }

    fn try_send(&mut self, channel: ChannelId, message: Message) -> Result<(), Message> {
        let mut state = self.pass(CALL_NS);
        let channel = &mut state.channels[channel.0 as usize];
        if channel.queue.len() == channel.capacity {
            return Err(message);
        }
        channel.queue.push_back(message);
        state.wake(self.index);
        Ok(())
    }

    fn receive(&mut self, channel: ChannelId) -> Option<Message> {
        self.wait_for(|state| {
            let channel = &mut state.channels[channel.0 as usize];
            match channel.queue.pop_front() {
                None if channel.senders > 0 => None,
                received => Some(received),
            }
        })
    }

    fn try_receive(&mut self, channel: ChannelId) -> Received {
        let mut state = self.pass(CALL_NS);
        let channel = &mut state.channels[channel.0 as usize];
        match channel.queue.pop_front() {
            Some(message) => {
                state.wake(self.index);
                Received::Message(message)
            }
            None if channel.senders > 0 => Received::Empty,
            None => Received::Closed,
        }
    }

    fn close(&mut self, channel: ChannelId) {
        let mut state = self.pass(CALL_NS);
        let senders = &mut state.channels[channel.0 as usize].senders;
        *senders = senders.checked_sub(1).expect("each sender closes once");
        state.wake(self.index);
    }

    fn lock(&mut self, lock: LockId, hold: Hold) {
        self.wait_for(|state| {
            let (shared, exclusive) = &mut state.locks[lock.0 as usize];
            let is_free = !*exclusive && (hold == Hold::Shared || *shared == 0);
            is_free.then(|| match hold {
                Hold::Shared => *shared += 1,
                Hold::Exclusive => *exclusive = true,
            })
        });
        let mut state = self.state.borrow_mut();
        self.note(&mut state, Act::Lock(lock, hold));
    }

    fn unlock(&mut self, lock: LockId, hold: Hold) {
        let mut state = self.pass(CALL_NS);
        let (shared, exclusive) = &mut state.locks[lock.0 as usize];
        match hold {
            Hold::Shared => *shared = shared.checked_sub(1).expect("the lock is held"),
            Hold::Exclusive => assert!(std::mem::replace(exclusive, false), "the lock is held"),
        }
        state.wake(self.index);
    }
}
