//! Finds the length of a recording, even if the clock was set during the recording, or if the time of an
//! event is wrong.
//!
//! All commands take the length of a recording from [`TimeCounter`]. The length is the time from the earliest
//! event to the latest event, without gaps that do not count.
//!
//! - A gap of more than a second counts only if all events before the gap were also read before all events
//!   after the gap. If some events before the gap were read later, the clock was set, or the time of an event
//!   is wrong.
//! - A gap may lie between a single event and at least ten other events. The gap does not count if it is at
//!   least a minute long, and at least ten times as long as the time of the other events. The time of the
//!   single event is then taken to be wrong. Readers that sort events by time put an event with a wrong time
//!   at one end of the recording.

use pageset_trace::Event;

/// Events with at most this time between them belong to one piece, in whatever order the events were read.
const APART_NS: u64 = 1_000_000_000;
/// A gap between a single event and all other events counts if the gap is shorter than this time.
const ALONE_NS_MIN: u64 = 60 * 1_000_000_000;
/// A gap between a single event and all other events counts if the gap is shorter than `ALONE_TIMES` times
/// the time of the other events.
const ALONE_TIMES: u64 = 10;
/// A gap between a single event and all other events counts if there are fewer than `OTHERS_MIN` other
/// events.
const OTHERS_MIN: u64 = 10;
/// Maximum number of pieces. If there are more pieces, two neighbouring pieces with a small gap are joined.
/// Pieces that were read one before the other are joined first.
const PIECES_MAX: usize = 64;

/// The length of a recording, and the times of its first and last events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedTime {
    /// Length of the recording.
    pub duration_ns: u64,
    /// Time of the earliest event, apart from the events in [`astray`](Self::astray).
    pub first_ns: u64,
    /// Time of the latest event, apart from the events in [`astray`](Self::astray).
    pub last_ns: u64,
    /// Number of events before `first_ns` and after `last_ns`. A gap that does not count separates such
    /// events from the largest part of the recording.
    pub astray: u64,
    /// Time of the earliest of all events.
    pub earliest_ns: u64,
    /// Time of the latest of all events.
    pub latest_ns: u64,
}

impl RecordedTime {
    /// Length of the recording in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// Returns a sentence about the events that [`astray`](Self::astray) counts, or `None` if `astray` is 0.
    #[must_use]
    pub fn astray_sentence(&self) -> Option<String> {
        let seconds = |from: u64, to: u64| (to - from) as f64 / 1e9;
        let ends = [
            (self.earliest_ns < self.first_ns)
                .then(|| format!("{:.1} s before", seconds(self.earliest_ns, self.first_ns))),
            (self.last_ns < self.latest_ns)
                .then(|| format!("{:.1} s after", seconds(self.last_ns, self.latest_ns))),
        ];
        let ends: Vec<_> = ends.into_iter().flatten().collect();
        let (events, have) =
            if self.astray == 1 { ("event", "has a time") } else { ("events", "have times") };
        (self.astray > 0).then(|| {
            format!(
                "The clock was set while recording, or times are wrong: {} {events} {have} up to {} all others. \
The length of the recording does not include the time between them.",
                self.astray,
                ends.join(" and ")
            )
        })
    }
}

/// Events without a large gap between them.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first_ns: u64,
    last_ns: u64,
    events: u64,
    /// Number of events that were read before the first event of this piece.
    read_before: u64,
    /// Number of events that were read up to the last event of this piece.
    read_until: u64,
}

impl Piece {
    fn reaches(&self, ns: u64) -> bool {
        ns >= self.first_ns.saturating_sub(APART_NS) && ns <= self.last_ns.saturating_add(APART_NS)
    }

    fn join(&mut self, other: &Self) {
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.events += other.events;
        self.read_before = self.read_before.min(other.read_before);
        self.read_until = self.read_until.max(other.read_until);
    }

    fn is_read_before(&self, later: &Self) -> bool {
        self.read_until <= later.read_before
    }

    fn gap_ns(&self, later: &Self) -> u64 {
        later.first_ns.saturating_sub(self.last_ns)
    }
}

/// Finds [`RecordedTime`] from the events of a recording, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct TimeCounter {
    /// The pieces of the recording, sorted by time, without overlaps.
    pieces: Vec<Piece>,
    /// The piece of the event that was read last.
    current: usize,
    read: u64,
}

