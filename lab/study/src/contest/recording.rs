//! A recording as a list of operations, in the order of the recording.

use std::path::Path;

use pageset_replay::operations::{BlockName, Blocks, LeftOut, Operation, What};
use pageset_trace::{TraceError, TraceReader};

/// A recording in memory, which a caller can repeat any number of times.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub(super) operations: Vec<Operation>,
    /// Number of blocks that the recording allocates.
    pub(super) blocks: usize,
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
    /// Fails if the recording cannot be read, if it has no allocations or no frees, or if there is no memory
    /// for its operations.
    pub fn read(reader: &mut dyn TraceReader, mut progress: impl FnMut(u64)) -> Result<Self, TraceError> {
        let path = reader.info().path.clone();
        let (mut operations, mut bulk_frees) = (Vec::new(), 0);
        let mut each = |operation: Operation| {
            match operation.what {
                What::Bulk { .. } => {}
                What::Free { block: BlockName::Bulk(_) } => bulk_frees += 1,
                _ => {
                    operations.try_reserve(1).map_err(|_| no_memory(&path, operations.len()))?;
                    operations.push(operation);
                }
            }
            Ok(())
        };
        let Blocks { allocated, cpus, mut left_out, .. } = Blocks::read(reader, &mut each, &mut progress)?;
        left_out.unmatched_frees += bulk_frees;
        Ok(Self { operations, blocks: allocated as usize, cpus, left_out })
    }

    /// Number of allocations and frees that [`play`](Self::play) repeats.
    #[must_use]
    pub fn events(&self) -> usize {
        self.operations.len()
    }
}

/// Makes the error that there is no memory for twice as many operations as were read.
fn no_memory(path: &Path, read: usize) -> TraceError {
    let mib = ((read * 2 * size_of::<Operation>()) >> 20).max(1);
    TraceError::File {
        path: path.to_owned(),
        problem: format!("there is no memory for {mib} MiB of allocations and frees"),
        remedy:
            "record a shorter part, free some memory, or raise the limit (`ulimit -v`, the control group)"
                .to_owned(),
    }
}
