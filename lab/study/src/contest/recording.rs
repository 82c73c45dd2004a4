//! A recording as a list of operations, in the order of the recording.

use std::path::Path;

use foldhash::{HashMap, HashMapExt as _};
use pageset_replay::operations::{BlockName, Blocks, LeftOut, Operation, OperationList, What};
use pageset_trace::{TraceError, TraceReader};

/// The operations of a recording, which a caller can repeat any number of times.
#[derive(Debug, Default)]
pub struct Recording {
    /// The operations. A block's name is its slot: at one time, each slot has at most one block in use.
    pub(super) operations: OperationList,
    /// Number of slots: the largest number of blocks in use at one time.
    pub(super) slots: usize,
    /// The highest CPU number in the recording, plus 1.
    pub cpus: u32,
    /// Counts of the recorded events that are not repeated. Bulk allocations are not counted. A free of a
    /// frame from a bulk allocation counts as a free without a recorded allocation.
    pub left_out: LeftOut,
}

impl Recording {
    /// Reads a whole recording. Leaves out bulk allocations, because a recording does not name their frames.
    /// Calls `progress` with the number of events read so far.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, if it has no allocations or no frees, or if there is no room
    /// for its operations in memory and below `$TMPDIR`.
    pub fn read(reader: &mut dyn TraceReader, mut progress: impl FnMut(u64)) -> Result<Self, TraceError> {
        let path = reader.info().path.clone();
        let (mut operations, mut slots, mut bulk_frees) = (OperationList::default(), Slots::new(), 0);
        let mut each = |operation: Operation| {
            let what = match operation.what {
                What::Bulk { .. } | What::Alloc { block: BlockName::Bulk(_), .. } => return Ok(()),
                What::Free { block: BlockName::Bulk(_) } => {
                    bulk_frees += 1;
                    return Ok(());
                }
                What::Alloc { block: BlockName::Alone(block), order, migratetype, highest } => {
                    let slot = slots.take(block).map_err(|error| no_room(&path, &error))?;
                    What::Alloc { block: BlockName::Alone(slot), order, migratetype, highest }
                }
                What::Free { block: BlockName::Alone(block) } => {
                    let Some(slot) = slots.give_back(block) else { return Ok(()) };
                    What::Free { block: BlockName::Alone(slot) }
                }
            };
            operations.push(Operation { what, ..operation });
            Ok(())
        };
        let Blocks { cpus, mut left_out, .. } = Blocks::read(reader, &mut each, &mut progress)?;
        left_out.unmatched_frees += bulk_frees;
        operations.check().map_err(|error| no_room(&path, &error))?;
        Ok(Self { operations, slots: slots.count as usize, cpus, left_out })
    }

    /// Number of allocations and frees that [`play`](Self::play) repeats.
    #[must_use]
    pub fn events(&self) -> usize {
        self.operations.len()
    }
}

/// The slots of the blocks in use. A slot that became free is used again.
struct Slots {
    of_block: HashMap<u32, u32>,
    free: Vec<u32>,
    count: u32,
}

impl Slots {
    fn new() -> Self {
        Self { of_block: HashMap::new(), free: Vec::new(), count: 0 }
    }

    /// Returns a slot for a block that is allocated.
    fn take(&mut self, block: u32) -> std::io::Result<u32> {
        self.of_block.try_reserve(1)?;
        // Later, each slot may become free.
        self.free.try_reserve(self.count as usize + 1 - self.free.len())?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.of_block.insert(block, slot);
        Ok(slot)
    }

    /// Returns the slot of a block that is freed. `None` if the block is not in use.
    fn give_back(&mut self, block: u32) -> Option<u32> {
        let slot = self.of_block.remove(&block)?;
        self.free.push(slot);
        Some(slot)
    }
}

/// Makes the error that neither memory nor the file has room for the operations.
fn no_room(path: &Path, error: &std::io::Error) -> TraceError {
    TraceError::File {
        path: path.to_owned(),
        problem: format!("there is no room for its allocations and frees ({error})"),
        remedy: "record a shorter part, free some memory or space below $TMPDIR, or raise the limit (`ulimit -v`, \
                 the control group)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pageset_replay::recordings::bundled;

    use super::*;

    #[test]
    fn a_slot_has_one_block_at_a_time_and_is_used_again() {
        let recording = Recording::read(bundled().unwrap().as_mut(), |_| ()).unwrap();
        let (mut in_use, mut in_use_max, mut allocations) = (vec![false; recording.slots], 0, 0);
        let mut count = 0;
        let each = |operation: &Operation| match operation.what {
            What::Alloc { block: BlockName::Alone(slot), .. } => {
                assert!(!std::mem::replace(&mut in_use[slot as usize], true), "slot {slot} was in use");
                (count, allocations) = (count + 1, allocations + 1);
                in_use_max = in_use_max.max(count);
            }
            What::Free { block: BlockName::Alone(slot) } => {
                assert!(std::mem::replace(&mut in_use[slot as usize], false), "slot {slot} was free");
                count -= 1;
            }
            other => panic!("{other:?} is not repeated"),
        };
        recording.operations.each(each).unwrap();
        assert_eq!(recording.slots, in_use_max, "no slot is wasted");
        assert!(allocations > 2 * recording.slots, "{allocations} allocations, {} slots", recording.slots);
    }
}
