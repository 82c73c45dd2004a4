//! How many visits to zones there are in the times at which blocks moved.

/// Which way a block went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Out of a zone.
    Out,
    /// Back to it.
    Back,
}

/// So long after a block moved, another one is another visit's. Under one hold of a zone's lock the next block comes within
/// some 0.1 us, and 0.5 us while hits are kept.
const GAP_NS: u64 = 10_000;

/// Visits in what one CPU moved: runs of blocks that went one way. A visit that began before the first one is counted, and so
/// is each part of one that the host of a virtual machine interrupted. Two within [`GAP_NS`] look like one.
pub(crate) fn count(blocks: &mut [(u64, Moved)]) -> u64 {
    blocks.sort_by_key(|(time_ns, _)| *time_ns);
    let (mut visits, mut before) = (0, None);
    for (time_ns, moved) in blocks {
        let goes_on = before.is_some_and(|(before_ns, way)| way == *moved && *time_ns - before_ns <= GAP_NS);
        visits += u64::from(!goes_on);
        before = Some((*time_ns, *moved));
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::Moved::{Back, Out};
    use super::*;

    #[test]
    fn a_visit_is_a_run_of_blocks_that_go_one_way_without_a_gap() {
        let (near, far) = (200 + GAP_NS, 201 + 2 * GAP_NS);
        let mut blocks = [(0, Out), (100, Out), (200, Back), (near, Back), (far, Back), (far + 100, Out)];
        assert_eq!(count(&mut blocks), 4);
        blocks.reverse();
        assert_eq!(count(&mut blocks), 4, "by time");
        assert_eq!(count(&mut []), 0);
    }
}
