//! Types for the numbers that an allocator uses: frames, orders, CPUs, nodes, zones, migratetypes.

use core::fmt;

/// Largest order a block can have: 2^10 frames, 4 MiB with 4 KiB frames. Source: spec §0.2, Linux's
/// `MAX_PAGE_ORDER`.
pub const MAX_ORDER: usize = 10;
/// Number of orders, 0 to [`MAX_ORDER`].
pub const NR_ORDERS: usize = MAX_ORDER + 1;
/// Order of a pageblock, which has 2^9 frames (2 MiB with 4 KiB frames). Source: spec §0.2, x86-64.
pub const PAGEBLOCK_ORDER: usize = 9;
/// Number of frames in one pageblock.
pub const PAGEBLOCK_FRAMES: u32 = 1 << PAGEBLOCK_ORDER;
/// Orders above `COSTLY_ORDER` are *costly*: the kernel's page sets hold no blocks of costly orders, except
/// huge pages. Source: spec §0.2.
pub const COSTLY_ORDER: usize = 3;
/// The order of a transparent huge page on x86-64. The kernel's page sets hold blocks of this order, but no
/// blocks of the other orders above [`COSTLY_ORDER`]. Source: spec §0.2.
pub const THP_ORDER: usize = 9;

/// Page frame number: a physical address, or an offset in an arena, divided by the frame size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pfn(pub u64);

impl Pfn {
    /// The frame number plus `frames`, or `None` if the sum does not fit into 64 bits.
    #[must_use]
    pub const fn checked_add(self, frames: u64) -> Option<Self> {
        match self.0.checked_add(frames) {
            Some(pfn) => Some(Self(pfn)),
            None => None,
        }
    }

    /// Whether a block of `order` may start at this frame.
    #[must_use]
    pub const fn is_aligned(self, order: Order) -> bool {
        self.0.trailing_zeros() >= order.0 as u32
    }
}

impl fmt::Display for Pfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The order (size class) of a block. A block has `2^order` frames and starts at a multiple of its size.
///
/// # Invariants
/// The number is never above [`MAX_ORDER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Order(u8);

impl Order {
    /// One frame.
    pub const ZERO: Self = Self(0);
    /// The largest block.
    pub const MAX: Self = Self(MAX_ORDER as u8);
    /// A pageblock.
    pub const PAGEBLOCK: Self = Self(PAGEBLOCK_ORDER as u8);
    /// A transparent huge page.
    pub const THP: Self = Self(THP_ORDER as u8);

    /// Makes an order. Returns `None` if `order` is above [`MAX_ORDER`].
    #[must_use]
    pub const fn new(order: u8) -> Option<Self> {
        if order as usize <= MAX_ORDER { Some(Self(order)) } else { None }
    }

    /// The smallest order whose block holds `frames` frames. `None` if `frames` is zero or more than the
    /// largest block has.
    #[must_use]
    pub const fn holding(frames: u64) -> Option<Self> {
        if frames == 0 || frames > 1 << MAX_ORDER {
            return None;
        }
        Some(Self(frames.next_power_of_two().trailing_zeros() as u8))
    }

    /// The smallest order whose block holds `bytes` bytes in frames of 4 KiB. `None` if `bytes` is zero or
    /// more than the largest block has.
    ///
    /// ```
    /// use pageset_core::Order;
    ///
    /// assert_eq!(Order::for_bytes(16 << 10), Order::new(2));
    /// assert_eq!(Order::for_bytes(5000), Order::new(1));
    /// ```
    #[must_use]
    pub const fn for_bytes(bytes: usize) -> Option<Self> {
        Self::holding(bytes.div_ceil(4096) as u64)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The order as an index into tables of [`NR_ORDERS`] entries.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Number of frames in a block of this order.
    #[must_use]
    pub const fn frames(self) -> u32 {
        1 << self.0
    }

    /// All orders from `self` up to [`Order::MAX`].
    pub fn and_above(self) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (self.0..=Self::MAX.0).map(Self)
    }

    /// Whether a kernel with huge pages keeps blocks of this order in per-CPU page sets. The kernel's
    /// tracepoints treat the same orders as orders of page sets.
    #[inline]
    pub(crate) const fn is_cached_by_kernel(self) -> bool {
        self.index() <= COSTLY_ORDER || self.index() == THP_ORDER
    }

    pub(crate) const fn from_index(order: usize) -> Self {
        assert!(order <= MAX_ORDER);
        Self(order as u8)
    }

    pub(crate) const fn up(self) -> Self {
        Self::from_index(self.index() + 1)
    }

