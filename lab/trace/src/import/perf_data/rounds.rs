//! Sorts samples of several CPUs by time.
//!
//! In a round, perf copies the rings of all CPUs one after another, and then writes a mark. After a round, no
//! event arrives that is older than the youngest event of the round before this round.

use std::collections::VecDeque;

use crate::event::Event;

/// Maximum number of waiting events, which take 128 MiB. Two rounds of large rings have fewer events than
/// this maximum.
const WAITING_MAX: usize = 4 << 20;

/// Holds events back until no older event can arrive, or until `WAITING_MAX` events wait.
#[derive(Default)]
pub(super) struct Rounds {
    waiting: Vec<Event>,
    ready: VecDeque<Event>,
    /// Time of the youngest event so far. The field `youngest_before_ns` has the time of the youngest event
    /// in the rounds that are finished.
    youngest_ns: u64,
    youngest_before_ns: u64,
    last_ns: u64,
    /// Number of delivered events whose time is earlier than the time of the event delivered immediately
    /// before.
    pub(super) out_of_order: u64,
}

impl Rounds {
    #[inline]
    pub(super) fn add(&mut self, event: Event) {
        self.youngest_ns = self.youngest_ns.max(event.ts_ns);
        self.waiting.push(event);
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.sort_by_key(|event| event.ts_ns);
            self.ready.extend(self.waiting.drain(..WAITING_MAX / 2));
        }
    }

    pub(super) fn finish_round(&mut self) {
        self.hand_on(self.youngest_before_ns);
        self.youngest_before_ns = self.youngest_ns;
    }

    pub(super) fn finish(&mut self) {
        self.hand_on(u64::MAX);
    }

    fn hand_on(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|event| event.ts_ns);
        let count = self.waiting.partition_point(|event| event.ts_ns <= until_ns);
        self.ready.extend(self.waiting.drain(..count));
    }

    /// Whether no event waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is an event that is no longer held back.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the next event that is no longer held back.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        let event = self.ready.pop_front()?;
        self.out_of_order += u64::from(event.ts_ns < self.last_ns);
        self.last_ns = event.ts_ns;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    fn times(rounds: &mut Rounds) -> Vec<u64> {
        std::iter::from_fn(|| rounds.next()).map(|event| event.ts_ns).collect()
    }

    fn add(rounds: &mut Rounds, times: impl IntoIterator<Item = u64>) {
        times.into_iter().for_each(|ts_ns| rounds.add(Event::new(EventKind::MmPageFree, ts_ns, 0)));
    }

    #[test]
    fn what_may_be_overtaken_waits() {
        let mut rounds = Rounds::default();
        add(&mut rounds, [10, 30, 20]);
        rounds.finish_round();
        assert_eq!(times(&mut rounds), [0; 0]);
        add(&mut rounds, [25, 50, 40]);
        rounds.finish_round();
        assert_eq!(times(&mut rounds), [10, 20, 25, 30]);
        add(&mut rounds, [45]);
        rounds.finish();
        assert_eq!(times(&mut rounds), [40, 45, 50]);
        assert!(rounds.is_empty() && rounds.out_of_order == 0);
    }

    #[test]
    fn without_rounds_memory_is_bounded_and_disorder_is_counted() {
        let mut rounds = Rounds::default();
        add(&mut rounds, (0..WAITING_MAX as u64).map(|at| at + 10));
        assert_eq!(times(&mut rounds).len(), WAITING_MAX / 2);
        add(&mut rounds, [5]);
        rounds.finish();
        assert_eq!(times(&mut rounds).len(), WAITING_MAX / 2 + 1);
        assert_eq!(rounds.out_of_order, 1);
    }
}
