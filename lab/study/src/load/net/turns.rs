//! Exchanges the roles of sender and receiver. On a real machine tasks move between CPUs, so a CPU is
//! sometimes the sender and sometimes the receiver of a flow.
//!
//! In the model a worker stays on its CPU. Instead of moving to another CPU, two workers exchange their
//! roles. Each direction of a flow has its own socket, so no worker receives its own messages.

use super::end::{End, Role};
use crate::load::setup::Parameter;
use crate::target::{Message, Target};

/// Largest number of moves per second. With more moves, there would be no time to send a message between two
/// moves.
pub(super) const MOVES_MAX: u64 = 10_000;
pub(super) const MOVES: Parameter = Parameter {
    key: "moves_per_s",
    default: 10,
    min: 0,
    meaning: "times a second that the system moves a task to another CPU, where it may use the page sets of its peer; \
              0 for never, 10000 at most",
    source: "recording k612_8c_unix_stream (Linux 6.12, two streams on 8 CPUs): 39 to 61 moves of each task in 4.3 s",
};

/// One worker of a flow, which can send and receive.
pub(super) trait Ends {
    fn end(&self) -> &End;

    /// Frees the memory that the receiver has sent back.
    fn free_returned(&mut self, target: &mut dyn Target) {
        self.end().free_returned(target, |_| ());
    }

    /// Tries to send a message.
    fn send(&mut self, target: &mut dyn Target);

    /// Handles the received message `first`, and receives further messages that belong to `first`.
    fn receive(&mut self, target: &mut dyn Target, first: Message);

    /// Frees memory that a sender keeps between messages.
    fn finish(&mut self, target: &mut dyn Target);
}

/// Sends or receives until the measured time is over.
pub(super) fn take_turns(target: &mut dyn Target, mut ends: impl Ends, first: Role, moves_per_s: u64) {
    let mut role = first;
    let (forth, back) = (ends.end().forth, ends.end().back);
    loop {
        let is_over = match role {
            Role::Sender => send_until_moved(target, &mut ends, moves_per_s),
            Role::Receiver => receive_until_moved(target, &mut ends),
        };
        if is_over {
            break;
        }
        role = if role == Role::Sender { Role::Receiver } else { Role::Sender };
    }
    target.close(forth.socket);
    back.returned.into_iter().for_each(|returned| target.close(returned));
    while let Some(message) = forth.returned.and_then(|returned| target.receive(returned)) {
        ends.end().skbs.release(target, message);
    }
    ends.finish(target);
    ends.end().skbs.leave(target);
}

/// Returns the message that tells the other worker to exchange roles.
fn exchange() -> Message {
    Message { bytes: u64::MAX, ..Message::default() }
}

/// Sends until the roles are exchanged, or until the measured time is over. Returns whether the measured time
/// is over.
fn send_until_moved(target: &mut dyn Target, ends: &mut impl Ends, moves_per_s: u64) -> bool {
    let until_ns = target.now_ns().saturating_add(stay_ns(target, moves_per_s));
    while target.running() {
        ends.free_returned(target);
        if target.now_ns() >= until_ns {
            target.send(ends.end().forth.socket, exchange());
            return false;
        }
        ends.send(target);
    }
    true
}

/// Receives until the roles are exchanged, or until the measured time is over. Returns whether the measured
/// time is over.
fn receive_until_moved(target: &mut dyn Target, ends: &mut impl Ends) -> bool {
    while let Some(message) = target.receive(ends.end().back.socket) {
        if message == exchange() {
            return false;
        }
        ends.receive(target, message);
    }
    true
}

/// Draws the time that a CPU keeps its role, from 0 to twice the average. In half of all moves, the arriving
/// task has the same role as the leaving task. So the average time in one role is twice the time between two
/// moves.
fn stay_ns(target: &mut dyn Target, moves_per_s: u64) -> u64 {
    match 2_000_000_000_u64.checked_div(moves_per_s) {
        Some(average_ns) => target.random() % (2 * average_ns).max(1),
        None => u64::MAX,
    }
}
