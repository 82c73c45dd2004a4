//! The classes of blocks that have an array, one for each order, and where each class's stack lies in memory.

use std::num::NonZeroU16;

use pageset_core::Order;

use super::CpuArrays;

/// A class of blocks. Each order from 0 to 9 (a pageblock) has a class, and each class has an array on each
/// CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Order0,
    Order1,
    Order2,
    Order3,
    Order4,
    Order5,
    Order6,
    Order7,
    Order8,
    Order9,
}

impl Class {
    /// Number of classes.
    pub(crate) const COUNT: usize = 10;
    /// All classes.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Order0,
        Self::Order1,
        Self::Order2,
        Self::Order3,
        Self::Order4,
        Self::Order5,
        Self::Order6,
        Self::Order7,
        Self::Order8,
        Self::Order9,
    ];

    /// The class of an order. `None` for the largest order, which has no class.
    #[inline(always)]
    pub(crate) const fn of(order: Order) -> Option<Self> {
        if order.index() < Self::COUNT { Some(Self::ALL[order.index()]) } else { None }
    }

    /// The order of the class's blocks.
    pub(crate) const fn order(self) -> Order {
        Order::new(self.shift() as u8).unwrap()
    }

    /// The class's order as a shift count. A shift avoids a division: the compiler does not know that the
    /// number of frames in a block is a power of two.
    #[inline(always)]
    pub(crate) const fn shift(self) -> u32 {
        self as u32
    }

    /// Frames of one block.
    #[inline(always)]
    pub(crate) const fn frames(self) -> u32 {
        1 << self.shift()
    }
}

/// The place of a stack: its distance in bytes from the start of its CPU's arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackAt(NonZeroU16);

impl StackAt {
    /// The stack of each order. The table has 16 entries, so that an order masked to four bits needs no
    /// bounds check.
    const BY_ORDER: [Option<Self>; 16] = {
        let mut stacks = [None; 16];
        let mut class = 0;
        while class < Class::COUNT {
            stacks[Class::ALL[class].order().index()] = Some(Self::place(Class::ALL[class]));
            class += 1;
        }
        stacks
    };

    /// The stack for blocks of an order, if there is one.
    #[inline(always)]
    pub(crate) const fn of(order: Order) -> Option<Self> {
        Self::BY_ORDER[order.index() % 16]
    }

    /// The stack for blocks of a class.
    #[inline(always)]
    pub(crate) const fn of_class(class: Class) -> Self {
        Self::BY_ORDER[class as usize].unwrap()
    }

    const fn place(class: Class) -> Self {
        let bytes = match class {
            Class::Order0 => std::mem::offset_of!(CpuArrays, order0),
            Class::Order1 => std::mem::offset_of!(CpuArrays, order1),
            Class::Order2 => std::mem::offset_of!(CpuArrays, order2),
            Class::Order3 => std::mem::offset_of!(CpuArrays, order3),
            Class::Order4 => std::mem::offset_of!(CpuArrays, order4),
            Class::Order5 => std::mem::offset_of!(CpuArrays, order5),
            Class::Order6 => std::mem::offset_of!(CpuArrays, order6),
            Class::Order7 => std::mem::offset_of!(CpuArrays, order7),
            Class::Order8 => std::mem::offset_of!(CpuArrays, order8),
            Class::Order9 => std::mem::offset_of!(CpuArrays, order9),
        };
        // The distance is not 0, because the lock comes before all stacks.
        Self(NonZeroU16::new(bytes as u16).unwrap())
    }

    /// The distance of the stack from the start of the CPU's arrays, in bytes.
    #[inline(always)]
    #[cfg_attr(not(sequences), expect(dead_code, reason = "only sequences need it"))]
    pub(crate) const fn bytes(self) -> usize {
        self.0.get() as usize
    }

    /// The distance in bytes, as a number that identifies the stack.
    #[inline(always)]
    pub(crate) const fn bits(self) -> NonZeroU16 {
        self.0
    }

    /// The distance in bytes, or 0 if there is no stack.
    #[inline(always)]
    pub(crate) const fn to_bits(stack: Option<Self>) -> u16 {
        match stack {
            Some(stack) => stack.0.get(),
            None => 0,
        }
    }

    /// The stack of a [`to_bits`](Self::to_bits) value.
    #[inline(always)]
    pub(crate) const fn from_bits(bits: u16) -> Option<Self> {
        match NonZeroU16::new(bits) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_orders_agree() {
        for class in Class::ALL {
            assert_eq!(Class::of(class.order()), Some(class));
        }
        assert_eq!(Class::of(Order::MAX), None);
    }
}
