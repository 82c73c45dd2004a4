//! Sockets: what a message is made of, and a sender and a receiver with a socket between them (spec fault.md §4.3).

mod sctp;
mod sockperf;
mod tcp;
mod turns;
mod udp;
mod unix;

use std::sync::Arc;

use pageset_core::{AllocError, MigrateType};

use super::{Generation, Parameter, Plan, PlanError, Setup};
use crate::slab::{CacheId, PAGE_BYTES, Slabs};
use crate::target::{Access, ChannelId, Message, Target};

pub(super) use sctp::SCTP_STREAM;
pub(super) use sockperf::{SOCKPERF_TCP, SOCKPERF_UDP};
pub(super) use tcp::TCP_STREAM;
use turns::{Ends, Role, take_turns};
pub(super) use udp::UDP_STREAM;
pub(super) use unix::UNIX_STREAM;

/// Size of the structure that describes a message. Source: spec fault.md §4.3.
const SKB_BYTES: u32 = 256;
/// What a message's memory has besides the payload: room for headers before, shared information behind. Source: 4 KiB
/// of payload need kmalloc-8k and 8 KiB need order 2 (spec fault.md §4.3); the number itself is a guess.
const OVERHEAD_BYTES: u32 = 384;
/// Size of small heads since Linux 6.3. Source: spec fault.md §4.3.
const SMALL_HEAD_BYTES: u32 = 704;
/// Memory that one socket may have under way. Source: spec fault.md §4.3, "~208 KiB".
const SOCKET_BYTES: u32 = 212_992;

const SEND_NS: Parameter = Parameter {
    key: "send_ns",
    default: 1500,
    min: 0,
    meaning: "work to send one message outside the allocator, without copying, in ns",
    source: "guess",
};
const RECEIVE_NS: Parameter = Parameter {
    key: "receive_ns",
    default: 1200,
    min: 0,
    meaning: "work to receive one message outside the allocator, without copying, in ns",
    source: "guess",
};
const COPY_NS: Parameter = Parameter {
    key: "copy_kib_ns",
    default: 60,
    min: 0,
    meaning: "time to copy 1 KiB of payload into or out of a slab object, in ns",
    source: "guess: 16 GB/s",
};

/// Moves that leave time to send something between them.
const MOVES_MAX: u64 = 10_000;
const MOVES: Parameter = Parameter {
    key: "moves_per_s",
    default: 10,
    min: 0,
    meaning: "times a second that the system moves a task to another CPU, where it may meet the page sets of its other end; \
              0 for never, 10000 at most",
    source: "recording k612_8c_unix_stream (Linux 6.12, two streams on 8 CPUs): 39 to 61 moves of each task in 4.3 s",
};

/// The caches that messages are made from.
#[derive(Debug)]
pub(super) struct Skbs {
    slabs: Slabs,
    skb: CacheId,
    small_head: Option<CacheId>,
}

impl Skbs {
    /// With the caches for heads of `bytes` bytes, each.
    pub(super) fn new(plan: &mut Plan, setup: &Setup<'_>, bytes: &[u32]) -> Self {
        let mut slabs = Slabs::new(setup);
        let skb = slabs.cache(plan, SKB_BYTES, MigrateType::Unmovable);
        let small_head = (setup.generation >= Generation::V6_6)
            .then(|| slabs.cache(plan, SMALL_HEAD_BYTES, MigrateType::Unmovable));
        bytes.iter().for_each(|bytes| slabs.kmalloc_cache(plan, bytes + OVERHEAD_BYTES));
        Self { slabs, skb, small_head }
    }

    /// Says how many workers use it; each leaves once.
    pub(super) fn used_by(self, workers: usize) -> Self {
        Self { slabs: self.slabs.used_by(workers), ..self }
    }

    pub(super) fn leave(&self, target: &mut dyn Target) {
        self.slabs.leave(target);
    }

    /// Frees all that a message consists of.
    pub(super) fn release(&self, target: &mut dyn Target, message: Message) {
        self.slabs.release(target, message);
    }

    /// Describes a message, with `bytes` bytes of it beside its headers.
    pub(super) fn head(
        &self,
        target: &mut dyn Target,
        bytes: u32,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.objects.push(self.slabs.take(target, self.skb)?);
        let bytes = bytes + OVERHEAD_BYTES;
        match self.small_head {
            Some(small_head) if bytes <= SMALL_HEAD_BYTES => {
                message.objects.push(self.slabs.take(target, small_head)?);
                Ok(())
            }
            _ => self.slabs.kmalloc(target, bytes, message),
        }
    }
}

/// Makes one message after another; each sender has its own.
trait Source: Send {
    /// Allocates what the next message needs. What is in `message` after an error is freed by the caller.
    fn fill(&mut self, skbs: &Skbs, target: &mut dyn Target, message: &mut Message)
    -> Result<(), AllocError>;

    /// Frees what is kept between messages.
    fn finish(&mut self, _target: &mut dyn Target) {}
}

/// Where the receiver's frees happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FreedBy {
    /// Where it runs.
    Receiver,
    /// Where the memory was allocated, if not too much waits for that already.
    Sender,
}

/// Messages whose memory waits to be freed by the CPU that allocated it. Source: spec fault.md §4.3, "list <= 64".
const DEFERRED_MAX: u32 = 64;

