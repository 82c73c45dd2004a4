//! Pageblocks between the arrays and the base: whole, or split into blocks of one order by one bit each.
//!
//! The base keeps blocks of all orders for callers at the same time, and pays for it with an exchange of atomic words for each
//! one. What moves in bulk between arrays and pool needs less: a whole pageblock comes from the base, its parts are bits under
//! the depot's lock, and when all bits are set it is whole again. (Measured with pages freed at random: 6.8 ns each, and
//! 9.5 ns past the depot; decision 0018.) From the base's view all of these pageblocks are in use.
//!
//! Each CPU takes from a pageblock of its own as long as that has free blocks. (Measured on two CPUs with all of them
//! taking from the lowest: pages of both lay side by side, and freeing 10 000 of them in random order took three times as
//! long as on one, since bits of the same lines of cache changed on both.)

mod block_set;
mod lock;
mod pageblock;
mod parts;
mod put;
mod release;
mod take;
mod taken;
#[cfg(test)]
mod tests;
mod transfer;

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

pub(crate) use lock::DepotLock;
pub(crate) use taken::Taken;

use crate::arrays::{Caps, Class};
use crate::heap::{self, HeapExhausted};
use block_set::BlockSet;
use pageblock::{Bits, Pageblock, Place};
use transfer::Transfer;

/// Orders that a pageblock is split into: all classes below it.
const SPLITS: usize = Class::COUNT - 1;

/// The pageblocks between the arrays and the base.
///
/// # Invariants
/// `partial` of a class has the pageblocks that are split into it, have a bit and are not reserved. A reserved one has a
/// bit. `whole` has exactly those whose place is `Whole`, and room for all pageblocks.
///
/// In lines of cache of its own: whoever waits for the lock looks at it again and again, and would take what is next to it
/// away from whoever has the lock. What every exchange of single pages needs comes first and is one line, since on two CPUs
/// that take turns each line has to come from the other one.
#[repr(C, align(128))]
pub(crate) struct Depot {
    blocks: Box<[Pageblock]>,
    /// By pageblock, its free parts.
    bits: Box<[Bits]>,
    /// Free frames.
    free: u64,
    /// How often arrays were filled and half-emptied from here.
    pub(crate) exchanges: Exchanges,
    transfer: Transfer,
    partial: [BlockSet; SPLITS],
    /// By CPU the pageblock of each class that is reserved for it; wrong unless that pageblock says so too.
    reserved: Box<[[u32; SPLITS]]>,
    /// Pageblocks of which all is free, the next to be used last.
    whole: Vec<u32>,
    /// Fewest whole pageblocks since the last [`release_unused`](Self::release_unused).
    whole_min: usize,
}

/// What the depot knows of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is free here.
    Free,
    /// It is in use, in a block of this class.
    Used(Class),
    /// Nothing but that its pageblock was split here once.
    Dissolved,
    /// Nothing: the base knows.
    Elsewhere,
}

/// How often half an array passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) refills: u64,
    pub(crate) flushes: u64,
}

impl Depot {
    /// An empty depot for `frames` frames, used by CPUs below `cpus` that have arrays so large.
    pub(crate) fn new(frames: usize, cpus: usize, caps: Caps) -> Result<Self, HeapExhausted> {
        let blocks = frames / PAGEBLOCK_FRAMES as usize;
        let mut partial = <[BlockSet; SPLITS]>::default();
        for set in &mut partial {
            *set = BlockSet::new(blocks)?;
        }
        Ok(Self {
            blocks: heap::made(blocks, || Pageblock::ELSEWHERE)?,
            bits: heap::made(blocks, || Bits::NONE)?,
            partial,
            reserved: heap::made(cpus.max(1), || [u32::MAX; SPLITS])?,
            transfer: Transfer::new(caps, blocks)?,
            // INVARIANT: room for all, so that no free needs memory.
            whole: heap::with_room(blocks)?,
            whole_min: 0,
            free: 0,
            exchanges: Exchanges::default(),
        })
    }

    /// Free frames.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    pub(crate) fn bytes(&self) -> usize {
        let sets: usize = self.partial.iter().map(BlockSet::bytes).sum();
        let lists = size_of_val(&*self.blocks) + size_of_val(&*self.bits) + size_of_val(&*self.reserved);
        lists + sets + self.transfer.bytes() + self.whole.capacity() * size_of::<u32>()
    }

    /// Adds a pageblock by its first frame, all of it free.
    pub(crate) fn add(&mut self, first: u32) {
        self.free += u64::from(PAGEBLOCK_FRAMES);
        let block = first >> PAGEBLOCK_ORDER;
        self.blocks[block as usize].place = Place::Whole;
        self.whole.push(block);
    }

    /// Frames of whole pageblocks.
    pub(crate) fn whole_frames(&self) -> u64 {
        self.whole.len() as u64 * u64::from(PAGEBLOCK_FRAMES)
    }

    /// What is known here of a frame.
    pub(crate) fn find(&self, frame: u32) -> Found {
        if self.has(frame) {
            return Found::Free;
        }
        match self.blocks.get((frame >> PAGEBLOCK_ORDER) as usize).map(|pageblock| pageblock.place) {
            Some(Place::Split(class)) => Found::Used(class),
            Some(Place::Dissolved) => Found::Dissolved,
            Some(Place::Whole | Place::Owned | Place::Elsewhere) | None => Found::Elsewhere,
        }
    }

    /// Whether a frame is free here.
    pub(crate) fn has(&self, frame: u32) -> bool {
        let block = (frame >> PAGEBLOCK_ORDER) as usize;
        let pageblock = self.blocks.get(block);
        pageblock.is_some_and(|pageblock| pageblock.has(&self.bits[block], frame)) || self.transfer.has(frame)
    }
}
