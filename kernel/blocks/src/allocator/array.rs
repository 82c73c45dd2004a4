//! A CPU's array of blocks of one type and order, and the orders that have arrays.

use pageset_core::{COSTLY_ORDER, Order, PAGEBLOCK_ORDER};

use crate::row::ROW_FRAMES;

/// The number of orders that have arrays: the orders up to [`COSTLY_ORDER`], and the order of a pageblock.
pub(super) const ORDERS: usize = COSTLY_ORDER + 2;
/// The number of blocks that an array has room for. The number is a power of two, so that a masked index
/// needs no bounds check.
const BLOCKS_MAX: usize = 64;

/// The order of each array's blocks.
pub(super) const ARRAY_ORDERS: [Order; ORDERS] = {
    let mut orders = [Order::PAGEBLOCK; ORDERS];
    let mut index = 0;
    while index <= COSTLY_ORDER {
        orders[index] = match Order::new(index as u8) {
            Some(order) => order,
            None => Order::MAX,
        };
        index += 1;
    }
    orders
};

/// The index of the array for an order.
#[inline]
pub(super) const fn place(order: Order) -> Option<usize> {
    match order.index() {
        index @ 0..=COSTLY_ORDER => Some(index),
        PAGEBLOCK_ORDER => Some(ORDERS - 1),
        _ => None,
    }
}

/// Blocks of one type and order. An entry is the place of a block's first frame, counted from the first frame
/// of the zone's pageblocks. The block that was freed last is at the end.
///
/// # Invariants
/// `len` is at most `most`, and `most` is at most [`BLOCKS_MAX`].
pub(super) struct Array {
    len: u32,
    /// The number of blocks that the array may hold.
    most: u32,
    blocks: [u32; BLOCKS_MAX],
}

impl Array {
    /// An array without blocks.
    pub(super) const fn empty(order: Order) -> Self {
        Self { len: 0, most: most(order), blocks: [0; BLOCKS_MAX] }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        Some(self.blocks[self.len as usize % BLOCKS_MAX])
    }

    #[inline]
    pub(super) fn has(&self, block: u32) -> bool {
        self.blocks.iter().take(self.len as usize).any(|other| *other == block)
    }

    /// Adds a block. Returns `false` if the array is full.
    #[inline]
    pub(super) fn push(&mut self, block: u32) -> bool {
        let has_room = self.len < self.most;
        if has_room {
            self.blocks[self.len as usize % BLOCKS_MAX] = block;
            self.len += 1;
        }
        has_room
    }

    /// The `count` blocks that were freed first, or all if there are fewer.
    pub(super) fn oldest(&self, count: usize) -> &[u32] {
        &self.blocks[..count.min(self.len as usize)]
    }

    /// Removes the `count` blocks that were freed first.
    pub(super) fn forget_oldest(&mut self, count: usize) {
        let len = self.len as usize;
        self.blocks.copy_within(count..len, 0);
        self.len = (len - count) as u32;
    }
}

/// The number of blocks that an array of this order may hold. An array of order 0 to 3 fetches blocks of one
/// row, up to half of this number, and returns its older half. An array of pageblocks holds at most two, and
/// fetches and returns them one by one.
pub(super) const fn most(order: Order) -> u32 {
    if order.index() == PAGEBLOCK_ORDER {
        return 2;
    }
    let of_two_rows = 2 * ROW_FRAMES as u32 / order.frames();
    if of_two_rows < BLOCKS_MAX as u32 { of_two_rows } else { BLOCKS_MAX as u32 }
}

const _: () = assert!(BLOCKS_MAX.is_power_of_two());
