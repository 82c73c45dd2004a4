//! Chooses the order of a cache's slabs, by SLUB's rule (spec fault.md §4.0).

use pageset_core::Order;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u32 = 4096;
/// Largest order that a cache may choose to waste less memory. Source: spec fault.md §4.0, `slub_max_order`.
const ORDER_MAX: u8 = 3;

/// Returns the order of the slabs of a cache with objects of `size` bytes, on a machine with `cpus` CPUs.
///
/// A slab should have room for `4 * (fls(cpus) + 1)` objects, or for as many as fit into a block of order 3.
/// Among the orders with enough room, the rule takes the smallest order that wastes at most 1/16 of the slab.
/// If every order wastes more than 1/16 of the slab, the rule allows a waste of 1/8 of the slab, then 1/4,
/// then 1/2. A `size` of 0 counts as 1.
pub(crate) fn slab_order(size: u32, cpus: u32) -> Order {
    let size = size.max(1);
    let wanted = 4 * (u32::BITS - cpus.leading_zeros() + 1);
    let objects = wanted.min((PAGE_BYTES << ORDER_MAX) / size).max(1);
    let smallest = order_of(u64::from(objects) * u64::from(size));
    let wastes_at_most = |order: u8, part: u32| {
        let bytes = PAGE_BYTES << order;
        bytes % size <= bytes / part
    };
    let orders = || smallest.get()..=ORDER_MAX;
    let found =
        [16, 8, 4, 2].into_iter().find_map(|part| orders().find(|order| wastes_at_most(*order, part)));
    found.and_then(Order::new).unwrap_or(smallest)
}

/// Returns the smallest order whose blocks have at least `bytes` bytes. Returns the largest order if the
/// blocks of all orders are smaller.
pub(crate) fn order_of(bytes: u64) -> Order {
    Order::holding(bytes.div_ceil(u64::from(PAGE_BYTES)).max(1)).unwrap_or(Order::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of spec fault.md §4.0, computed from the rule of Linux 6.12. For each size of objects, the
    /// table has the orders for 4, 16, 64 and 224 CPUs.
    const GOLDEN: [(u32, [u8; 4]); 13] = [
        (64, [0, 0, 0, 0]),
        (96, [0, 0, 0, 0]),
        (128, [0, 0, 0, 1]),
        (192, [0, 1, 1, 1]),
        (256, [0, 1, 1, 2]),
        (512, [1, 2, 2, 3]),
        (640, [2, 2, 3, 3]),
        (704, [2, 3, 3, 3]),
        (1024, [2, 3, 3, 3]),
        (2048, [3, 3, 3, 3]),
        (4096, [3, 3, 3, 3]),
        (8192, [3, 3, 3, 3]),
        (32768, [3, 3, 3, 3]),
    ];

    #[test]
    fn orders_are_those_of_the_table() {
        for (size, orders) in GOLDEN {
            let ours = [4, 16, 64, 224].map(|cpus| slab_order(size, cpus).get());
            assert_eq!(ours, orders, "objects of {size} bytes");
        }
    }

    #[test]
    fn impossible_sizes_have_an_order_too() {
        assert_eq!(slab_order(0, 0), Order::ZERO);
        assert_eq!(slab_order(40_000, 4).get(), 4);
        assert_eq!(slab_order(u32::MAX, u32::MAX), Order::MAX);
        assert_eq!((order_of(0), order_of(8193).get(), order_of(u64::MAX)), (Order::ZERO, 2, Order::MAX));
    }
}