impl TimeCounter {
    /// Takes the times of events, in the order of the recording.
    pub fn record(&mut self, events: &[Event]) {
        let Some(first) = events.first() else { return };
        let mut ends = (first.ts_ns, first.ts_ns);
        for event in events {
            ends = (ends.0.min(event.ts_ns), ends.1.max(event.ts_ns));
        }
        // Nearly always, all events of a block continue the current piece.
        if self.pieces.get(self.current).is_some_and(|piece| piece.reaches(ends.0) && piece.reaches(ends.1)) {
            return self.add(ends, events.len() as u64);
        }
        events.iter().for_each(|event| self.add((event.ts_ns, event.ts_ns), 1));
    }

    /// Adds `events` events between these two times, which belong to one piece.
    fn add(&mut self, (first_ns, last_ns): (u64, u64), events: u64) {
        let read_before = self.read;
        self.read += events;
        let piece = Piece { first_ns, last_ns, events, read_before, read_until: self.read };
        let current = self.pieces.get_mut(self.current);
        if let Some(current) = current.filter(|current| current.reaches(first_ns)) {
            current.join(&piece);
        } else {
            let at = self.pieces.partition_point(|piece| piece.last_ns.saturating_add(APART_NS) < first_ns);
            match self.pieces.get_mut(at).filter(|piece| piece.reaches(first_ns)) {
                Some(found) => found.join(&piece),
                None => self.pieces.insert(at, piece),
            }
            self.current = at;
        }
        if self.pieces.len() > 1 {
            self.join_neighbours();
        }
    }

    /// Joins the current piece with the pieces that now touch it, and limits the number of pieces.
    fn join_neighbours(&mut self) {
        let at = self.current;
        if at + 1 < self.pieces.len() && self.pieces[at].gap_ns(&self.pieces[at + 1]) <= APART_NS {
            self.join_with_next(at);
        }
        if at > 0 && self.pieces[at - 1].gap_ns(&self.pieces[at]) <= APART_NS {
            self.join_with_next(at - 1);
        }
        if self.pieces.len() > PIECES_MAX {
            let badness = |at: &usize| {
                let (piece, next) = (&self.pieces[*at], &self.pieces[at + 1]);
                (!piece.is_read_before(next), piece.gap_ns(next))
            };
            if let Some(at) = (0..self.pieces.len() - 1).min_by_key(badness) {
                self.join_with_next(at);
            }
        }
    }

    fn join_with_next(&mut self, at: usize) {
        let next = self.pieces.remove(at + 1);
        self.pieces[at].join(&next);
        self.current -= usize::from(self.current > at);
    }

    /// Returns the time of all events so far, or `None` without events.
    #[must_use]
    pub fn time(&self) -> Option<RecordedTime> {
        let (earliest, latest) = (self.pieces.first()?, self.pieces.last()?);
        let [from_ns, to_ns] = self.ends_without_single_events();
        let mut parts: Vec<Piece> = Vec::new();
        for piece in &self.pieces {
            let is_alone = |part: &Piece| part.last_ns < from_ns || piece.first_ns > to_ns;
            match parts.last_mut().filter(|part| part.is_read_before(piece) && !is_alone(part)) {
                Some(part) => part.join(piece),
                None => parts.push(*piece),
            }
        }
        // If several parts have the most events, use the earliest of these parts.
        let main = parts.iter().rev().max_by_key(|part| part.events)?;
        Some(RecordedTime {
            duration_ns: parts.iter().map(|part| part.last_ns - part.first_ns).sum(),
            first_ns: main.first_ns,
            last_ns: main.last_ns,
            astray: self.read - main.events,
            earliest_ns: earliest.first_ns,
            latest_ns: latest.last_ns,
        })
    }

