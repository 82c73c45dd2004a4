//! hackbench: groups of 20 senders and 20 receivers. Each sender sends messages of 100 bytes to each receiver
//! of its group, through pipes or sockets (spec fault.md §4.3).
//!
//! The model has no single tasks, because the benchmark's many tasks move between CPUs. Instead of single
//! tasks, each CPU alternates between sending and receiving, and sends each message to a random CPU.

use std::sync::Arc;

use pageset_core::{MigrateType, Order};

use super::net::Skbs;
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{ChannelId, Fill, Message, Received, Target};

/// Number of senders in a group, and number of receivers. Source: spec fault.md §4.3.
const GROUP: u64 = 20;
/// Number of bytes of a message. Source: spec fault.md §4.3.
const MESSAGE_BYTES: u32 = 100;
/// Number of messages that one page of a pipe holds. Source: spec fault.md §4.3.
const MESSAGES_PER_PAGE: u64 = 40;
/// Number of pages that a pipe holds. Source: Linux's default, pipe(7).
const PIPE_PAGES: u64 = 16;

const GROUPS: Parameter = Parameter {
    key: "groups",
    default: 8,
    min: 1,
    meaning: "groups of 20 senders and 20 receivers",
    source: "the tables of the 2016 series: 1 to 16",
};
const MESSAGE_NS: Parameter = Parameter {
    key: "message_ns",
    default: 800,
    min: 1,
    meaning: "work to write or to read one message of 100 bytes outside the allocator, in ns",
    source: "guess: a system call and a share of a context switch",
};
const TURN_SENDERS: Parameter = Parameter {
    key: "turn_senders",
    default: 1,
    min: 1,
    meaning: "senders that a CPU runs before it runs twice as many receivers; each sends to all its receivers",
    source: "guess: each sender gets a turn; with many groups, a CPU has many senders that can run",
};

/// hackbench with pipes. A page of a pipe holds about 40 messages.
pub(super) const HACKBENCH_PIPES: Workload = Workload {
    name: "hackbench-pipes",
    summary: "hackbench -p: messages of 100 bytes through pipes, single pages from CPU to CPU",
    source: "spec fault.md §4.3",
    unit: "messages",
    duration_ms: (50, 200),
    parameters: &[GROUPS, MESSAGE_NS, TURN_SENDERS],
    build: |setup| build(setup, Medium::Pipes),
};

/// hackbench with sockets. Each message consists of two slab objects.
pub(super) const HACKBENCH_SOCKETS: Workload = Workload {
    name: "hackbench-sockets",
    summary: "hackbench: messages of 100 bytes through sockets, slab objects from CPU to CPU",
    parameters: &[GROUPS, Parameter { default: 2000, ..MESSAGE_NS }, LIST_NS, TURN_SENDERS],
    build: |setup| build(setup, Medium::Sockets),
    ..HACKBENCH_PIPES
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    Pipes,
    Sockets,
}

fn build(setup: &Setup<'_>, medium: Medium) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let skbs = (medium == Medium::Sockets).then(|| {
        let skbs = Skbs::new(&mut plan, setup, &[MESSAGE_BYTES]);
        Arc::new(skbs.used_by(setup.cpus as usize))
    });
    // The number of messages that may wait for one CPU follows from the capacity of all pipes together,
    // divided equally among the CPUs.
    let links = setup.get(&GROUPS).saturating_mul(GROUP * GROUP);
    let capacity = (links * PIPE_PAGES / MESSAGES_PER_PAGE / u64::from(setup.cpus)).clamp(1, INBOX_MAX);
    let inboxes: Vec<_> = setup.each_cpu().map(|_| plan.channel(capacity as u32, setup.cpus)).collect();
    for cpu in setup.each_cpu() {
        let inbox = inboxes[cpu.index()];
        let task = Tasks {
            skbs: skbs.clone(),
            inbox,
            inboxes: inboxes.clone(),
            message_ns: setup.get(&MESSAGE_NS),
            turn_messages: setup.get(&TURN_SENDERS).saturating_mul(GROUP),
        };
        plan.work(cpu, move |target| task.run(target));
    }
    Ok(plan)
}

/// Largest number of messages that may wait for one CPU. The limit bounds the memory of waiting messages.
/// Guess.
const INBOX_MAX: u64 = 4096;

/// The tasks of one CPU.
struct Tasks {
    skbs: Option<Arc<Skbs>>,
    inbox: ChannelId,
    inboxes: Vec<ChannelId>,
    message_ns: u64,
    /// Number of times that a CPU sends before it reads. With pipes, a CPU sends 40 messages at a time, in
    /// one page.
    turn_messages: u64,
}

impl Tasks {
    fn run(self, target: &mut dyn Target) {
        while target.running() {
            // In the senders' turn, the CPU sends `turn_messages` times to random CPUs.
            for _ in 0..self.turn_messages {
                self.send(target);
            }
            // In the receivers' turn, the CPU reads messages that have arrived, at most twice as many as it
            // has sent.
            for _ in 0..self.turn_messages.saturating_mul(2) {
                let Received::Message(message) = target.try_receive(self.inbox) else { break };
                self.consume(target, message);
            }
        }
        self.inboxes.iter().for_each(|inbox| target.close(*inbox));
        while let Some(message) = target.receive(self.inbox) {
            self.consume(target, message);
        }
        self.skbs.into_iter().for_each(|skbs| skbs.leave(target));
    }

    fn send(&self, target: &mut dyn Target) {
        let to = self.inboxes[(target.random() % self.inboxes.len() as u64) as usize];
        let mut message = Message::default();
        let allocated = match &self.skbs {
            Some(skbs) => {
                message.bytes = 1;
                skbs.head(target, MESSAGE_BYTES, &mut message)
            }
            None => {
                message.bytes = MESSAGES_PER_PAGE;
                let page = target.alloc(Order::ZERO, MigrateType::Unmovable, Fill::Undefined);
                page.map(|pfn| message.blocks.push((pfn, Order::ZERO)))
            }
        };
        target.compute(self.message_ns * message.bytes);
        let refused = if allocated.is_ok() { target.try_send(to, message).err() } else { Some(message) };
        // If the queue is full because the receiver's CPU reads too slowly, the sending CPU consumes the
        // message itself.
        refused.into_iter().for_each(|message| self.consume(target, message));
    }

    fn consume(&self, target: &mut dyn Target, message: Message) {
        target.compute(self.message_ns * message.bytes);
        target.score(message.bytes);
        match &self.skbs {
            Some(skbs) => skbs.release(target, message),
            None => message.blocks.into_iter().for_each(|block| target.free(block)),
        }
    }
}
