//! First-in-first-out queues between virtual CPUs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::cpu::VirtualCpu;
use crate::time::Time;

/// A bounded queue that virtual CPUs send to and receive from. A clone of a `Channel` refers to the same
/// queue as the original.
///
/// A message arrives at the time on its sender's clock. The receiver pays for two cache lines from the
/// sender: one for the queue's entry and one for the first bytes of the message. These costs are a guess. A
/// CPU that waits for a message or for room is idle. A CPU that another CPU wakes continues after the
/// machine's wake-up time.
#[derive(Debug)]
pub struct Channel<T>(Rc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    messages: RefCell<VecDeque<Sent<T>>>,
    capacity: usize,
    senders: Cell<u32>,
    /// CPUs that wait for room in the queue.
    waiting_to_send: RefCell<VecDeque<u32>>,
    /// CPUs that wait for a message in the queue.
    waiting_to_receive: RefCell<VecDeque<u32>>,
}

#[derive(Debug)]
struct Sent<T> {
    message: T,
    from: u32,
}

/// The result of an attempt to receive a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReceived<T> {
    /// The first message of the channel, which is now removed from the channel.
    Message(T),
    /// The channel is empty now.
    Empty,
    /// The channel is empty and will stay empty, because all senders have closed it.
    Closed,
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Channel<T> {
    /// Makes an empty channel for at most `capacity` messages (at least one) from `senders` CPUs.
    #[must_use]
    pub fn new(capacity: usize, senders: u32) -> Self {
        Self(Rc::new(Inner {
            messages: RefCell::default(),
            capacity: capacity.max(1),
            senders: Cell::new(senders),
            waiting_to_send: RefCell::default(),
            waiting_to_receive: RefCell::default(),
        }))
    }

    /// Sends a message. Waits while the channel is full.
    pub fn send(&self, cpu: &VirtualCpu, message: T) {
        let mut message = message;
        while let Err(returned) = self.try_send(cpu, message) {
            message = returned;
            self.0.waiting_to_send.borrow_mut().push_back(cpu.engine().cpu_index());
            cpu.wait_to_be_woken();
        }
    }

    /// Sends a message if the channel has room.
    ///
    /// # Errors
    /// Returns the message if the channel is full.
    pub fn try_send(&self, cpu: &VirtualCpu, message: T) -> Result<(), T> {
        let engine = cpu.engine();
        engine.sync();
        if self.0.messages.borrow().len() >= self.0.capacity {
            return Err(message);
        }
        engine.charge(engine.prices.atomic);
        let from = engine.cpu_index();
        engine.note(engine.cpu().clock.get() ^ u64::from(from) << 32);
        self.0.messages.borrow_mut().push_back(Sent { message, from });
        self.wake_first(cpu, &self.0.waiting_to_receive);
        Ok(())
    }

    /// Takes the first message. Waits while the channel has no message. Returns `None` if the channel is
    /// empty and all senders have closed it.
    pub fn receive(&self, cpu: &VirtualCpu) -> Option<T> {
        loop {
            match self.try_receive(cpu) {
                TryReceived::Message(message) => return Some(message),
                TryReceived::Closed => return None,
                TryReceived::Empty => {
                    self.0.waiting_to_receive.borrow_mut().push_back(cpu.engine().cpu_index());
                    cpu.wait_to_be_woken();
                }
            }
        }
    }

    /// Takes the channel's first message, if the channel has a message.
    pub fn try_receive(&self, cpu: &VirtualCpu) -> TryReceived<T> {
        let engine = cpu.engine();
        engine.sync();
        let first = self.0.messages.borrow_mut().pop_front();
        let Some(Sent { message, from }) = first else {
            return if self.0.senders.get() == 0 { TryReceived::Closed } else { TryReceived::Empty };
        };
        engine.charge(engine.prices.atomic + 2 * engine.line(from, engine.cpu_index()));
        self.wake_first(cpu, &self.0.waiting_to_send);
        TryReceived::Message(message)
    }

    /// Records that one sender will send no more messages on this channel. When the last sender has closed
    /// the channel, waiting receivers stop waiting.
    pub fn close(&self, cpu: &VirtualCpu) {
        cpu.engine().sync();
        self.0.senders.set(self.0.senders.get().saturating_sub(1));
        if self.0.senders.get() == 0 {
            while self.wake_first(cpu, &self.0.waiting_to_receive) {}
        }
    }

    /// Number of messages in the channel.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.messages.borrow().len()
    }

    /// Whether the channel has no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn wake_first(&self, cpu: &VirtualCpu, waiting: &RefCell<VecDeque<u32>>) -> bool {
        let Some(first) = waiting.borrow_mut().pop_front() else { return false };
        let engine = cpu.engine();
        engine.wake(first, Time(engine.cpu().clock.get() + engine.prices.wakeup));
        true
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::CpuId;

    use super::*;
    use crate::{MACHINES, Simulation, Span};

    /// Race: while a receiver waits for a message, the receiver's CPU does its periodic work, which may wait
    /// for a lock. During this periodic work, a sender wakes the receiver and removes the receiver from the
    /// list of waiting receivers. After its periodic work, the receiver must not wait again, because no
    /// sender would wake the receiver. If the receiver waits again, its body never ends.
    #[test]
    fn a_cpu_that_is_woken_during_its_periodic_work_does_not_wait_again() {
        let machine = MACHINES[0].parse();
        let mut simulation =
            Simulation::builder(&machine).cpus(2).duration(Span::from_ms(1)).build().unwrap();
        let channel = Channel::new(1, 1);
        let sender = channel.clone();
        let receive = move |cpu: &VirtualCpu| {
            channel.0.waiting_to_receive.borrow_mut().push_back(cpu.engine().cpu_index());
            // In place of periodic work, this CPU lets time pass, so that other CPUs run before this CPU
            // continues.
            cpu.advance(Span::from_us(10));
            cpu.engine().sync();
            cpu.wait_to_be_woken();
            assert_eq!(channel.try_receive(cpu), TryReceived::Message("hello"));
        };
        let send = move |cpu: &VirtualCpu| {
            cpu.advance(Span::from_us(5));
            sender.send(cpu, "hello");
        };
        simulation.spawn(CpuId(0), receive).unwrap();
        simulation.spawn(CpuId(1), send).unwrap();
        assert!(simulation.run().unwrap().stuck.is_empty());
    }
}
