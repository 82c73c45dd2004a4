//! The table of live blocks, and chains of blocks that are freed together.

/// The number of a block: its place in the table of live blocks. After a block is freed, another block may
/// get the same number.
pub(super) type Slot = u32;

const NONE: Slot = Slot::MAX;

/// The table of live blocks. A block occupies one place of the table.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// For each place of the table: the next block of the same chain if the place is in use, and the next
    /// free place otherwise.
    next: Vec<Slot>,
    orders: Vec<u8>,
    unused: Option<Slot>,
    /// Number of frames of all live blocks.
    pub(super) frames: u64,
}

/// The blocks of one user of memory, as a linked list. The newest block comes first in the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    last: Slot,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { last: NONE };
}

impl Slots {
    /// Takes a place for a block and adds the block to a chain, as the newest block.
    pub(super) fn add(&mut self, chain: &mut Chain, order: u8) -> Slot {
        let slot = match self.unused {
            Some(slot) => {
                let after = self.next[slot as usize];
                self.unused = (after != NONE).then_some(after);
                slot
            }
            None => {
                self.next.push(NONE);
                self.orders.push(0);
                self.next.len() as Slot - 1
            }
        };
        self.next[slot as usize] = chain.last;
        self.orders[slot as usize] = order;
        chain.last = slot;
        self.frames += 1 << order;
        slot
    }

    /// Number of frames of the newest block of a chain.
    pub(super) fn order_pages(&self, chain: &Chain) -> u64 {
        self.orders.get(chain.last as usize).map_or(0, |order| 1 << order)
    }

    /// Removes the newest block from a chain.
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<Slot> {
        if chain.last == NONE {
            return None;
        }
        let slot = chain.last;
        chain.last = self.next[slot as usize];
        self.next[slot as usize] = self.unused.unwrap_or(NONE);
        self.unused = Some(slot);
        self.frames -= 1 << self.orders[slot as usize];
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_chains_keep_apart() {
        let mut slots = Slots::default();
        let (mut one, mut other) = (Chain::EMPTY, Chain::EMPTY);
        assert_eq!([slots.add(&mut one, 0), slots.add(&mut other, 3), slots.add(&mut one, 1)], [0, 1, 2]);
        assert_eq!(slots.frames, 11);
        assert_eq!((slots.pop(&mut one), slots.pop(&mut one), slots.pop(&mut one)), (Some(2), Some(0), None));
        assert_eq!((slots.add(&mut other, 0), slots.add(&mut other, 0)), (0, 2));
        assert_eq!(slots.frames, 10);
    }
}
