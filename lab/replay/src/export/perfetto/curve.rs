//! A counter that may change with each event, but whose values are written to the file less often.

use std::io;

use super::packets::{Packets, Sequence, TrackId, What};

/// The shortest time between two written values, except at refills and drains. The value of 1 us is a guess.
/// A busy CPU allocates every few 100 ns. Users seldom look at less than a millisecond of the file.
const GAP_NS: u64 = 1_000;
/// The shortest time between two written values of a counter that only grows.
const RARE_GAP_NS: u64 = 1_000_000;

/// A counter.
#[derive(Debug)]
pub(super) struct Curve {
    track: TrackId,
    value: Option<i64>,
    written: Option<i64>,
    written_ns: Option<u64>,
    gap_ns: u64,
}

impl Curve {
    /// Makes a counter that changes often, such as the pages in a page set.
    pub(super) const fn new(track: TrackId) -> Self {
        Self { track, value: None, written: None, written_ns: None, gap_ns: GAP_NS }
    }

    /// Makes a counter that only grows. Values of such a counter are written at most once a millisecond.
    pub(super) const fn rare(track: TrackId) -> Self {
        Self { gap_ns: RARE_GAP_NS, ..Self::new(track) }
    }

    pub(super) const fn value(&self) -> Option<i64> {
        self.value
    }

    /// Sets the counter's value. Writes the value if the value has changed, and if the last value was written
    /// at least `gap_ns` ago.
    #[inline]
    pub(super) fn note(
        &mut self,
        packets: &mut Packets<'_>,
        sequence: Sequence,
        at_ns: u64,
        value: i64,
    ) -> io::Result<()> {
        self.value = Some(value);
        if self.written_ns.is_some_and(|written_ns| at_ns.abs_diff(written_ns) < self.gap_ns) {
            return Ok(());
        }
        self.write(packets, sequence, at_ns)
    }

    /// Sets the counter's value, but does not write the value yet.
    #[inline]
    pub(super) fn hold(&mut self, value: i64) {
        self.value = Some(value);
    }

    /// Writes the counter's current value, unless this value is written already.
    pub(super) fn write(
        &mut self,
        packets: &mut Packets<'_>,
        sequence: Sequence,
        at_ns: u64,
    ) -> io::Result<()> {
        let Some(value) = self.value.filter(|value| self.written != Some(*value)) else { return Ok(()) };
        (self.written, self.written_ns) = (Some(value), Some(at_ns));
        packets.event(sequence, at_ns, self.track, What::Value(value), &[])
    }
}
