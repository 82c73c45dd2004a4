//! The agenda: a queue of the times at which CPUs continue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time, a sequence number and a CPU, packed into one integer so that one comparison orders two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u128);

/// Number of bits of an entry that hold the CPU's number. A machine file has at most 8192 CPUs.
const CPU_BITS: u32 = 16;
/// Number of bits of an entry that hold the sequence number. A simulation would take years to make 2^48
/// entries.
const SEQUENCE_BITS: u32 = 48;

impl Entry {
    pub(crate) fn time(self) -> u64 {
        (self.0 >> (CPU_BITS + SEQUENCE_BITS)) as u64
    }

    pub(crate) fn cpu(self) -> u32 {
        (self.0 & ((1 << CPU_BITS) - 1)) as u32
    }

    pub(crate) fn sequence(self) -> u64 {
        (self.0 >> CPU_BITS) as u64 & ((1 << SEQUENCE_BITS) - 1)
    }
}

/// The entries of the agenda, the earliest first. Entries with equal times are in the order of their
/// addition.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

impl Agenda {
    fn entry(&mut self, time: u64, cpu: u32) -> Entry {
        self.sequence += 1;
        let sequence = u128::from(self.sequence) << CPU_BITS;
        Entry(u128::from(time) << (CPU_BITS + SEQUENCE_BITS) | sequence | u128::from(cpu))
    }

    /// Adds an entry that lets `cpu` continue at `time`. Returns the entry's sequence number.
    pub(crate) fn push(&mut self, time: u64, cpu: u32) -> u64 {
        let entry = self.entry(time, cpu);
        self.entries.push(Reverse(entry));
        self.sequence
    }

    /// Adds an entry for `cpu` at `time`, and then removes the earliest entry. Returns the added entry's
    /// sequence number, and the removed entry. One `exchange` is faster than a `push` and a `pop`.
    pub(crate) fn exchange(&mut self, time: u64, cpu: u32) -> (u64, Entry) {
        let entry = self.entry(time, cpu);
        match self.entries.peek_mut() {
            Some(mut first) if first.0 < entry => {
                let earliest = std::mem::replace(&mut first.0, entry);
                (self.sequence, earliest)
            }
            _ => (self.sequence, entry),
        }
    }

    /// Removes the earliest entry from the agenda, and returns this entry.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    /// Time of the earliest entry; `u64::MAX` if the agenda has no entry.
    pub(crate) fn earliest(&self) -> u64 {
        self.entries.peek().map_or(u64::MAX, |Reverse(entry)| entry.time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_order_of_time_then_of_entering() {
        let mut agenda = Agenda::default();
        for (time, cpu) in [(5, 1), (3, 2), (5, 0), (3, 7)] {
            agenda.push(time, cpu);
        }
        assert_eq!(agenda.earliest(), 3);
        assert_eq!(agenda.exchange(4, 9).1.cpu(), 2);
        assert_eq!(
            agenda.exchange(1, 8).1.cpu(),
            8,
            "an entry earlier than all entries of the agenda is returned at once"
        );
        let order: Vec<_> =
            std::iter::from_fn(|| agenda.pop()).map(|entry| (entry.time(), entry.cpu())).collect();
        assert_eq!(order, [(3, 7), (4, 9), (5, 1), (5, 0)]);
        assert_eq!(agenda.earliest(), u64::MAX);
    }
}
