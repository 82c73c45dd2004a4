//! Order classes, and where the stack of each is.

use std::num::NonZeroU16;

use pageset_core::Order;

use super::CpuArrays;

/// The orders that have an array: those that are asked for most, and pageblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Order0,
    Order1,
    Order2,
    Order3,
    Order9,
}

impl Class {
    /// Number of classes.
    pub(crate) const COUNT: usize = 5;
    /// All classes.
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::Order0, Self::Order1, Self::Order2, Self::Order3, Self::Order9];

    /// The class of an order, if it has one.
    #[inline(always)]
    pub(crate) const fn of(order: Order) -> Option<Self> {
        match order.get() {
            0 => Some(Self::Order0),
            1 => Some(Self::Order1),
            2 => Some(Self::Order2),
            3 => Some(Self::Order3),
            9 => Some(Self::Order9),
            _ => None,
        }
    }

    /// The order of its blocks.
    pub(crate) const fn order(self) -> Order {
        Order::new(self.shift() as u8).unwrap()
    }

    /// Its order as a number of bits: the compiler does not see that frames are a power of two, and would divide.
    #[inline(always)]
    pub(crate) const fn shift(self) -> u32 {
        match self {
            Self::Order0 => 0,
            Self::Order1 => 1,
            Self::Order2 => 2,
            Self::Order3 => 3,
            Self::Order9 => 9,
        }
    }

    /// Frames of one of its blocks.
    #[inline(always)]
    pub(crate) const fn frames(self) -> u32 {
        1 << self.shift()
    }
}

/// Where a stack begins, in bytes from the start of its CPU's arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackAt(NonZeroU16);

impl StackAt {
    /// By order; 16, so that no order needs a check.
    const BY_ORDER: [Option<Self>; 16] = {
        let mut stacks = [None; 16];
        let mut class = 0;
        while class < Class::COUNT {
            stacks[Class::ALL[class].order().index()] = Some(Self::of_class(Class::ALL[class]));
            class += 1;
        }
        stacks
    };

    /// The stack for blocks of an order, if there is one.
    #[inline(always)]
    pub(crate) const fn of(order: Order) -> Option<Self> {
        Self::BY_ORDER[order.index() % 16]
    }

    pub(crate) const fn of_class(class: Class) -> Self {
        let bytes = match class {
            Class::Order0 => std::mem::offset_of!(CpuArrays, order0),
            Class::Order1 => std::mem::offset_of!(CpuArrays, order1),
            Class::Order2 => std::mem::offset_of!(CpuArrays, order2),
            Class::Order3 => std::mem::offset_of!(CpuArrays, order3),
            Class::Order9 => std::mem::offset_of!(CpuArrays, order9),
        };
        // The lock comes before all of them.
        Self(NonZeroU16::new(bytes as u16).unwrap())
    }

    /// The bytes.
    #[inline(always)]
    #[cfg_attr(not(sequences), expect(dead_code, reason = "only sequences need it"))]
    pub(crate) const fn bytes(self) -> usize {
        self.0.get() as usize
    }

    /// The bytes, as a number that tells stacks apart.
    #[inline(always)]
    pub(crate) const fn bits(self) -> NonZeroU16 {
        self.0
    }

    /// The bytes; 0 for none.
    #[inline(always)]
    pub(crate) const fn to_bits(stack: Option<Self>) -> u16 {
        match stack {
            Some(stack) => stack.0.get(),
            None => 0,
        }
    }

    /// What [`to_bits`](Self::to_bits) gave.
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
