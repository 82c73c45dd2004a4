//! A bounded queue of messages between threads.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Condvar, Mutex};

use crate::load::plan::ChannelSpec;
use crate::target::{Message, Received};

/// Number of times that a thread looks at a channel before it sleeps. Guess: 2000 looks take some 10 us,
/// longer than waking a thread. So threads seldom sleep while messages stream, and the measured time contains
/// few wake-ups.
const SPINS: u32 = 2000;

/// Bit of [`Channel::seen`] that is set while the queue has senders.
const OPEN: usize = 1 << 32;

/// A queue that threads send to and receive from.
#[derive(Debug)]
pub(super) struct Channel {
    capacity: usize,
    state: Mutex<State>,
    /// The number of messages in the queue in the low bits, and the bit [`OPEN`]. Threads read `seen` without
    /// the queue's lock.
    seen: AtomicUsize,
    has_room: Condvar,
    has_message: Condvar,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Message>,
    senders: u32,
}

impl Channel {
    pub(super) fn new(spec: &ChannelSpec) -> Self {
        let queue = VecDeque::with_capacity(spec.capacity as usize);
        Self {
            capacity: (spec.capacity as usize).max(1),
            state: Mutex::new(State { queue, senders: spec.senders }),
            seen: AtomicUsize::new(if spec.senders > 0 { OPEN } else { 0 }),
            has_room: Condvar::new(),
            has_message: Condvar::new(),
        }
    }

    pub(super) fn send(&self, message: Message) {
        let mut message = message;
        for _ in 0..SPINS {
            if self.seen.load(Relaxed) & !OPEN >= self.capacity {
                std::hint::spin_loop();
                continue;
            }
            match self.try_send(message) {
                Ok(()) => return,
                Err(returned) => message = returned,
            }
        }
        let mut state = self.state.lock();
        self.has_room.wait_while(&mut state, |state| state.queue.len() >= self.capacity);
        state.queue.push_back(message);
        self.show(&state);
        self.has_message.notify_one();
    }

    pub(super) fn try_send(&self, message: Message) -> Result<(), Message> {
        let mut state = self.state.lock();
        if state.queue.len() >= self.capacity {
            return Err(message);
        }
        state.queue.push_back(message);
        self.show(&state);
        self.has_message.notify_one();
        Ok(())
    }

    pub(super) fn receive(&self) -> Option<Message> {
        for _ in 0..SPINS {
            if self.seen.load(Relaxed) == OPEN {
                std::hint::spin_loop();
                continue;
            }
            match self.try_receive() {
                Received::Message(message) => return Some(message),
                Received::Closed => return None,
                Received::Empty => {}
            }
        }
        let mut state = self.state.lock();
        self.has_message.wait_while(&mut state, |state| state.queue.is_empty() && state.senders > 0);
        let message = state.queue.pop_front();
        self.show(&state);
        self.has_room.notify_one();
        message
    }

    pub(super) fn try_receive(&self) -> Received {
        let mut state = self.state.lock();
        match state.queue.pop_front() {
            Some(message) => {
                self.show(&state);
                self.has_room.notify_one();
                Received::Message(message)
            }
            None if state.senders > 0 => Received::Empty,
            None => Received::Closed,
        }
    }

    fn show(&self, state: &State) {
        self.seen.store(state.queue.len() | if state.senders > 0 { OPEN } else { 0 }, Relaxed);
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.senders = state.senders.saturating_sub(1);
        self.show(&state);
        if state.senders == 0 {
            self.has_message.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: u64) -> Message {
        Message { bytes, ..Message::default() }
    }

    #[test]
    fn messages_come_in_order_until_all_senders_have_closed() {
        let channel = Channel::new(&ChannelSpec { capacity: 2, senders: 1 });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..100).for_each(|number| channel.send(message(number)));
                channel.close();
            });
            (0..100).for_each(|number| assert_eq!(channel.receive(), Some(message(number))));
            assert_eq!(channel.receive(), None);
        });
        assert_eq!(channel.try_receive(), Received::Closed);
    }

    #[test]
    fn a_full_channel_gives_the_message_back() {
        let channel = Channel::new(&ChannelSpec { capacity: 1, senders: 1 });
        assert_eq!(channel.try_receive(), Received::Empty);
        assert_eq!(channel.try_send(message(1)), Ok(()));
        assert_eq!(channel.try_send(message(2)), Err(message(2)));
        assert_eq!(channel.try_receive(), Received::Message(message(1)));
    }
}
