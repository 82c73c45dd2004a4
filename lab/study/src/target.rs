//! The interface between a workload and its environment: real threads, virtual CPUs, or a test.

use pageset_core::{AllocError, CpuId, MigrateType, NodeId, Order, Pfn, Reclaim, Request, ZoneMemory};

use crate::slab::object::Object;

/// A block of pages: its first frame, and its order.
pub type Block = (Pfn, Order);

/// The operations that one worker of a workload can call. A worker stays on one CPU, and no other worker runs
/// on this CPU.
///
/// A worker must not hold a Rust lock across a call, because the call may suspend the worker.
pub trait Target {
    /// The worker's CPU.
    fn cpu(&self) -> CpuId;

    /// Time since the run began, in nanoseconds: real time on threads, virtual time in a simulation.
    fn now_ns(&self) -> u64;

    /// Returns whether the worker should continue its work. If the result is `false`, the worker frees all of
    /// its memory and returns.
    fn running(&mut self) -> bool;

    /// Returns a random number. Each worker has its own sequence, which depends on the seed of the run.
    fn random(&mut self) -> u64;

    /// Adds `units` to the finished work, which is counted in the unit of the workload's score.
    fn score(&mut self, units: u64);

    /// Allocates a block.
    ///
    /// # Errors
    /// Returns the allocator's error. If the allocation fails, the worker should continue without the block.
    fn alloc(&mut self, order: Order, migratetype: MigrateType, fill: Fill) -> Result<Pfn, AllocError>;

    /// Allocates like [`alloc`](Self::alloc), but fails if a kernel would make the requesting task reclaim
    /// memory.
    ///
    /// # Errors
    /// Returns the allocator's error. If the allocation fails, the worker should reclaim memory, and try
    /// again.
    fn alloc_above_min(&mut self, order: Order, migratetype: MigrateType) -> Result<Pfn, AllocError> {
        self.alloc(order, migratetype, Fill::Undefined)
    }

    /// Empties the page sets of all CPUs.
    fn drain_all(&mut self) {}

    /// Returns the free memory and the watermarks of a node. Returns `None` if the allocator has no
    /// watermarks.
    fn memory(&mut self, _: NodeId) -> Option<ZoneMemory> {
        None
    }

    /// Returns the node whose memory a frame is in. Returns `None` if the target does not know nodes.
    fn node_of(&mut self, _: Pfn) -> Option<NodeId> {
        None
    }

    /// Tells the allocator that the reclaimer of a node has started or stopped.
    fn set_reclaim(&mut self, _: NodeId, _: Reclaim) {}

    /// Frees a block that this or another worker allocated.
    fn free(&mut self, block: Block);

    /// Frees all of `blocks` as one list, like the kernel's `release_pages`. Leaves `blocks` empty.
    fn free_list(&mut self, blocks: &mut Vec<Block>);

    /// Lets the worker compute for `ns` nanoseconds outside the allocator.
    fn compute(&mut self, ns: u64);

    /// Lets the worker compute like [`compute`](Self::compute), but in the user program. A target that
    /// separates user time from kernel time counts these `ns` nanoseconds as user time.
    fn compute_in_user_mode(&mut self, ns: u64) {
        self.compute(ns);
    }

    /// Leaves the CPU idle for `ns` nanoseconds.
    fn sleep(&mut self, ns: u64);

    /// Accesses the first `bytes` bytes of a block.
    fn touch(&mut self, pfn: Pfn, bytes: u64, access: Access);

    /// Puts a message at the end of a channel. Waits while the channel is full.
    fn send(&mut self, channel: ChannelId, message: Message);

    /// Puts a message at the end of a channel like [`send`](Self::send), but gives the message back if the
    /// channel is full.
    ///
    /// # Errors
    /// Returns the message if the channel is full.
    fn try_send(&mut self, channel: ChannelId, message: Message) -> Result<(), Message>;

    /// Takes the first message of a channel. Waits while the channel is empty. Returns `None` if the channel
    /// is empty and all its senders have closed it.
    fn receive(&mut self, channel: ChannelId) -> Option<Message>;

    /// Takes the first message of a channel like [`receive`](Self::receive), but does not wait.
    fn try_receive(&mut self, channel: ChannelId) -> Received;

    /// Records that this worker will send nothing more to a channel.
    fn close(&mut self, channel: ChannelId);

    /// Takes one of the workload's locks. Waits while the lock is not free.
    fn lock(&mut self, lock: LockId, hold: Hold);

    /// Releases a lock that this worker took. `hold` must be the value that the worker passed to
    /// [`lock`](Self::lock).
    fn unlock(&mut self, lock: LockId, hold: Hold);
}

/// Returns the request for a worker's allocation. A request for movable memory may get memory from `Movable`
/// zones.
pub(crate) fn request(order: Order, migratetype: MigrateType) -> Request {
    match migratetype {
        MigrateType::Movable => Request::new(order).movable(),
        _ => Request::new(order).of_type(migratetype),
    }
}

/// Runs `body` while this worker holds one of the workload's locks.
pub fn locked<R>(
    target: &mut dyn Target,
    lock: LockId,
    hold: Hold,
    body: impl FnOnce(&mut dyn Target) -> R,
) -> R {
    target.lock(lock, hold);
    let result = body(target);
    target.unlock(lock, hold);
    result
}

/// The contents that a newly allocated block must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The block must contain zeros. The target clears the block, which takes time.
    Zeroed,
    /// The contents do not matter, because the worker will overwrite them.
    Undefined,
}

/// How a worker accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The worker reads the memory.
    Read,
    /// The worker writes the memory.
    Write,
    /// The worker copies other memory to the memory, or copies the memory to other memory.
    Copy,
}

/// Whether workers can share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Any number of workers share the lock.
    Shared,
    /// Only one worker holds the lock.
    Exclusive,
}

/// A lock of the workload: its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u32);

/// A channel of the workload: its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// Memory that one worker sends to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Blocks of pages.
    pub blocks: Vec<Block>,
    /// Objects of slab caches.
    pub objects: Vec<Object>,
    /// Bytes of payload in the blocks and objects.
    pub bytes: u64,
}

/// The result of an attempt to receive a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The first message of the channel, which is now removed from the channel.
    Message(Message),
    /// The channel is empty now.
    Empty,
    /// The channel is empty and will stay empty, because all senders have closed it.
    Closed,
}
