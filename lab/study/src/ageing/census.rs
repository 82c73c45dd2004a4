//! Counts the pages in use in each pageblock and in each unit of 1 GiB, and the pages in use that cannot be
//! moved.
//!
//! The census counts the blocks that the allocator handed out, by the migratetypes that the day requested.
//! The census does not use the migratetypes that the allocator stores for its pageblocks.

use pageset_core::PAGEBLOCK_FRAMES;

/// Number of frames in a unit of 1 GiB.
pub const UNIT_FRAMES: u64 = 1 << 18;
const PAGEBLOCK: u64 = PAGEBLOCK_FRAMES as u64;

/// Counts of frames in use in one pageblock or one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// Number of all frames in use.
    pub(super) frames: u32,
    /// Frames in use that cannot be moved.
    pub(super) pinned: u32,
}

impl Use {
    fn change(&mut self, frames: u32, is_pinned: bool, is_more: bool) {
        let of = |count: u32| if is_more { count + frames } else { count - frames };
        self.frames = of(self.frames);
        if is_pinned {
            self.pinned = of(self.pinned);
        }
    }
}

/// Counts of frames in use, for each pageblock and for each unit.
#[derive(Debug)]
pub(super) struct Uses {
    pub(super) pageblocks: Vec<Use>,
    pub(super) units: Vec<Use>,
    pub(super) all: Use,
    /// Largest number of frames that were in use at one time and could not be moved.
    pub(super) pinned_peak: u64,
}

impl Uses {
    pub(super) fn new(frames: u64) -> Self {
        let of = |part: u64| vec![Use::default(); (frames / part) as usize];
        Self { pageblocks: of(PAGEBLOCK), units: of(UNIT_FRAMES), all: Use::default(), pinned_peak: 0 }
    }

    /// Records that a block was allocated (`is_more`) or freed. Blocks are no larger than a pageblock.
    pub(super) fn change(&mut self, pfn: u64, frames: u32, is_pinned: bool, is_more: bool) {
        self.pageblocks[(pfn / PAGEBLOCK) as usize].change(frames, is_pinned, is_more);
        self.units[(pfn / UNIT_FRAMES) as usize].change(frames, is_pinned, is_more);
        self.all.change(frames, is_pinned, is_more);
        self.pinned_peak = self.pinned_peak.max(self.all.pinned.into());
    }

    pub(super) fn census(&self) -> Census {
        let count = |uses: &[Use], is: fn(&Use) -> bool| uses.iter().filter(|of| is(of)).count() as u64;
        Census {
            units: self.units.len() as u64,
            clean_units: count(&self.units, |of| of.pinned == 0),
            free_units: count(&self.units, |of| of.frames == 0),
            clean_pageblocks: count(&self.pageblocks, |of| of.pinned == 0),
            free_pageblocks: count(&self.pageblocks, |of| of.frames == 0),
            used_frames: self.all.frames.into(),
            pinned_frames: self.all.pinned.into(),
            unclean_units_needed: self.pinned_peak.div_ceil(UNIT_FRAMES),
        }
    }
}

/// The distribution of pages in use over memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of units of 1 GiB.
    pub units: u64,
    /// Number of units without a page in use that cannot be moved.
    pub clean_units: u64,
    /// Number of units without a page in use.
    pub free_units: u64,
    /// Number of pageblocks without a page in use that cannot be moved.
    pub clean_pageblocks: u64,
    /// Number of pageblocks without a page in use.
    pub free_pageblocks: u64,
    /// Frames in use.
    pub used_frames: u64,
    /// Frames in use that cannot be moved.
    pub pinned_frames: u64,
    /// Smallest number of units that could hold the largest number of unmovable frames that were in use at
    /// one time. No allocator could have placed these frames in fewer units.
    pub unclean_units_needed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_clean_again_when_the_last_page_that_cannot_be_moved_goes() {
        let mut uses = Uses::new(2 * UNIT_FRAMES);
        uses.change(5, 1, true, true);
        uses.change(512, 512, false, true);
        let census = uses.census();
        assert_eq!((census.units, census.clean_units, census.free_units), (2, 1, 1));
        assert_eq!((census.clean_pageblocks, census.free_pageblocks), (1023, 1022));
        uses.change(5, 1, true, false);
        let census = uses.census();
        assert_eq!((census.clean_units, census.free_units, census.unclean_units_needed), (2, 1, 1));
    }
}
