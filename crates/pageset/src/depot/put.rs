//! Into the depot: passed on as they are, or put to their place; what has no place here is free in the base.

use pageset_core::{FreeError, Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use super::Depot;
use super::pageblock::Place;
use super::parts::Parts;
use crate::arrays::{Class, Entry, ZeroState};
use crate::base::Base;
use crate::ledger::Ledger;

/// What became of blocks of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// They are free; so many were before, or are none.
    Kept { refused: u32 },
    /// They are no blocks of a pageblock that is split here: free them in the base.
    Foreign,
    /// As `Foreign`, and the base may know them as parts of larger blocks.
    ForeignPart,
}

impl Depot {
    /// Puts blocks where the next refill finds them first, as they are. `false` if there is no room.
    #[inline]
    pub(crate) fn pass_on(&mut self, class: Class, entries: &[Entry]) -> bool {
        let is_put = self.transfer.put(class, entries);
        if is_put {
            self.free += (entries.len() as u64) << class.shift();
        }
        is_put
    }

    /// Takes all blocks of a class that were passed on, to be put to their places.
    pub(crate) fn empty_passed(&mut self, class: Class) -> Vec<Entry> {
        let all = self.transfer.empty(class);
        self.free -= (all.len() as u64) << class.shift();
        all
    }

    /// Puts blocks to their places, whether they came from here or from the base. Returns how many were free already.
    pub(crate) fn put(&mut self, class: Class, entries: &[Entry], base: &Base, ledger: &Ledger) -> u64 {
        for entry in entries.iter().filter(|entry| entry.zero() == ZeroState::Zero) {
            // Before somebody else can have it.
            ledger.note_zero(entry.frame()..entry.frame() + class.frames());
        }
        match class {
            Class::Order9 => {
                // The base knows the owners of those that it handed out itself.
                let is_owned = |frame| base.block_in_use(frame) == Some((frame, Order::PAGEBLOCK));
                let mut is_refused = |entry: &&Entry| !self.put_whole(entry.frame(), is_owned);
                entries.iter().filter(&mut is_refused).count() as u64
            }
            // Apart, so that the compiler knows the class of most blocks.
            Class::Order0 => self.put_words(Class::Order0, entries, base),
            _ => self.put_words(class, entries, base),
        }
    }

    /// Puts a pageblock; `false` if it is free already. `is_owned` is asked about those that are not from here, whose owners
    /// are not known here.
    #[inline]
    pub(super) fn put_whole(&mut self, first: u32, is_owned: impl FnOnce(u32) -> bool) -> bool {
        let block = first >> PAGEBLOCK_ORDER;
        let may_be_put = match self.blocks.get(block as usize).map(|known| known.place) {
            Some(Place::Owned) => true,
            Some(Place::Elsewhere | Place::Dissolved) => is_owned(first),
            Some(Place::Whole | Place::Split(_)) | None => false,
        };
        if may_be_put {
            self.add(first);
        }
        may_be_put
    }

    /// Puts blocks of a class below that of pageblocks. Pages that were allocated together are often freed together: one
    /// look for all in a row that lie in one word. Returns how many were free already.
    #[inline(always)]
    fn put_words(&mut self, class: Class, entries: &[Entry], base: &Base) -> u64 {
        let mut rest = entries;
        let mut refused = 0;
        while let Some((first, others)) = rest.split_first() {
            let mut parts = Parts::one(first.frame(), class);
            let together = others.iter().take_while(|entry| parts.add(entry.frame(), class)).count();
            rest = &others[together..];
            refused += match self.put_word(class, parts) {
                Put::Kept { refused } => u64::from(refused),
                Put::Foreign => free_blocks(base, class, parts),
                Put::ForeignPart => free_parts(base, class, parts),
            };
        }
        refused
    }

    /// Puts blocks that lie in one word.
    #[inline(always)]
    pub(super) fn put_word(&mut self, class: Class, parts: Parts) -> Put {
        let block = parts.first >> PAGEBLOCK_ORDER;
        let Some(pageblock) = self.blocks.get_mut(block as usize) else { return Put::Foreign };
        match pageblock.place {
            Place::Split(split) if split == class => {}
            Place::Elsewhere | Place::Owned => return Put::Foreign,
            Place::Dissolved => return Put::ForeignPart,
            Place::Whole | Place::Split(_) => return Put::Kept { refused: parts.count },
        }
        let before = pageblock.free();
        let bits = &mut self.bits[block as usize];
        let refused = pageblock.put(bits, class, parts);
        self.free += u64::from((parts.count - refused) << class.shift());
        if pageblock.free() == PAGEBLOCK_FRAMES >> class.shift() {
            if before > 0 && !pageblock.is_reserved {
                self.partial[class as usize].remove(block);
            }
            pageblock.unsplit(bits, class, Place::Whole);
            self.whole.push(block);
        } else if before == 0 {
            self.partial[class as usize].insert(block);
        }
        Put::Kept { refused }
    }
}

/// Frees blocks in the base. Returns how many were free already.
#[cold]
fn free_blocks(base: &Base, class: Class, parts: Parts) -> u64 {
    let is_refused = |frame: &u32| base.free(*frame, class.order()).is_err();
    parts.frames(class).filter(is_refused).count() as u64
}

/// Frees blocks that the base may know as parts of larger ones. Returns how many were free already.
#[cold]
fn free_parts(base: &Base, class: Class, parts: Parts) -> u64 {
    let is_refused = |frame: &u32| {
        let outcome = base.free(*frame, class.order()).or_else(|error| match error {
            FreeError::WrongOrder { .. } | FreeError::NotABlock(_) => {
                base.free_range(*frame..*frame + class.frames())
            }
            other => Err(other),
        });
        outcome.is_err()
    };
    parts.frames(class).filter(is_refused).count() as u64
}