    /// Returns the earliest and the latest time that belong to the recording. The earliest time is 0 unless a
    /// single event lies far before all other events. The latest time is `u64::MAX` unless a single event
    /// lies far after all other events.
    fn ends_without_single_events(&self) -> [u64; 2] {
        let pieces = self.pieces.as_slice();
        let [first, last] = [pieces.first(), pieces.last()].map(|end| end.is_some_and(|end| end.events == 1));
        let others = pieces.get(usize::from(first)..pieces.len() - usize::from(last)).unwrap_or_default();
        let (Some(from), Some(to)) = (others.first(), others.last()) else { return [0, u64::MAX] };
        if others.iter().map(|piece| piece.events).sum::<u64>() < OTHERS_MIN {
            return [0, u64::MAX];
        }
        let is_far = |gap_ns: u64| {
            gap_ns >= (to.last_ns - from.first_ns).saturating_mul(ALONE_TIMES).max(ALONE_NS_MIN)
        };
        [
            if first && is_far(pieces[0].gap_ns(from)) { from.first_ns } else { 0 },
            if last && is_far(to.gap_ns(&pieces[pieces.len() - 1])) { to.last_ns } else { u64::MAX },
        ]
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::EventKind;

    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;

    /// Finds the time of a recording whose events have these times. The events are read in blocks of `block`
    /// events.
    fn time(times_ns: impl IntoIterator<Item = u64>, block: usize) -> RecordedTime {
        let event = |ns| Event::new(EventKind::MmPageAlloc, ns, 0);
        let events: Vec<_> = times_ns.into_iter().map(event).collect();
        let mut counter = TimeCounter::default();
        events.chunks(block).for_each(|events| counter.record(events));
        assert!(counter.pieces.len() <= PIECES_MAX);
        counter.time().unwrap()
    }

    /// Returns times of events from `from_s` to `to_s`, 100 events a second.
    fn steady(from_s: u64, to_s: u64) -> impl Iterator<Item = u64> {
        (from_s * 100..=to_s * 100).map(|hundredths| hundredths * S / 100)
    }

    fn seconds(times_ns: &[u64]) -> (u64, u64) {
        let found = [1, 7, 10_000].map(|block| time(times_ns.iter().copied(), block));
        assert!(found.iter().all(|of| *of == found[0]), "the size of blocks matters: {found:?}");
        (found[0].duration_ns / S, found[0].astray)
    }

    #[test]
    fn a_recording_takes_as_long_as_from_its_first_event_to_its_last() {
        assert!(TimeCounter::default().time().is_none());
        assert_eq!(seconds(&[5]), (0, 0));
        assert_eq!(seconds(&[S, 200 * S]), (199, 0));
        assert_eq!(seconds(&steady(100, 110).collect::<Vec<_>>()), (10, 0));
        // A long time without events counts, at an end and in the middle.
        let pauses = [0..=3, 100..=103, 900..=903].into_iter().flatten().map(|s| s * S);
        assert_eq!(seconds(&pauses.collect::<Vec<_>>()), (903, 0));
        // A recording with many pauses has its whole length.
        assert_eq!(seconds(&(0..1000).map(|i| i * 2 * S).collect::<Vec<_>>()), (1998, 0));
        // Events that are a little out of order do not change the length.
        let shuffled = steady(100, 110).map(|ns| ns ^ (7 * S / 100));
        assert_eq!(seconds(&shuffled.collect::<Vec<_>>()).1, 0);
    }

    #[test]
    fn wrong_times_of_single_events_do_not_count_wherever_they_are_read() {
        let right: Vec<_> = steady(2 * 3600, 2 * 3600 + 10).collect();
        for wrong_ns in [HOUR, 3 * HOUR, 100 * HOUR] {
            for at in [0, 1, 500, right.len() - 1, right.len()] {
                let mut all = right.clone();
                all.insert(at, wrong_ns);
                assert_eq!(seconds(&all), (10, 1), "{wrong_ns} at {at}");
            }
        }
        let mut both = right.clone();
        both.insert(300, HOUR);
        both.insert(700, 3 * HOUR);
        assert_eq!(seconds(&both), (10, 2));
        both.sort_unstable();
        assert_eq!(seconds(&both), (10, 2));
        let sentence = time(both, 100).astray_sentence().unwrap();
        assert!(
            sentence.contains("2 events have times up to 3600.0 s before and 3590.0 s after"),
            "{sentence}"
        );
        assert_eq!(time(right, 100).astray_sentence(), None);
    }

    #[test]
    fn a_clock_that_was_set_stretches_nothing() {
        let (early, late): (Vec<_>, Vec<_>) = (steady(0, 10).collect(), steady(3600, 3605).collect());
        let back = [late.clone(), early.clone()].concat();
        assert_eq!(seconds(&back), (15, 501));
        let back_and_forth = [early.clone(), late.clone(), steady(12, 20).collect()].concat();
        assert_eq!(seconds(&back_and_forth), (25, 501));
        // If the clock was set forward, the recording looks like one with a pause.
        assert_eq!(seconds(&[early, late].concat()), (3605, 0));
        // Two CPUs have the same events, and the clock of one CPU is five seconds late. The recording becomes
        // five seconds longer, not twice as long.
        let two = steady(100, 110).zip(steady(95, 105)).flat_map(|(a, b)| [a, b]);
        assert_eq!(seconds(&two.collect::<Vec<_>>()), (15, 0));
    }

    #[test]
    fn any_times_are_counted_in_bounded_memory() {
        let mut state = 1_u64;
        let wild: Vec<_> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        })
        .take(5000)
        .chain([0, u64::MAX])
        .collect();
        let found = time(wild, 100);
        assert!(found.first_ns <= found.last_ns && found.astray < 5002, "{found:?}");
        assert_eq!((found.earliest_ns, found.latest_ns), (0, u64::MAX));
    }
}
