//! A flow of single messages from one CPU to another, for each pair of CPUs.

use std::sync::Arc;

use pageset_core::AllocError;

use super::end::{End, FreedBy, Role, Way, costs};
use super::skbs::Skbs;
use super::turns::{Ends, take_turns};
use crate::load::plan::Plan;
use crate::load::setup::{PlanError, Setup};
use crate::target::{Message, Target};

/// Limit of the memory that the messages of one socket may take together, in bytes. Source: spec fault.md
/// §4.3, "~208 KiB".
pub(super) const SOCKET_BYTES: u32 = 212_992;

/// Makes the messages of one sender. Each benchmark implements this trait.
pub(super) trait Source: Send {
    /// Allocates the memory of the next message. If `fill` returns an error, the caller frees the memory that
    /// `message` already has.
    fn fill(&mut self, skbs: &Skbs, target: &mut dyn Target, message: &mut Message)
    -> Result<(), AllocError>;

    /// Takes the blocks of received messages that the sender keeps for its next messages.
    fn recycle(&mut self, _message: &mut Message) {}

    /// Frees memory that the sender keeps between messages.
    fn finish(&mut self, _target: &mut dyn Target) {}
}

/// A one-way flow of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Memory of one message, in bytes. The model divides the memory of a socket by this size to limit the
    /// number of messages under way.
    pub(super) message_bytes: u32,
    pub(super) freed_by: FreedBy,
    /// How often a task moves to another CPU, per second; see [`MOVES`](super::turns::MOVES).
    pub(super) moves_per_s: u64,
}

/// Adds a sender and a receiver for each pair of CPUs.
pub(super) fn stream<S: Source + 'static>(
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

/// Sends and receives messages of a [`Source`], one after another.
struct Messages<S> {
    end: End,
    source: S,
}

impl<S: Source> Ends for Messages<S> {
    fn end(&self) -> &End {
        &self.end
    }

    fn free_returned(&mut self, target: &mut dyn Target) {
        let Self { end, source } = self;
        end.free_returned(target, |message| source.recycle(message));
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
