//! Parts of the mechanism that can be left out: for laboratories, which ask what each is worth.

use super::neighbours::NEIGHBOURS;
use super::{BlockAllocator, RemoteFrees, WholeUse};
use crate::spares::SPARES;

/// A part of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A CPU keeps blocks that it frees to other CPUs' pageblocks: [`RemoteFrees::Kept`]. An allocator has this part only if that
    /// was [chosen](BlockAllocator::with_remote_frees).
    KeptBlocks,
    /// A CPU takes whole pageblocks several at a time, and keeps those that it does not need at hand. Without: one by one, and
    /// at most one at hand besides the one that it freed last.
    SparePageblocks,
    /// A CPU has stacks of its own for its pageblocks with free frames. Without: all are anybody's at once.
    OwnStacks,
    /// Blocks of orders of which a CPU needs few lie in one pageblock for each type. Without: in one for each order and type.
    MixedPageblocks,
    /// Neighbouring CPUs take such blocks from the same pageblock. Without: each CPU has pageblocks of its own for them.
    SharedPageblocks,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::KeptBlocks,
        Self::SparePageblocks,
        Self::OwnStacks,
        Self::MixedPageblocks,
        Self::SharedPageblocks,
    ];
}

/// Which parts an allocator has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) remote_frees: RemoteFrees,
    pub(super) whole_use: WholeUse,
    /// Whole pageblocks that a CPU keeps at hand at most, besides the one that it freed last.
    pub(super) spares_max: usize,
    pub(super) has_own_stacks: bool,
    pub(super) mixes_orders: bool,
    /// CPUs that share mixed pageblocks at most, a power of two.
    pub(super) sharers_max: u32,
}

impl Parts {
    pub(super) const DEFAULT: Self = Self {
        remote_frees: RemoteFrees::AtOnce,
        whole_use: WholeUse::AtHand,
        spares_max: SPARES,
        has_own_stacks: true,
        mixes_orders: true,
        sharers_max: NEIGHBOURS,
    };
}

impl BlockAllocator<'_> {
    /// The same allocator with another rule for frees to other CPUs' pageblocks. Default: [`RemoteFrees::AtOnce`].
    #[must_use]
    pub fn with_remote_frees(mut self, rule: RemoteFrees) -> Self {
        self.parts.remote_frees = rule;
        self
    }

    /// The same allocator without one part.
    #[must_use]
    pub fn without(mut self, part: Part) -> Self {
        match part {
            Part::KeptBlocks => self.parts.remote_frees = RemoteFrees::AtOnce,
            Part::SparePageblocks => self.parts.spares_max = 1,
            Part::OwnStacks => self.parts.has_own_stacks = false,
            Part::MixedPageblocks => self.parts.mixes_orders = false,
            Part::SharedPageblocks => self.parts.sharers_max = 1,
        }
        self
    }
}
