//! Frame metadata: 8 bytes of links and 1 byte of state per frame, in memory that the caller provides.
//!
//! The allocator never touches the contents of frames. The fields are atomics. Most accesses have relaxed
//! ordering, because locks order the accesses. A frame's state decides which lock protects the frame's
//! metadata. The zone lock protects a free frame, the page set's lock protects a cached frame, and no lock
//! protects an allocated frame.

mod list;
mod memory;
mod owners;
mod state;

use core::ops::Range;
use core::sync::atomic::{
    AtomicU8, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

pub use list::List;
pub use memory::FrameMemory;
pub(crate) use owners::Owners;
pub use owners::PageblockOwner;
pub(crate) use state::State;

use crate::error::ConfigError;
use crate::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER, Storage};

/// Index of a frame: its distance from the zone's base.
pub type FrameIndex = u32;

/// Links of a block's first frame: the previous and the next block in its list. All-zero bytes are valid
/// `FrameLinks`.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FrameLinks {
    prev: AtomicU32,
    next: AtomicU32,
}

impl FrameLinks {
    /// Links of a frame that is on no list.
    #[must_use]
    pub const fn new() -> Self {
        Self { prev: AtomicU32::new(0), next: AtomicU32::new(0) }
    }
}

/// State of one frame, packed into a byte. A zero byte is a valid `FrameState`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct FrameState(AtomicU8);

impl FrameState {
    /// State of a frame inside a block.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(0))
    }
}

/// Migratetype of one pageblock. A zero byte is a valid `PageblockType`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct PageblockType(AtomicU8);

impl PageblockType {
    /// The type of an unmovable pageblock.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(0))
    }
}

const _: () = assert!(size_of::<FrameLinks>() == 8 && size_of::<FrameState>() == 1);

/// Number of entries in a zone's metadata tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCounts {
    /// Number of entries of the link table (8 bytes each), and of the state table (1 byte each).
    pub frames: usize,
    /// Number of entries of the pageblock table (1 byte each).
    pub pageblocks: usize,
}

/// The metadata tables of one zone.
#[derive(Debug)]
pub struct FrameTables<'a> {
    /// Links: one entry per frame of the zone's rounded span.
    pub links: Storage<'a, FrameLinks>,
    /// States: one entry per frame of the zone's rounded span.
    pub states: Storage<'a, FrameState>,
    /// Migratetypes: one entry per pageblock of the zone's rounded span.
    pub pageblocks: Storage<'a, PageblockType>,
}

