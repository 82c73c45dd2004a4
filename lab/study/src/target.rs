//! The world a workload runs in: real threads, virtual CPUs, another allocator.

use pageset_core::{AllocError, CpuId, MigrateType, Order, Pfn};

use crate::slab::object::Object;

/// A block of pages: its first frame, and its order.
pub type Block = (Pfn, Order);

/// The world of one worker of a workload. A worker stays on one CPU from beginning to end, and no other
/// worker runs on that CPU.
///
/// Calls may block the worker: on a lock, on a full or empty channel, for a while. A worker therefore holds
/// no lock of the host language across a call.
pub trait Target {
    /// The worker's CPU.
    fn cpu(&self) -> CpuId;

    /// Time since the run began, in nanoseconds: of a clock, or virtual.
    fn now_ns(&self) -> u64;

    /// Whether the measured time is not over yet. A worker that sees `false` gives everything back and
    /// returns.
    fn running(&mut self) -> bool;

    /// A random number. The world's seed decides it, and each worker has a sequence of its own.
    fn random(&mut self) -> u64;

    /// Counts work that is done, in the unit that the workload is scored in.
    fn score(&mut self, units: u64);

    /// Allocates a block.
    ///
    /// # Errors
    /// Returns the allocator's error. The worker should go on without the block.
    fn alloc(&mut self, order: Order, migratetype: MigrateType, fill: Fill) -> Result<Pfn, AllocError>;

    /// Frees a block that this or another worker allocated.
    fn free(&mut self, block: Block);

    /// Frees all of `blocks` as one list (the kernel's `release_pages`), and leaves the list empty.
    fn free_list(&mut self, blocks: &mut Vec<Block>);

    /// Works for `ns` nanoseconds outside the allocator.
    fn compute(&mut self, ns: u64);

    /// As [`compute`](Self::compute), as the user's program: a world that tells user time from the kernel's
    /// counts it there.
    fn compute_in_user_mode(&mut self, ns: u64) {
        self.compute(ns);
    }

    /// Leaves the CPU idle for `ns` nanoseconds.
    fn sleep(&mut self, ns: u64);

    /// Accesses the first `bytes` of a block from its start.
    fn touch(&mut self, pfn: Pfn, bytes: u64, access: Access);

    /// Puts a message at the end of a channel; waits while the channel is full.
    fn send(&mut self, channel: ChannelId, message: Message);

    /// Sends like [`send`](Self::send), but gives the message back instead of waiting.
    ///
    /// # Errors
    /// The message, if the channel is full.
    fn try_send(&mut self, channel: ChannelId, message: Message) -> Result<(), Message>;

    /// Takes the first message of a channel; waits while the channel is empty. `None` if it is empty and all
    /// its senders have closed it.
    fn receive(&mut self, channel: ChannelId) -> Option<Message>;

    /// As [`receive`](Self::receive), but does not wait.
    fn try_receive(&mut self, channel: ChannelId) -> Received;

    /// Says that this worker sends nothing more to a channel.
    fn close(&mut self, channel: ChannelId);

    /// Takes one of the workload's locks; waits for it.
    fn lock(&mut self, lock: LockId, hold: Hold);

    /// Releases a lock that this worker took in the same way.
    fn unlock(&mut self, lock: LockId, hold: Hold);
}

/// Runs `body` with a lock of the workload's held.
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

/// The contents that a new block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Zeros: the target clears it, which takes time.
    Zeroed,
    /// Anything: it will be overwritten.
    Undefined,
}

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is filled with a copy of other memory, or copied to elsewhere.
    Copy,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// By any number of workers.
    Shared,
    /// By one.
    Exclusive,
}

/// A lock of the workload's, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u32);

/// A channel of the workload's, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// Memory that goes from one worker to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Blocks of pages.
    pub blocks: Vec<Block>,
    /// Objects of slab caches.
    pub objects: Vec<Object>,
    /// Bytes of payload in them.
    pub bytes: u64,
}

/// The result of an attempt to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The first message.
    Message(Message),
    /// Nothing now.
    Empty,
    /// Nothing now or later: all senders have closed the channel.
    Closed,
}
