//! How many visits to zones there are in a CPU's hits.

/// What a tracepoint says of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// A block left a zone.
    Out,
    /// A block went back.
    Back,
    /// Anything else, which is not done under a zone's lock.
    Nothing,
}

/// Visits in hits of one CPU, each with its time: runs of blocks that went one way. What comes between two of them is an
/// allocation or a free. A visit that began before the first hit is counted, so there are rather too many.
pub(crate) fn count(hits: &mut [(u64, Moved)]) -> u64 {
    // Those of one tracepoint are in order already; a stable sort leaves them so.
    hits.sort_by_key(|(time_ns, _)| *time_ns);
    let (mut visits, mut before) = (0, Moved::Nothing);
    for (_, moved) in hits {
        visits += u64::from(*moved != Moved::Nothing && *moved != before);
        before = *moved;
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::Moved::{Back, Nothing, Out};
    use super::*;

    #[test]
    fn a_visit_is_a_run_of_blocks_that_go_one_way() {
        let hits = [Out, Out, Nothing, Out, Back, Back, Nothing, Nothing, Back];
        let mut timed: Vec<_> = hits.into_iter().enumerate().map(|(at, moved)| (at as u64, moved)).collect();
        assert_eq!(count(&mut timed), 4);
        timed.reverse();
        assert_eq!(count(&mut timed), 4, "by time");
        assert_eq!(count(&mut []), 0);
        assert_eq!(count(&mut [(1, Nothing)]), 0);
    }
}
