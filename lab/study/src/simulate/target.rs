//! Lets a workload run on a virtual CPU.

use std::rc::Rc;

use pageset_core::{AllocError, CpuId, MigrateType, NodeId, Order, Pfn, Reclaim, ZoneMemory};
use pageset_sim::{Channel, Gate, LockClass, Span, Spin, Stream, Touch, TryReceived, VirtualCpu};
use rand::Rng as _;

use crate::load::{LockKind, Plan};
use crate::target::request;
use crate::{Access, Block, ChannelId, Fill, Hold, LockId, Message, Received, Target};

/// Channels and locks that the workers of a plan share.
#[derive(Debug)]
pub(super) struct Shared {
    channels: Vec<Channel<Message>>,
    locks: Vec<Lock>,
}

/// A workload's lock: either a spin lock, or a lock that CPUs can share.
#[derive(Debug)]
enum Lock {
    Spin(Spin),
    Gate(Gate),
}

impl Shared {
    pub(super) fn of(plan: &Plan) -> Rc<Self> {
        let channels = plan.channels.iter().map(|spec| Channel::new(spec.capacity as usize, spec.senders));
        let locks = plan.locks.iter().map(|kind| lock(*kind));
        Rc::new(Self { channels: channels.collect(), locks: locks.collect() })
    }
}

fn lock(kind: LockKind) -> Lock {
    match kind {
        LockKind::Lru(_) => Lock::Spin(Spin::new(LockClass::Lru)),
        LockKind::SlabList => Lock::Spin(Spin::new(LockClass::Slab)),
        LockKind::Mmap => Lock::Gate(Gate::new(LockClass::Mmap)),
        LockKind::Mapping => Lock::Gate(Gate::new(LockClass::Other)),
    }
}

/// One worker's virtual CPU.
pub(super) struct VirtualTarget<'c> {
    cpu: &'c VirtualCpu,
    shared: Rc<Shared>,
    random: Stream,
    lost_frees: u64,
}

impl<'c> VirtualTarget<'c> {
    pub(super) fn new(cpu: &'c VirtualCpu, shared: Rc<Shared>) -> Self {
        Self { random: cpu.rng("workload"), cpu, shared, lost_frees: 0 }
    }

    /// Returns the number of frees that the allocator refused, because of a bug of the workload or of the
    /// allocator. If the allocator refuses a list of blocks, the whole list counts as one free.
    pub(super) fn lost_frees(&self) -> u64 {
        self.lost_frees
    }

    fn channel(&self, channel: ChannelId) -> &Channel<Message> {
        &self.shared.channels[channel.0 as usize]
    }
}

impl Target for VirtualTarget<'_> {
    fn cpu(&self) -> CpuId {
        self.cpu.id()
    }

    fn now_ns(&self) -> u64 {
        self.cpu.now().as_ns()
    }

    fn running(&mut self) -> bool {
        self.cpu.running()
    }

    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }

    fn score(&mut self, units: u64) {
        // Work after the measured time does not count, because a run with a longer clean-up would otherwise
        // get a better score.
        if self.cpu.running() {
            self.cpu.score(units);
        }
    }

    fn alloc(&mut self, order: Order, migratetype: MigrateType, fill: Fill) -> Result<Pfn, AllocError> {
        let pfn = self.cpu.alloc(&request(order, migratetype))?;
        if fill == Fill::Zeroed {
            self.cpu.clear(pfn, order);
        }
        Ok(pfn)
    }

    fn alloc_above_min(&mut self, order: Order, migratetype: MigrateType) -> Result<Pfn, AllocError> {
        self.cpu.alloc_above_min(&request(order, migratetype))
    }

    fn drain_all(&mut self) {
        self.cpu.drain_all();
    }

    fn memory(&mut self, node: NodeId) -> Option<ZoneMemory> {
        self.cpu.memory(node)
    }

    fn node_of(&mut self, pfn: Pfn) -> Option<NodeId> {
        Some(self.cpu.node_of(pfn))
    }

    fn set_reclaim(&mut self, node: NodeId, reclaim: Reclaim) {
        self.cpu.set_reclaim(node, reclaim);
    }

    fn free(&mut self, (pfn, order): Block) {
        self.lost_frees += u64::from(self.cpu.free(pfn, order).is_err());
    }

    fn free_list(&mut self, blocks: &mut Vec<Block>) {
        self.lost_frees += u64::from(self.cpu.free_list(blocks).is_err());
        blocks.clear();
    }

    fn compute(&mut self, ns: u64) {
        self.cpu.advance(Span::from_ns(ns));
    }

    fn compute_in_user_mode(&mut self, ns: u64) {
        self.cpu.advance_in_user_mode(Span::from_ns(ns));
    }

    fn sleep(&mut self, ns: u64) {
        self.cpu.sleep(Span::from_ns(ns));
    }

    fn touch(&mut self, pfn: Pfn, bytes: u64, access: Access) {
        let touch = match access {
            Access::Read | Access::Write => Touch::Access,
            Access::Copy => Touch::Copy,
        };
        self.cpu.touch(pfn, bytes, touch);
    }

    fn send(&mut self, channel: ChannelId, message: Message) {
        self.channel(channel).send(self.cpu, message);
    }

    fn try_send(&mut self, channel: ChannelId, message: Message) -> Result<(), Message> {
        self.channel(channel).try_send(self.cpu, message)
    }

    fn receive(&mut self, channel: ChannelId) -> Option<Message> {
        self.channel(channel).receive(self.cpu)
    }

    fn try_receive(&mut self, channel: ChannelId) -> Received {
        match self.channel(channel).try_receive(self.cpu) {
            TryReceived::Message(message) => Received::Message(message),
            TryReceived::Empty => Received::Empty,
            TryReceived::Closed => Received::Closed,
        }
    }

    fn close(&mut self, channel: ChannelId) {
        self.channel(channel).close(self.cpu);
    }

    fn lock(&mut self, lock: LockId, hold: Hold) {
        match (&self.shared.locks[lock.0 as usize], hold) {
            (Lock::Spin(spin), _) => spin.lock(),
            (Lock::Gate(gate), Hold::Shared) => gate.lock_shared(self.cpu),
            (Lock::Gate(gate), Hold::Exclusive) => gate.lock_exclusive(self.cpu),
        }
    }

    fn unlock(&mut self, lock: LockId, hold: Hold) {
        match (&self.shared.locks[lock.0 as usize], hold) {
            (Lock::Spin(spin), _) => spin.unlock(),
            (Lock::Gate(gate), Hold::Shared) => gate.unlock_shared(self.cpu),
            (Lock::Gate(gate), Hold::Exclusive) => gate.unlock_exclusive(self.cpu),
        }
    }
}
