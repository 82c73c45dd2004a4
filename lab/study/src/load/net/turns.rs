//! Who sends and who receives: tasks move between CPUs, so that a CPU has now the one and now the other end of a flow.
//!
//! A worker stays on its CPU. So two tasks that exchange their CPUs are two workers that exchange their roles. Each way has a
//! socket of its own, so that nobody receives what it sent itself.

use super::end::{End, Role};
use crate::load::setup::Parameter;
use crate::target::{Message, Target};

/// Moves that leave time to send something between them.
pub(super) const MOVES_MAX: u64 = 10_000;
pub(super) const MOVES: Parameter = Parameter {
    key: "moves_per_s",
    default: 10,
    min: 0,
    meaning: "times a second that the system moves a task to another CPU, where it may meet the page sets of its other end; \
              0 for never, 10000 at most",
    source: "recording k612_8c_unix_stream (Linux 6.12, two streams on 8 CPUs): 39 to 61 moves of each task in 4.3 s",
};

/// What the ends of a flow do.
pub(super) trait Ends {
    fn end(&self) -> &End;

    /// Sends something, or fails to.
    fn send(&mut self, target: &mut dyn Target);

    /// Receives something, whose first message has come.
    fn receive(&mut self, target: &mut dyn Target, first: Message);

    /// Frees what a sender keeps between messages.
    fn finish(&mut self, target: &mut dyn Target);
}

/// Sends or receives until the time is over.
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

/// Says in place of a message that the ends exchange their CPUs.
fn exchange() -> Message {
    Message { bytes: u64::MAX, ..Message::default() }
}

/// Returns whether the time is over; else the ends exchange their CPUs.
fn send_until_moved(target: &mut dyn Target, ends: &mut impl Ends, moves_per_s: u64) -> bool {
    let until_ns = target.now_ns().saturating_add(stay_ns(target, moves_per_s));
    while target.running() {
        ends.end().free_returned(target);
        if target.now_ns() >= until_ns {
            target.send(ends.end().forth.socket, exchange());
            return false;
        }
        ends.send(target);
    }
    true
}

/// Returns whether the time is over; else the ends exchange their CPUs.
fn receive_until_moved(target: &mut dyn Target, ends: &mut impl Ends) -> bool {
    while let Some(message) = target.receive(ends.end().back.socket) {
        if message == exchange() {
            return false;
        }
        ends.receive(target, message);
    }
    true
}

/// How long a CPU has one role: half of the tasks that come next have the same as the one that left. Twice the average at
/// most.
fn stay_ns(target: &mut dyn Target, moves_per_s: u64) -> u64 {
    match 2_000_000_000_u64.checked_div(moves_per_s) {
        Some(average_ns) => target.random() % (2 * average_ns).max(1),
        None => u64::MAX,
    }
}
