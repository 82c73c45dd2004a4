//! Out of the depot: what was passed on, parts of split pageblocks, whole ones; and into it, when nothing is left, a
//! pageblock from the base.

use pageset_core::{Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use super::Depot;
use super::pageblock::Place;
use super::parts::Parts;
use super::taken::Taken;
use crate::arrays::Class;
use crate::base::Base;
use crate::ledger::Ledger;

impl Depot {
    /// Takes blocks for a CPU until none is missing: those that were passed on, the last first, then others, the lowest
    /// first. Some stay missing if the base has no pageblock any more.
    #[inline]
    pub(crate) fn take(&mut self, cpu: usize, taken: &mut Taken<'_>, base: &Base, ledger: &Ledger) {
        let class = taken.class;
        let passed = self.transfer.take(class, taken.missing(), |entries| taken.fill(entries));
        self.free -= (passed as u64) << class.shift();
        while taken.missing() > 0 {
            let found = match class {
                Class::Order9 => self.take_whole().map(Parts::pageblock),
                _ => self.take_word(cpu, class, taken.missing() as u32),
            };
            match found {
                Some(parts) => taken.push_word(parts, ledger),
                None => match base.alloc(Order::PAGEBLOCK) {
                    Some(first) => self.add(first),
                    None if self.share(class) => {}
                    None => return,
                },
            }
        }
    }

    /// Takes up to `limit` blocks (64 at most) of a class below that of pageblocks for a CPU: from the pageblock that is
    /// reserved for it, lowest first; then from the lowest that has any, which is reserved from now on. `None` if there is
    /// none: add a pageblock.
    pub(super) fn take_word(&mut self, cpu: usize, class: Class, limit: u32) -> Option<Parts> {
        let cpu = cpu % self.reserved.len();
        let block = match self.reserved_for(cpu, class) {
            Some(block) => block,
            None => self.reserve(cpu, class)?,
        };
        let bits = &mut self.bits[block as usize];
        let parts = bits.take(block, class, limit)?;
        if !bits.has_any() {
            self.blocks[block as usize].is_reserved = false;
        }
        self.free -= u64::from(parts.count << class.shift());
        Some(parts)
    }

    #[inline]
    fn reserved_for(&self, cpu: usize, class: Class) -> Option<u32> {
        let block = self.reserved[cpu][class as usize];
        let pageblock = self.blocks.get(block as usize)?;
        (pageblock.is_reserved && pageblock.place == Place::Split(class)).then_some(block)
    }

    /// Reserves the lowest pageblock of a class for a CPU, or one that is split now.
    fn reserve(&mut self, cpu: usize, class: Class) -> Option<u32> {
        let block = match self.partial[class as usize].lowest() {
            Some(block) => {
                self.partial[class as usize].remove(block);
                block
            }
            None => self.split(class)?,
        };
        self.blocks[block as usize].is_reserved = true;
        self.reserved[cpu][class as usize] = block;
        Some(block)
    }

    /// Makes a whole pageblock one of blocks of `class`, to be reserved.
    fn split(&mut self, class: Class) -> Option<u32> {
        let block = self.take_whole()? >> PAGEBLOCK_ORDER;
        self.free += u64::from(PAGEBLOCK_FRAMES);
        self.blocks[block as usize].split(&mut self.bits[block as usize], class);
        Some(block)
    }

    /// Takes a pageblock: its first frame.
    #[inline]
    pub(super) fn take_whole(&mut self) -> Option<u32> {
        let block = self.whole.pop()?;
        self.whole_min = self.whole_min.min(self.whole.len());
        self.free -= u64::from(PAGEBLOCK_FRAMES);
        self.blocks[block as usize].place = Place::Owned;
        Some(block * PAGEBLOCK_FRAMES)
    }

    /// Reserves nothing for anybody any more: memory is short. Says whether a pageblock of this class was reserved.
    fn share(&mut self, class: Class) -> bool {
        let mut any = false;
        if class == Class::Order9 {
            return any;
        }
        for cpu in 0..self.reserved.len() {
            if let Some(block) = self.reserved_for(cpu, class) {
                self.blocks[block as usize].is_reserved = false;
                self.partial[class as usize].insert(block);
                any = true;
            }
        }
        any
    }
}
