//! The zone of each frame, and the number of each frame in the tables.

use pageset_core::FrameIndex;

/// Maximum number of frames in stretches with events: 1 TiB of memory. The tables for this number of frames
/// take 6 GiB.
pub(super) const FRAMES_MAX: usize = 1 << 28;
/// Number of frames in a stretch, equal to the number in the largest block. The frames of a stretch have
/// consecutive numbers in the tables.
pub(super) const STRETCH: u64 = 1 << pageset_core::MAX_ORDER;

/// A frame: the number of its zone, and the frame's number in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) zone: usize,
    pub(super) frame: FrameIndex,
}

/// The frames of one zone.
#[derive(Clone, Debug)]
struct Span {
    start: u64,
    end: u64,
    /// For each stretch, the table number of its first frame divided by the stretch's length, plus one. The
    /// value is 0 if no event was about the stretch.
    stretches: Vec<u32>,
}

/// The numbers of frames in the tables.
///
/// The frames of a stretch get table numbers at the first event about one of these frames. The size of the
/// tables therefore depends on the recording, not on the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameNumbers {
    /// One span for each zone, in the order of the zones.
    spans: Vec<Span>,
    /// One frame of each stretch that events were about. The stretches are in the order of their first
    /// events.
    seen: Vec<u64>,
}

impl FrameNumbers {
    /// Adds a zone with the frames from `start` up to `end`.
    pub(super) fn add_zone(&mut self, start: u64, end: u64) {
        let stretches = (end - 1) / STRETCH - start / STRETCH + 1;
        self.spans.push(Span { start, end, stretches: vec![0; stretches as usize] });
    }

    /// Returns how many table numbers are assigned.
    pub(super) fn count(&self) -> usize {
        self.seen.len() * STRETCH as usize
    }

    /// Returns one frame of each stretch with numbers, in the order of the numbers.
    pub(super) fn seen(&self) -> &[u64] {
        &self.seen
    }

    /// Returns the zone of a frame, and the frame's stretch within the zone.
    #[inline]
    fn stretch(&self, pfn: u64) -> Option<(usize, usize)> {
        let zone = self.spans.iter().position(|span| pfn >= span.start && pfn < span.end)?;
        let first = self.spans[zone].start / STRETCH;
        Some((zone, (pfn / STRETCH - first) as usize))
    }

    /// Assigns table numbers to the stretch of a frame, if the frame is in a zone and has no number yet.
    #[inline]
    pub(super) fn see(&mut self, pfn: u64) -> Result<(), String> {
        let Some((zone, stretch)) = self.stretch(pfn) else { return Ok(()) };
        if self.spans[zone].stretches[stretch] == 0 {
            check(self.count() + STRETCH as usize)?;
            self.seen.push(pfn);
            self.spans[zone].stretches[stretch] = self.seen.len() as u32;
        }
        Ok(())
    }

    /// The zone and number of a frame; `None` if the frame is in no zone or has no number yet.
    #[inline]
    pub(super) fn locate(&self, pfn: u64) -> Option<Place> {
        let (zone, stretch) = self.stretch(pfn)?;
        let first = self.spans[zone].stretches[stretch].checked_sub(1)?;
        Some(Place { zone, frame: first * STRETCH as u32 + (pfn % STRETCH) as u32 })
    }

    /// Returns the frame that has a number.
    pub(super) fn pfn(&self, frame: FrameIndex) -> u64 {
        let seen = self.seen.get(frame as usize / STRETCH as usize).copied();
        seen.unwrap_or_default() / STRETCH * STRETCH + u64::from(frame) % STRETCH
    }
}

/// Returns an error if tables cannot have `numbers` numbers.
pub(super) fn check(numbers: usize) -> Result<(), String> {
    match numbers <= FRAMES_MAX {
        true => Ok(()),
        false => Err(format!("frames of more than {} stretches of memory", FRAMES_MAX / STRETCH as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two zones, which share a stretch.
    fn two_zones() -> FrameNumbers {
        let mut numbers = FrameNumbers::default();
        numbers.add_zone(4096, 10_500);
        numbers.add_zone(10_500, 1 << 20);
        numbers
    }

    #[test]
    fn frames_are_found_and_named_again() {
        let mut numbers = two_zones();
        assert_eq!(numbers.locate(5000), None, "expected no number for a frame that no event is about");
        numbers.see(5000).unwrap();
        let place = numbers.locate(5000).unwrap();
        assert_eq!((place.zone, numbers.pfn(place.frame)), (0, 5000));
        numbers.see(500_000).unwrap();
        let far = numbers.locate(500_000).unwrap();
        assert_eq!((far.zone, numbers.pfn(far.frame), numbers.locate(5000)), (1, 500_000, Some(place)));
        let neighbour = numbers.locate(5001).unwrap();
        assert_eq!(
            neighbour.frame,
            place.frame + 1,
            "expected consecutive numbers for the frames of a stretch"
        );
        for elsewhere in [4095, u64::MAX] {
            numbers.see(elsewhere).unwrap();
            assert_eq!((numbers.locate(elsewhere), numbers.count()), (None, 2048));
        }
    }

    #[test]
    fn the_frames_that_were_seen_give_a_second_table_the_same_numbers() {
        let (mut first, mut second) = (two_zones(), two_zones());
        for pfn in [10_600, 900_000, 10_400, 4096, 10_499, 900_001] {
            first.see(pfn).unwrap();
        }
        first.seen().iter().for_each(|pfn| second.see(*pfn).unwrap());
        assert_eq!(first.count(), 4096);
        for pfn in [10_600, 10_499, 900_001, 4100] {
            let place = second.locate(pfn);
            assert_eq!(first.locate(pfn), place);
            assert_eq!(place.map(|place| second.pfn(place.frame)), Some(pfn));
        }
    }
}