impl FrameTables<'_> {
    /// Checks that the tables are long enough for a zone of this size.
    pub(crate) fn check_len(&self, counts: FrameCounts) -> Result<(), ConfigError> {
        for (table, len, needed) in [
            ("links", self.links.len(), counts.frames),
            ("states", self.states.len(), counts.frames),
            ("pageblocks", self.pageblocks.len(), counts.pageblocks),
        ] {
            if len < needed {
                return Err(ConfigError::TableLength(table, needed));
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn len(&self) -> FrameIndex {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(crate) fn state(&self, frame: FrameIndex) -> State {
        State::unpack(self.states[frame as usize].0.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_state(&self, frame: FrameIndex, state: State) {
        debug_assert!(
            self.state(frame).may_become(state),
            "frame {frame} of the zone: {:?} must not become {state:?}",
            self.state(frame)
        );
        self.states[frame as usize].0.store(state.pack(), Relaxed);
    }

    /// Whether an allocated block of `order` starts at `frame`.
    #[inline]
    pub(crate) fn is_allocated(&self, frame: FrameIndex, order: Order) -> bool {
        State::is_allocated(self.states[frame as usize].0.load(Relaxed), order)
    }

    /// Marks a taken block as allocated. `wanted` is the type that the user requested.
    #[inline]
    pub(crate) fn mark_allocated(&self, frame: FrameIndex, order: Order, wanted: MigrateType) {
        let movable = wanted == MigrateType::Movable;
        self.set_state(frame, State::Allocated { order, movable });
    }

    /// Takes an allocated block of `order` from its user by marking it as cached. Race: two CPUs free the
    /// same block. One CPU's exchange succeeds, and the other CPU gets the state that its exchange found.
    /// Only the CPU whose exchange succeeds frees the block, so no block is freed twice. Returns the type of
    /// the block's pageblock.
    #[inline(always)]
    pub(crate) fn claim(&self, frame: FrameIndex, order: Order) -> Result<MigrateType, State> {
        let migratetype = self.pageblock_type(frame);
        let cell = &self.states[frame as usize].0;
        let found = cell.load(Relaxed);
        if !State::is_allocated(found, order) {
            return Err(State::unpack(found));
        }
        let to = State::Cached { order, migratetype };
        match cell.compare_exchange(found, to.pack(), Relaxed, Relaxed) {
            Ok(_) => Ok(migratetype),
            Err(found) => Err(State::unpack(found)),
        }
    }

    /// Whether a block of this order with the state `Cached` starts at `frame`.
    #[inline]
    pub(crate) fn is_cached(&self, frame: FrameIndex, order: Order) -> bool {
        State::is_cached_as(self.states[frame as usize].0.load(Relaxed), order)
    }

    /// Changes the state of a frame if the state is still `from`. Returns `false` if another CPU has changed
    /// the state.
    pub(crate) fn exchange_state(&self, frame: FrameIndex, from: State, to: State) -> bool {
        let state = &self.states[frame as usize].0;
        state.compare_exchange(from.pack(), to.pack(), AcqRel, Relaxed).is_ok()
    }

    /// Type of the pageblock that holds `frame`.
    #[inline]
    pub(crate) fn pageblock_type(&self, frame: FrameIndex) -> MigrateType {
        let code = self.pageblocks[(frame >> PAGEBLOCK_ORDER) as usize].0.load(Relaxed);
        // An invalid byte, which is corruption, is read as unmovable.
        MigrateType::from_index(usize::from(code)).unwrap_or(MigrateType::Unmovable)
    }

    #[inline]
    pub(crate) fn set_pageblock_type(&self, frame: FrameIndex, migratetype: MigrateType) {
        self.pageblocks[(frame >> PAGEBLOCK_ORDER) as usize].0.store(migratetype as u8, Relaxed);
    }

    /// Sets the type of every pageblock that a block covers, or of the pageblock that contains the block.
    pub(crate) fn set_block_type(&self, frame: FrameIndex, order: Order, migratetype: MigrateType) {
        for start in (0..order.frames()).step_by(PAGEBLOCK_FRAMES as usize) {
            self.set_pageblock_type(frame + start, migratetype);
        }
    }

    /// Whether all these frames are inside blocks: no frame starts a block, and no frame is a hole.
    pub(crate) fn are_interior(&self, frames: Range<FrameIndex>) -> bool {
        let states = &self.states[frames.start as usize..frames.end as usize];
        states.iter().fold(0, |all, state| all | state.0.load(Relaxed)) == State::Interior.pack()
    }

    /// Whether no smaller block starts inside the block of `order` at `frame`. Checks only the frames at a
    /// distance of a power of two from `frame`. If the block is split, its second part starts at such a
    /// distance.
    pub(crate) fn is_whole(&self, frame: FrameIndex, order: Order) -> bool {
        (0..order.get()).all(|half| self.state(frame + (1 << half)) == State::Interior)
    }

    /// The block that covers `frame`: its first frame and its state. `None` in holes.
    pub(crate) fn covering_block(&self, frame: FrameIndex) -> Option<(FrameIndex, State)> {
        for order in 0..=MAX_ORDER {
            let head = frame & !((1 << order) - 1);
            // Search from the smallest order up. Race: a CPU splits or merges the block in its page set
            // meanwhile, without the zone's lock. The CPU that splits or merges the block writes the states
            // in an order that lets the search of `covering_block` find a block at every moment.
            match State::unpack(self.states[head as usize].0.load(Acquire)) {
                State::Interior => {}
                State::Hole => return None,
                state => {
                    return state.order().filter(|o| frame - head < o.frames()).map(|_| (head, state));
                }
            }
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn the_block_around_a_frame_is_found_from_any_of_its_frames() {
        let tables = owned(1024);
        for frame in 0..1024 {
            tables.set_state(frame, State::Interior);
        }
        let order3 = Order::new(3).unwrap();
        tables.set_state(8, State::Leaked { order: order3 });
        tables.set_state(16, State::Hole);
        for frame in 8..16 {
            assert_eq!(tables.covering_block(frame), Some((8, State::Leaked { order: order3 })));
        }
        assert_eq!(tables.covering_block(16), None, "a hole");
        assert_eq!(tables.covering_block(20), None, "behind the block that starts lower");
    }

    /// Tables on the heap for `frames` frames.
    pub(crate) fn owned(frames: usize) -> FrameTables<'static> {
        fn leak<T>(table: std::vec::Vec<T>) -> Storage<'static, T> {
            Storage::Borrowed(std::vec::Vec::leak(table))
        }
        FrameTables {
            links: leak((0..frames).map(|_| FrameLinks::new()).collect()),
            states: leak((0..frames).map(|_| FrameState::new()).collect()),
            pageblocks: leak((0..frames.div_ceil(512)).map(|_| PageblockType::new()).collect()),
        }
    }
}
