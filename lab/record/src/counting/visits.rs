//! Finds the number of zone visits from the times when blocks moved.

use super::by_task::TaskNumbers;

/// The direction of a moved block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The block moved out of a zone.
    Out,
    /// The block moved back to a zone.
    Back,
}

/// Two blocks that move further apart in time belong to different visits. Under one hold of a zone lock, the
/// next block follows within about 0.1 us, or 0.5 us while hits are kept.
const GAP_NS: u64 = 10_000;

/// A block that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) time_ns: u64,
    pub(crate) moved: Moved,
    /// The task that ran when the block moved.
    pub(crate) task: TaskNumbers,
    /// A number that stands for the call chain.
    pub(crate) chain: usize,
}

/// Finds the visits in one CPU's moved blocks. Returns the first block of each run in one direction. A visit
/// that began before the first block is counted. If the host of a virtual machine interrupts a visit for
/// longer than [`GAP_NS`], each part is counted. Two visits within [`GAP_NS`] count as one visit.
pub(crate) fn visits(blocks: &mut [Block]) -> impl Iterator<Item = &Block> {
    blocks.sort_by_key(|block| block.time_ns);
    let mut before: Option<Block> = None;
    blocks.iter().filter(move |block| {
        let goes_on = before
            .is_some_and(|before| before.moved == block.moved && block.time_ns - before.time_ns <= GAP_NS);
        before = Some(**block);
        !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::Moved::{Back, Out};
    use super::*;

    #[test]
    fn a_visit_is_a_run_of_blocks_that_go_one_way_without_a_gap() {
        let (near, far) = (200 + GAP_NS, 201 + 2 * GAP_NS);
        let block = |(time_ns, moved, tid): (u64, Moved, u32)| Block {
            time_ns,
            moved,
            task: TaskNumbers { tid, process: 1 },
            chain: 0,
        };
        let mut blocks = [
            (0, Out, 7),
            (100, Out, 8),
            (200, Back, 8),
            (near, Back, 9),
            (far, Back, 9),
            (far + 100, Out, 7),
        ]
        .map(block);
        let tids = |blocks: &mut [Block]| visits(blocks).map(|block| block.task.tid).collect::<Vec<_>>();
        assert_eq!(tids(&mut blocks), [7, 8, 9, 7]);
        blocks.reverse();
        assert_eq!(tids(&mut blocks), [7, 8, 9, 7], "by time");
        assert!(tids(&mut []).is_empty());
    }
}
