//! Into the depot: passed on as they are, or put to their place; what has no place here is free in the base.

use pageset_core::{FreeError, Order, PAGEBLOCK_ORDER};

use super::Depot;
use super::pageblock::{Pageblock, Place};
use super::parts::Parts;
use crate::arrays::{Batch, Class, Entry, ZeroState};
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

    /// Takes blocks of a class that were passed on, to be put to their places: as many as fit into an empty batch.
    pub(crate) fn take_passed(&mut self, class: Class, batch: &mut Batch) {
        self.transfer.take(class, batch.capacity(), |entries| batch.fill(entries));
        self.free -= (batch.len() as u64) << class.shift();
    }

    /// Puts blocks to their places, whether they came from here or from the base. Returns how many were free already.
    pub(crate) fn put(&mut self, class: Class, entries: &[Entry], base: &Base, ledger: &Ledger) -> u64 {
        if entries.iter().fold(0, |any, entry| any | entry.raw() & 1) != 0 {
            // Before somebody else can have them.
            note_zero(class, entries, ledger);
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
        // Only exceptions are counted on the way: each would wait for the count that the one before leaves.
        let (mut refused, mut elsewhere) = (0, 0);
        while let Some((first, others)) = rest.split_first() {
            let mut parts = Parts::one(first.frame(), class);
            rest = others;
            while let Some((next, others)) = rest.split_first()
                && parts.add(next.frame(), class)
            {
                rest = others;
            }
            match self.put_word(class, parts) {
                Put::Kept { refused: 0 } => {}
                Put::Kept { refused: of_word } => refused += of_word,
                Put::Foreign => elsewhere += free_blocks(base, class, parts, &mut refused),
                Put::ForeignPart => elsewhere += free_parts(base, class, parts, &mut refused),
            }
        }
        self.free += (entries.len() as u64 - u64::from(refused) - u64::from(elsewhere)) << class.shift();
        u64::from(refused)
    }

    /// Puts blocks that lie in one word. The caller counts them.
    #[inline(always)]
    pub(super) fn put_word(&mut self, class: Class, parts: Parts) -> Put {
        let block = parts.first >> PAGEBLOCK_ORDER;
        let is_split = |pageblock: &Pageblock| pageblock.place == Place::Split(class);
        if !self.blocks.get(block as usize).is_some_and(is_split) {
            return self.put_nowhere(block, parts);
        }
        let (before, after) = self.bits[block as usize].put(class, parts);
        // One test of what happens seldom.
        if before == 0 || after == u64::MAX || before & parts.bits != 0 {
            return self.note_word(class, block, parts, before);
        }
        Put::Kept { refused: 0 }
    }

    /// What becomes of blocks whose pageblock is not split into such.
    #[cold]
    fn put_nowhere(&self, block: u32, parts: Parts) -> Put {
        match self.blocks.get(block as usize).map(|pageblock| pageblock.place) {
            None | Some(Place::Elsewhere | Place::Owned) => Put::Foreign,
            Some(Place::Dissolved) => Put::ForeignPart,
            Some(Place::Whole | Place::Split(_)) => Put::Kept { refused: parts.count },
        }
    }

    /// Looks after a word that has its first free parts or is all free now, or had some of these before.
    #[inline(never)]
    fn note_word(&mut self, class: Class, block: u32, parts: Parts, before: u64) -> Put {
        let bits = &mut self.bits[block as usize];
        let had_any = before != 0 || bits.words_with_any() > 1;
        let pageblock = &mut self.blocks[block as usize];
        if bits.has_all(class) {
            if had_any && !pageblock.is_reserved {
                self.partial[class as usize].remove(block);
            }
            pageblock.unsplit(bits, class, Place::Whole);
            self.whole.push(block);
        } else if !had_any {
            self.partial[class as usize].insert(block);
        }
        Put::Kept { refused: (before & parts.bits).count_ones() }
    }
}

/// Notes which of these are zero.
#[cold]
fn note_zero(class: Class, entries: &[Entry], ledger: &Ledger) {
    for entry in entries.iter().filter(|entry| entry.zero() == ZeroState::Zero) {
        ledger.note_zero(entry.frame()..entry.frame() + class.frames());
    }
}

/// Frees blocks in the base. Returns how many are free now; others were so already.
#[cold]
fn free_blocks(base: &Base, class: Class, parts: Parts, refused: &mut u32) -> u32 {
    count_freed(parts, class, refused, |frame| base.free(frame, class.order()).is_ok())
}

/// Frees blocks that the base may know as parts of larger ones. Returns how many are free now; others were so already.
#[cold]
fn free_parts(base: &Base, class: Class, parts: Parts, refused: &mut u32) -> u32 {
    count_freed(parts, class, refused, |frame| {
        let outcome = base.free(frame, class.order()).or_else(|error| match error {
            FreeError::WrongOrder { .. } | FreeError::NotABlock(_) => {
                base.free_range(frame..frame + class.frames())
            }
            other => Err(other),
        });
        outcome.is_ok()
    })
}

fn count_freed(parts: Parts, class: Class, refused: &mut u32, free: impl FnMut(u32) -> bool) -> u32 {
    let freed = parts.frames(class).map(free).filter(|is_free| *is_free).count() as u32;
    *refused += parts.count - freed;
    freed
}
