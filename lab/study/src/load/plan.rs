//! A plan: the workers of a workload for a given setup, and the channels and locks between the workers.

use std::fmt;

use pageset_core::{CpuId, NodeId};

use crate::target::{ChannelId, LockId, Target};

/// The workers of a run, and the channels and locks that the workers share.
#[derive(Debug, Default)]
pub struct Plan {
    /// The workers, at most one for each CPU.
    pub workers: Vec<Worker>,
    /// The channels. A [`ChannelId`] is an index into `channels`.
    pub channels: Vec<ChannelSpec>,
    /// The locks. A [`LockId`] is an index into `locks`.
    pub locks: Vec<LockKind>,
    /// For each node, the number of free pages above the high watermark when the run begins; 0 for nodes that
    /// are not listed. Memory that is not free when the run begins stays in use during the whole run.
    /// `free_pages` is `None` if all memory is free when the run begins.
    pub free_pages: Option<Vec<(NodeId, u64)>>,
}

/// One worker: a CPU and its work.
pub struct Worker {
    /// The CPU.
    pub cpu: CpuId,
    /// The work. When [`Target::running`] returns false, the body frees all of its memory and returns.
    pub body: Body,
}

/// The code (*body*) that one worker runs.
pub type Body = Box<dyn FnOnce(&mut dyn Target) + Send>;

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("cpu", &self.cpu).finish_non_exhaustive()
    }
}

/// The description of a channel, which is a first-in-first-out queue of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    /// Largest number of messages in the queue.
    pub capacity: u32,
    /// Number of workers that send to the queue. Each sender closes the queue once.
    pub senders: u32,
}

/// The data that a lock of the workload protects. Reports list each kind of lock separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// The LRU list of one node.
    Lru(NodeId),
    /// The address space of the processes.
    Mmap,
    /// The pages of one file.
    Mapping,
    /// The lists of partly used slabs of one cache.
    SlabList,
}

impl Plan {
    /// Adds a worker.
    pub(crate) fn work(&mut self, cpu: CpuId, body: impl FnOnce(&mut dyn Target) + Send + 'static) {
        self.workers.push(Worker { cpu, body: Box::new(body) });
    }

    /// Adds a channel.
    pub(crate) fn channel(&mut self, capacity: u32, senders: u32) -> ChannelId {
        self.channels.push(ChannelSpec { capacity, senders });
        ChannelId(self.channels.len() as u32 - 1)
    }

    /// Adds a lock.
    pub(crate) fn lock(&mut self, kind: LockKind) -> LockId {
        self.locks.push(kind);
        LockId(self.locks.len() as u32 - 1)
    }
}
