//! The load of a recording: its acts, and the recorded kernel's decisions between them.
//!
//! Only later events show whether a freed block waits in a batch, whether the block went past a busy page
//! set, and which list the block went to. When such a later event comes, `Reading` corrects the act of the
//! free. These corrections make a second reading of the recording unnecessary.

mod reading;
mod remainder;
#[cfg(test)]
mod tests;

use std::ops::Range;

use pageset_core::CpuId;
use pageset_trace::{EventKind, TraceReader};

use super::act::{Act, ActKind, BlockKind};
use super::error::ReplayError;
use super::machine::Machine;
use super::portions::{Acts, Portions, Stored};
use super::ticks::Ticks;
use super::unplayed::Unreplayed;
use crate::recorded::{self, RecordedKinds};
use reading::Reading;

/// The load of a recording, and counts that were made while reading the recording.
#[derive(Debug, Default)]
pub(super) struct PageSetLoad {
    pub(super) acts: Acts,
    /// The time of each act, in nanoseconds. Empty with [`Times::Forget`].
    pub(super) times_ns: Portions<u64, 8>,
    /// Acts that make up for the difference between the load's allocations and frees. A replay plays these
    /// acts between two repetitions of the load.
    pub(super) remainder: Vec<Act>,
    /// The refills and drains of the recorded kernel, in the order of the recording.
    pub(super) decisions: Portions<Decided, 16>,
    /// The moves of blocks between zones and lists of page sets by the recorded kernel, in the order of the
    /// recording.
    pub(super) moves: Portions<Moved, 16>,
    /// Number of events read.
    pub(super) events: u64,
    /// The kinds of events that were recorded.
    pub(super) recorded: RecordedKinds,
    /// Events that the replay leaves out, by reason.
    pub(super) unreplayed: Unreplayed,
    /// Number of allocations. Each page of a bulk allocation counts as one allocation.
    pub(super) allocs: u64,
    pub(super) frees: u64,
    /// Number of frees of pages whose allocation the recording does not show.
    pub(super) unmatched_frees: u64,
    /// Number of frees of a frame that an earlier event had already freed. The kernel allocated the frame
    /// between the two frees, without an event.
    pub(super) unseen_allocs: u64,
    /// Number of blocks that were freed with one event for each page.
    pub(super) split_blocks: u64,
    /// Number of pages that `Reading` allocates for the stacks of forked tasks. The number is 0 if bulk
    /// allocations were recorded.
    pub(super) stack_pages: u64,
    /// Number of frees that went past a busy page set.
    pub(super) diverted_frees: u64,
    /// Seconds between two ticks of a CPU, if the recording has no events of ticks.
    pub(super) tick_interval_s: Option<u32>,
}

/// Whether a `PageSetLoad` keeps the time of each act. The time of an act takes eight bytes, as the act does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Keep,
    Forget,
}

/// A refill or a drain of the recorded kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    /// The index of the act that follows the refill or drain.
    pub(super) before: u32,
    /// The index of the page set.
    pub(super) set: u32,
    pub(super) pages: u32,
    /// The kind of the blocks that were fetched; `None` for a drain.
    pub(super) refill: Option<BlockKind>,
}

/// A move of blocks by the recorded kernel between a zone and one list of a page set. `blocks` is the number
/// of blocks that entered the list. If the blocks left the list, `blocks` is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// The index of the act that follows the move.
    pub(super) before: u32,
    pub(super) set: u32,
    pub(super) block: BlockKind,
    pub(super) blocks: i32,
}

/// Maximum number of portions in memory of the list `decisions`, and of the list `moves`. For each list,
/// these portions take 16 MiB.
const DECISIONS_IN_MEMORY_MAX: usize = 8;

impl Stored<16> for Decided {
    const IN_MEMORY_MAX: usize = DECISIONS_IN_MEMORY_MAX;

    fn to_bytes(self) -> [u8; 16] {
        let Self { before, set, pages, refill } = self;
        let block = refill.map_or(0, |block| 1 << 8 | u32::from(block.to_byte()));
        joined([before, set, pages, block])
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let [before, set, pages, block] = parted(bytes);
        let refill = (block != 0).then_some(BlockKind::from_byte(block as u8));
        Self { before, set, pages, refill }
    }
}

impl Stored<16> for Moved {
    const IN_MEMORY_MAX: usize = DECISIONS_IN_MEMORY_MAX;

    fn to_bytes(self) -> [u8; 16] {
        let Self { before, set, block, blocks } = self;
        joined([before, set, u32::from(block.to_byte()), blocks.cast_unsigned()])
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let [before, set, block, blocks] = parted(bytes);
        Self { before, set, block: BlockKind::from_byte(block as u8), blocks: blocks.cast_signed() }
    }
}

fn joined(numbers: [u32; 4]) -> [u8; 16] {
    let number = numbers.iter().rev().fold(0, |joined, number| (joined << 32) | u128::from(*number));
    number.to_le_bytes()
}

fn parted(bytes: [u8; 16]) -> [u32; 4] {
    let number = u128::from_le_bytes(bytes);
    [number, number >> 32, number >> 64, number >> 96].map(|number| number as u32)
}

impl PageSetLoad {
    /// Reads a recording to its end. `progress` receives the number of events read. An error of `progress`
    /// ends the reading.
    pub(super) fn read(
        reader: &mut dyn TraceReader,
        machine: &Machine,
        times: Times,
        mut progress: impl FnMut(u64) -> Result<(), ReplayError>,
    ) -> Result<Self, ReplayError> {
        // The search for ticks reads a recording in text form ahead, perhaps to its end.
        let mut going = Ok(());
        let ticks = Ticks::find(reader, &machine.layout, &mut || {
            if going.is_ok() {
                going = progress(0);
            }
        })?;
        going?;
        let mut reading = Reading::new(machine, ticks);
        let mut events = Vec::new();
        let (mut read, mut kinds) = (0, [0; EventKind::COUNT]);
        while reader.read_block(&mut events)? > 0 {
            reading.events(&events, times);
            read += events.len() as u64;
            recorded::count(&mut kinds, &events);
            reading.check()?;
            progress(read)?;
        }
        let recorded = RecordedKinds::new(reader.info(), &kinds);
        let mut load = Self { events: read, recorded, ..reading.finish(&recorded) };
        load.acts.check().map_err(|error| ReplayError::no_room(&load.acts, error))?;
        load.decisions.check().map_err(|error| ReplayError::no_room(&load.decisions, error))?;
        load.moves.check().map_err(|error| ReplayError::no_room(&load.moves, error))?;
        load.times_ns.check().map_err(|error| ReplayError::no_room(&load.times_ns, error))?;
        load.remainder = remainder::remainder(machine, &load.acts)
            .map_err(|error| ReplayError::no_room(&load.acts, error))?;
        Ok(load)
    }

    /// Copies the times of the acts with the indices of `range` to `times_ns`.
    pub(super) fn times(&self, range: Range<usize>, times_ns: &mut Vec<u64>) -> Result<(), ReplayError> {
        times_ns.clear();
        let copied = self.times_ns.each(range, |times| {
            times_ns.extend_from_slice(times);
            true
        });
        copied.map_err(|error| ReplayError::no_room(&self.times_ns, error))
    }

    pub(super) fn tick(cpu: CpuId) -> Act {
        Act { kind: ActKind::Tick, block: BlockKind::PAGE, count: 1, at: cpu.0 }
    }
}
