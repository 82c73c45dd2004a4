//! The goals of pageset, and whether it reaches them.

use crate::document::Document;

/// The upper bound of a goal.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// A value in the row's unit.
    Value(f64),
    /// A multiple of this allocator's value.
    Of(&'static str, f64),
}

/// Row, threads and bound of each goal. The goals come from the pool's first specification, and the rows have
/// the names of this program.
const GOALS: &[(&str, usize, Bound)] = &[
    ("pair-0", 1, Bound::Value(2.5)),
    ("pair-0", 2, Bound::Value(2.5)),
    ("pair-3", 1, Bound::Value(2.5)),
    ("pair-3", 2, Bound::Value(2.5)),
    ("pair-9", 1, Bound::Value(5.0)),
    ("pair-9", 2, Bound::Value(5.0)),
    ("bulk-1m-random-alloc", 1, Bound::Value(5.0)),
    ("bulk-1m-random-free", 1, Bound::Value(6.0)),
    ("bulk-1m-random-alloc", 2, Bound::Value(7.0)),
    ("bulk-1m-random-free", 2, Bound::Value(15.0)),
    ("mix", 1, Bound::Value(8.0)),
    ("mix", 2, Bound::Value(8.0)),
    ("handoff-0", 2, Bound::Value(23.0)),
    ("handoff-3", 2, Bound::Value(15.0)),
    ("touch-128m", 1, Bound::Of("mmap", 1.0 / 20.0)),
    ("burst", 1, Bound::Of("mimalloc2", 1.3)),
    ("burst", 1, Bound::Of("mimalloc3", 1.3)),
    // This is 5 % of the burst.
    ("resident-1s", 1, Bound::Value(51.2)),
    ("metadata", 1, Bound::Value(160.0)),
];

/// A goal and its measured value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// Name of the row.
    pub(crate) row: &'static str,
    /// Threads that worked.
    pub(crate) threads: usize,
    /// The bound in words.
    pub(crate) goal: String,
    /// The value to compare with the bound: a value in the row's unit, or a multiple.
    pub(crate) value: f64,
    /// Whether the goal is reached.
    pub(crate) is_reached: bool,
}

/// The goals of all measured rows.
pub(crate) fn judged(document: &Document) -> Vec<Judged> {
    let judge = |(name, threads, bound): &(&'static str, usize, Bound)| {
        let row = document.rows.iter().find(|row| row.row == *name && row.threads == *threads)?;
        let ours = row.ours()?.median;
        let (goal, value, most) = match *bound {
            Bound::Value(most) => (format!("{most} {}", row.unit), ours, most),
            Bound::Of(peer, most) => {
                let theirs = row.results.iter().find(|value| value.allocator == peer)?.median;
                (format!("{most} times {peer}"), ours / theirs, most)
            }
        };
        Some(Judged { row: row.row, threads: *threads, goal, value, is_reached: value <= most })
    };
    GOALS.iter().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::JOBS;
    use crate::target::TARGETS;

    #[test]
    fn goals_name_rows_and_allocators_that_there_are() {
        for (row, threads, bound) in GOALS {
            let has = |job: &&crate::row::Job| job.rows.iter().any(|known| known.name == *row);
            assert!(JOBS.iter().filter(has).any(|job| job.threads == *threads), "{row}/{threads}");
            if let Bound::Of(peer, _) = bound {
                assert!(TARGETS.iter().any(|target| target.name == *peer), "{peer}");
            }
        }
    }
}
