//! The metadata tables of one zone in one value, for a static.

use super::{FrameLinks, FrameState, FrameTables, PageblockType};

/// The metadata tables of one zone with `FRAMES` frames and `FRAMES / 512` pageblocks. `FRAMES` is a multiple
/// of 1024.
///
/// All bytes of a new value are zero. A static `FrameMemory` therefore lies in `.bss` and takes no space in a
/// kernel's image.
///
/// ```
/// use pageset_core::{FrameMemory, Zone};
/// # use pageset_core::Platform;
///
/// const FRAMES: usize = (64 << 20) / 4096;
/// static MEMORY: std::sync::Mutex<FrameMemory<FRAMES, { FRAMES / 512 }>> =
///     std::sync::Mutex::new(FrameMemory::new());
/// # fn zone<P: Platform>() {
/// let mut memory = MEMORY.lock().unwrap(); // a kernel has a `ConstStaticCell`
/// let zone = Zone::<P>::new(memory.tables());
/// # }
/// ```
#[derive(Debug)]
pub struct FrameMemory<const FRAMES: usize, const PAGEBLOCKS: usize> {
    links: [FrameLinks; FRAMES],
    states: [FrameState; FRAMES],
    pageblocks: [PageblockType; PAGEBLOCKS],
}

impl<const FRAMES: usize, const PAGEBLOCKS: usize> FrameMemory<FRAMES, PAGEBLOCKS> {
    /// Makes the memory for the tables, which is all zeros.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "large: for statics, not for the stack")]
    pub const fn new() -> Self {
        Self {
            links: [const { FrameLinks::new() }; _],
            states: [const { FrameState::new() }; _],
            pageblocks: [const { PageblockType::new() }; _],
        }
    }

    /// The tables, for [`Zone::new`](crate::Zone::new). The tables may be longer than the zone needs.
    pub fn tables(&mut self) -> FrameTables<'_> {
        FrameTables {
            links: (&mut self.links).into(),
            states: (&mut self.states).into(),
            pageblocks: (&mut self.pageblocks).into(),
        }
    }
}