/// A one-way flow of messages.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Memory of one message, which decides how many are under way.
    message_bytes: u32,
    freed_by: FreedBy,
    /// How often tasks move to other CPUs; see [`MOVES`].
    moves_per_s: u64,
}

/// Adds a sender and a receiver for each pair of CPUs.
fn stream<S: Source + 'static>(
    setup: &Setup<'_>,
    mut plan: Plan,
    skbs: Skbs,
    flow: Flow,
    source: impl Fn() -> S,
) -> Result<Plan, PlanError> {
    let pairs: Vec<_> = setup.each_pair()?.collect();
    let costs = costs(setup);
    let skbs = Arc::new(skbs.used_by(2 * pairs.len()));
    let capacity = (SOCKET_BYTES / flow.message_bytes.max(1)).max(1);
    for (sender, receiver) in pairs {
        let ways = [(); 2].map(|()| Way::new(&mut plan, capacity, flow.freed_by));
        for (cpu, role) in [(sender, Role::Sender), (receiver, Role::Receiver)] {
            let end = End::new(&skbs, costs, ways, role);
            let ends = Messages { end, source: source() };
            plan.work(cpu, move |target| take_turns(target, ends, role, flow.moves_per_s));
        }
    }
    Ok(plan)
}

#[derive(Clone, Copy, Debug)]
struct Costs {
    send_ns: u64,
    receive_ns: u64,
    copy_kib_ns: u64,
}

fn costs(setup: &Setup<'_>) -> Costs {
    Costs {
        send_ns: setup.get(&SEND_NS),
        receive_ns: setup.get(&RECEIVE_NS),
        copy_kib_ns: setup.get(&COPY_NS),
    }
}

/// What goes one way between two workers.
#[derive(Clone, Copy, Debug)]
struct Way {
    socket: ChannelId,
    /// The other way: memory that its sender is to free.
    returned: Option<ChannelId>,
}

impl Way {
    fn new(plan: &mut Plan, capacity: u32, freed_by: FreedBy) -> Self {
        let socket = plan.channel(capacity, 1);
        Self { socket, returned: (freed_by == FreedBy::Sender).then(|| plan.channel(DEFERRED_MAX, 1)) }
    }
}

/// One end of a flow.
#[derive(Clone, Debug)]
struct End {
    skbs: Arc<Skbs>,
    costs: Costs,
    /// From this worker to the other.
    forth: Way,
    /// From the other worker to this one.
    back: Way,
}

impl End {
    fn new(skbs: &Arc<Skbs>, costs: Costs, [one, other]: [Way; 2], role: Role) -> Self {
        let (forth, back) = if role == Role::Sender { (one, other) } else { (other, one) };
        Self { skbs: Arc::clone(skbs), costs, forth, back }
    }
}

/// One after another, messages with a [`Source`].
struct Messages<S> {
    end: End,
    source: S,
}

impl<S: Source> Ends for Messages<S> {
    fn end(&self) -> &End {
        &self.end
    }

    fn send(&mut self, target: &mut dyn Target) {
        let Self { end, source } = self;
        let mut message = Message::default();
        target.compute(end.costs.send_ns);
        if source.fill(&end.skbs, target, &mut message).is_err() {
            return end.skbs.release(target, message);
        }
        end.copy(target, &message);
        target.send(end.forth.socket, message);
    }

    fn receive(&mut self, target: &mut dyn Target, message: Message) {
        let Self { end, .. } = self;
        target.compute(end.costs.receive_ns);
        end.copy(target, &message);
        target.score(1);
        end.give_back(target, message);
    }

    fn finish(&mut self, target: &mut dyn Target) {
        self.source.finish(target);
    }
}

impl End {
    /// Frees a message, or leaves that to the sender's CPU.
    fn give_back(&self, target: &mut dyn Target, message: Message) {
        let kept = match self.back.returned {
            Some(returned) => target.try_send(returned, message),
            None => Err(message),
        };
        if let Err(message) = kept {
            self.skbs.release(target, message);
        }
    }

    /// Frees what the receiver sent back.
    fn free_returned(&self, target: &mut dyn Target) {
        use crate::target::Received;
        while let Some(Received::Message(message)) =
            self.forth.returned.map(|returned| target.try_receive(returned))
        {
            self.skbs.release(target, message);
        }
    }

    /// Reads the payload of messages of `bytes` bytes each; what is in objects is read in no time.
    fn read(&self, target: &mut dyn Target, messages: &Message, bytes: u32) {
        for (pfn, order) in &messages.blocks {
            let bytes = u64::from(bytes).min(u64::from(order.frames()) * u64::from(PAGE_BYTES));
            target.touch(*pfn, bytes, Access::Read);
        }
    }

    /// Copies the payload: blocks first, what is left in objects.
    fn copy(&self, target: &mut dyn Target, message: &Message) {
        let mut left = message.bytes;
        for (pfn, order) in &message.blocks {
            let bytes = left.min(u64::from(order.frames()) * u64::from(PAGE_BYTES));
            target.touch(*pfn, bytes, Access::Copy);
            left -= bytes;
        }
        target.compute(left * self.costs.copy_kib_ns / 1024);
    }
}
