//! The rings of all CPUs become one order, by time, with bounded memory.
//!
//! Rings are read in rounds. The clock is read before a round: what is older was in its ring when the round began, so
//! after the round it is complete, and is handed on. What is younger waits for the next round.

use std::io;

use pageset_trace::Event;

use crate::clock::now_ns;
use crate::decode::Decoder;
use crate::losses::Losses;
use crate::ring::Ring;
use crate::ring_page::PageLayout;

/// An event has its time a little before it can be read. A CPU that is interrupted between the two, as a virtual one may
/// be, makes it late; such events are kept out of order and counted. Guess.
const LATE_NS: u64 = 5_000_000;
/// Events of a CPU that may wait for those of others before it is read on.
const WAITING_MAX: usize = 1 << 16;

/// Reads all rings.
pub(crate) struct Merger {
    rings: Vec<Ring>,
    layout: PageLayout,
    decoder: Decoder,
    pub(crate) losses: Losses,
    /// Time of the last event that was handed on.
    last_ns: u64,
}

impl Merger {
    pub(crate) fn new(rings: Vec<Ring>, layout: PageLayout, decoder: Decoder) -> Self {
        Self { rings, layout, decoder, losses: Losses::default(), last_ns: 0 }
    }

    /// Reads each ring once, and puts what is complete into `out`, by time. Returns the pages of the ring of which most
    /// were read.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn round(&mut self, out: &mut Vec<Event>) -> io::Result<usize> {
        let mut until_ns = now_ns().saturating_sub(LATE_NS);
        let mut pages_max = 0;
        for ring in &mut self.rings {
            let is_ahead = ring.waiting() > WAITING_MAX;
            if is_ahead {
                // It will be read when the others have come as far.
                until_ns = until_ns.min(ring.last_ns);
                continue;
            }
            let reading = ring.read(&self.layout, &self.decoder, &mut self.losses)?;
            if reading.is_cut {
                until_ns = until_ns.min(ring.last_ns);
            }
            pages_max = pages_max.max(reading.pages);
        }
        self.hand_on(until_ns, out);
        Ok(pages_max)
    }

    /// Whether a ring waits for others to come as far.
    pub(crate) fn is_behind(&self) -> bool {
        self.rings.iter().any(|ring| ring.waiting() > WAITING_MAX)
    }

    /// Puts all that waits into `out`: for when no more events come.
    pub(crate) fn finish(&mut self, out: &mut Vec<Event>) {
        self.hand_on(u64::MAX, out);
    }

    fn hand_on(&mut self, until_ns: u64, out: &mut Vec<Event>) {
        let start = out.len();
        for ring in &mut self.rings {
            ring.hand_on(until_ns, out);
        }
        // Made of sorted runs, which this sort finds.
        out[start..].sort_by_key(|event| event.ts_ns);
        for event in &out[start..] {
            self.losses.out_of_order += u64::from(event.ts_ns < self.last_ns);
            self.last_ns = event.ts_ns;
        }
    }
}
