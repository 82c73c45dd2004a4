//! One end of a flow of messages between two workers, and the costs of sending, receiving and copying.

use std::sync::Arc;

use super::skbs::Skbs;
use crate::load::plan::Plan;
use crate::load::setup::{Parameter, Setup};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, ChannelId, Message, Received, Target};

pub(super) const SEND_NS: Parameter = Parameter {
    key: "send_ns",
    default: 1500,
    min: 0,
    meaning: "work to send one message outside the allocator, without copying, in ns",
    source: "guess",
};
pub(super) const RECEIVE_NS: Parameter = Parameter {
    key: "receive_ns",
    default: 1200,
    min: 0,
    meaning: "work to receive one message outside the allocator, without copying, in ns",
    source: "guess",
};
pub(super) const COPY_NS: Parameter = Parameter {
    key: "copy_kib_ns",
    default: 60,
    min: 0,
    meaning: "time to copy 1 KiB of payload into or out of a slab object, in ns",
    source: "guess: 16 GB/s",
};

/// The role of a worker in a flow of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// The CPU that frees the memory of received messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreedBy {
    /// The receiver's CPU frees the memory of the message.
    Receiver,
    /// The sender's CPU, which allocated the memory of the message, frees this memory. If too many messages
    /// already wait for the sender's CPU, the receiver's CPU frees the memory.
    Sender,
}

/// Largest number of received messages that wait until the sender's CPU frees them. Source: spec fault.md
/// §4.3, "list <= 64".
const DEFERRED_MAX: u32 = 64;

/// Costs of sending, receiving and copying.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) send_ns: u64,
    pub(super) receive_ns: u64,
    copy_kib_ns: u64,
}

pub(super) fn costs(setup: &Setup<'_>) -> Costs {
    Costs {
        send_ns: setup.get(&SEND_NS),
        receive_ns: setup.get(&RECEIVE_NS),
        copy_kib_ns: setup.get(&COPY_NS),
    }
}

/// One direction of a flow of messages between two workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) socket: ChannelId,
    /// The channel that brings received memory back to the sender's CPU, if the sender's CPU frees this
    /// memory.
    pub(super) returned: Option<ChannelId>,
}

impl Way {
    pub(super) fn new(plan: &mut Plan, capacity: u32, freed_by: FreedBy) -> Self {
        let socket = plan.channel(capacity, 1);
        Self { socket, returned: (freed_by == FreedBy::Sender).then(|| plan.channel(DEFERRED_MAX, 1)) }
    }
}

/// One end of a flow of messages.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) skbs: Arc<Skbs>,
    pub(super) costs: Costs,
    /// The direction from this worker to its peer.
    pub(super) forth: Way,
    /// The direction from the peer to this worker.
    pub(super) back: Way,
}

impl End {
    pub(super) fn new(skbs: &Arc<Skbs>, costs: Costs, [one, other]: [Way; 2], role: Role) -> Self {
        let (forth, back) = if role == Role::Sender { (one, other) } else { (other, one) };
        Self { skbs: Arc::clone(skbs), costs, forth, back }
    }

    /// Frees a message on this CPU, or sends its memory back to the sender's CPU.
    pub(super) fn give_back(&self, target: &mut dyn Target, message: Message) {
        let kept = match self.back.returned {
            Some(returned) => target.try_send(returned, message),
            None => Err(message),
        };
        if let Err(message) = kept {
            self.skbs.release(target, message);
        }
    }

    /// Frees the memory that the receiver has sent back, except for blocks that `recycle` takes.
    pub(super) fn free_returned(&self, target: &mut dyn Target, mut recycle: impl FnMut(&mut Message)) {
        while let Some(Received::Message(mut message)) =
            self.forth.returned.map(|returned| target.try_receive(returned))
        {
            recycle(&mut message);
            self.skbs.release(target, message);
        }
    }

    /// Reads the payload of messages of `bytes` bytes each. The model charges no time for payload in slab
    /// objects.
    pub(super) fn read(&self, target: &mut dyn Target, messages: &Message, bytes: u32) {
        for (pfn, order) in &messages.blocks {
            let bytes = u64::from(bytes).min(u64::from(order.frames()) * u64::from(PAGE_BYTES));
            target.touch(*pfn, bytes, Access::Read);
        }
    }

    /// Copies the payload of a message: first the part in blocks, then the part in slab objects.
    pub(super) fn copy(&self, target: &mut dyn Target, message: &Message) {
        let mut left = message.bytes;
        for (pfn, order) in &message.blocks {
            let bytes = left.min(u64::from(order.frames()) * u64::from(PAGE_BYTES));
            target.touch(*pfn, bytes, Access::Copy);
            left -= bytes;
        }
        target.compute(left * self.costs.copy_kib_ns / 1024);
    }
}
