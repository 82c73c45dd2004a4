//! Placeholders: frame numbers that stand for any page. Placeholders are used where only the number of pages
//! in a page set matters.

use pageset_core::FrameIndex;

/// The frames of a zone that are in no page set, for use as placeholders.
#[derive(Debug)]
pub(crate) struct Placeholders {
    /// The first frame number that was never used as a placeholder.
    fresh: FrameIndex,
    end: FrameIndex,
    returned: Vec<FrameIndex>,
}

impl Placeholders {
    pub(crate) fn new(frames: usize) -> Self {
        Self { fresh: 0, end: u32::try_from(frames).unwrap_or(u32::MAX), returned: Vec::new() }
    }

    /// Takes a frame to use as a placeholder; `None` if all frames of the zone are in page sets.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<FrameIndex> {
        if let Some(placeholder) = self.returned.pop() {
            return Some(placeholder);
        }
        let placeholder = (self.fresh < self.end).then_some(self.fresh)?;
        self.fresh += 1;
        Some(placeholder)
    }

    #[inline]
    pub(crate) fn give(&mut self, placeholder: FrameIndex) {
        self.returned.push(placeholder);
    }
}