    pub(crate) const fn down(self) -> Self {
        Self(self.0 - 1)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a CPU: its index in the allocator's per-CPU tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(pub u32);

impl CpuId {
    /// The CPU's number as an index into per-CPU tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The node's number as an index into per-node tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a zone: its index in the allocator's zone table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ZoneId(pub u16);

impl ZoneId {
    /// The zone's number as an index into zone tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of addresses in a zone. The variants are in the order of the kernel's zone indices, lowest
/// addresses first. Source: spec §1.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneKind {
    /// Memory below 16 MiB on x86, for ISA devices.
    Dma = 0,
    /// Memory below 4 GiB, for 32-bit devices.
    Dma32 = 1,
    /// Ordinary memory.
    Normal = 2,
    /// Memory that a 32-bit kernel cannot map directly.
    HighMem = 3,
    /// Memory that holds only pages that can be migrated.
    Movable = 4,
}

impl ZoneKind {
    /// Number of kinds.
    pub const COUNT: usize = 5;
    /// All kinds, lowest first.
    pub const ALL: [Self; Self::COUNT] = [Self::Dma, Self::Dma32, Self::Normal, Self::HighMem, Self::Movable];

    /// The kernel's zone index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name that `/proc/zoneinfo` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::Dma32 => "DMA32",
            Self::Normal => "Normal",
            Self::HighMem => "HighMem",
            Self::Movable => "Movable",
        }
    }

    /// The kind that `/proc/zoneinfo` calls `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ZoneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether the contents of a block can be moved or reclaimed, or the special use of the block's pageblock.
/// Blocks of one type are kept together. Source: spec §0.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// The contents must stay where they are.
    Unmovable = 0,
    /// The contents can be moved (migrated).
    Movable = 1,
    /// The contents can be given up when memory is short.
    Reclaimable = 2,
    /// The pageblock is reserved for requests that cannot wait and should not fail.
    HighAtomic = 3,
    /// The pageblock belongs to a contiguous-allocation area (CMA).
    Cma = 4,
    /// The pageblock is out of service: its free blocks are neither allocated nor counted as free.
    Isolate = 5,
}

impl MigrateType {
    /// Number of types.
    pub const COUNT: usize = 6;
    /// Number of migratetypes that have their own lists in page sets: unmovable, movable and reclaimable.
    pub const PCP_COUNT: usize = 3;
    /// All types.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Unmovable, Self::Movable, Self::Reclaimable, Self::HighAtomic, Self::Cma, Self::Isolate];

    /// The type's number as an index into tables of [`MigrateType::COUNT`] entries.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The type with the kernel's number `index`.
    #[must_use]
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(Self::ALL[index]) } else { None }
    }

    /// Whether free blocks of this type may merge with blocks of other mergeable types at pageblock size and
    /// above. Page sets have lists for mergeable types. Unmovable, movable and reclaimable blocks are
    /// mergeable.
    #[must_use]
    pub const fn is_mergeable(self) -> bool {
        (self as usize) < Self::PCP_COUNT
    }

    /// The name that `/proc/pagetypeinfo` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unmovable => "Unmovable",
            Self::Movable => "Movable",
            Self::Reclaimable => "Reclaimable",
            Self::HighAtomic => "HighAtomic",
            Self::Cma => "CMA",
            Self::Isolate => "Isolate",
        }
    }

    /// The type that `/proc/pagetypeinfo` calls `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|migratetype| migratetype.name() == name)
    }
}

impl fmt::Display for MigrateType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_order_that_holds_a_count() {
        for (frames, order) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10)] {
            assert_eq!(Order::holding(frames), Order::new(order), "{frames} frames");
        }
        assert_eq!(Order::holding(0), None);
        assert_eq!(Order::holding(1025), None);
    }

    #[test]
    fn the_smallest_order_that_holds_bytes() {
        for (bytes, order) in [(1, 0), (4096, 0), (4097, 1), (16 << 10, 2), (2 << 20, 9), (4 << 20, 10)] {
            assert_eq!(Order::for_bytes(bytes), Order::new(order), "{bytes} bytes");
        }
        for bytes in [0, (4 << 20) + 1, usize::MAX] {
            assert_eq!(Order::for_bytes(bytes), None, "{bytes} bytes");
        }
    }

    #[test]
    fn frame_zero_is_aligned_for_every_order() {
        assert!(Pfn(0).is_aligned(Order::MAX));
        assert!(!Pfn(512).is_aligned(Order::MAX));
        assert!(Pfn(512).is_aligned(Order::PAGEBLOCK));
    }

    #[test]
    fn names_are_found_again() {
        for kind in ZoneKind::ALL {
            assert_eq!(ZoneKind::from_name(kind.name()), Some(kind));
        }
        for migratetype in MigrateType::ALL {
            assert_eq!(MigrateType::from_name(migratetype.name()), Some(migratetype));
            assert_eq!(MigrateType::from_index(migratetype.index()), Some(migratetype));
        }
        assert_eq!(ZoneKind::from_name("Normal "), None);
    }
}
