//! Which whole pageblock is used next.

use super::BlockAllocator;

/// Which whole pageblock a CPU uses next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeUse {
    /// One that it freed, or that it took with others at once: CPUs stay apart.
    #[default]
    AtHand,
    /// The lowest that is free, whoever freed it: what lies at the end stays free. For hosts that return memory from there.
    /// An allocation that needs a whole pageblock is O(pageblocks / word) then.
    LowestFirst,
}

impl BlockAllocator<'_> {
    /// The same allocator with another rule for whole pageblocks. Default: [`WholeUse::AtHand`].
    #[must_use]
    pub fn with_whole_use(mut self, rule: WholeUse) -> Self {
        self.parts.whole_use = rule;
        self
    }
}
