//! Objects smaller than pages: a small slab layer with the orders and lists of SLUB (spec fault.md §4.0).

/// An object of a slab cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The cache, by its index among the workload's.
    pub(crate) cache: u16,
    /// The slab it lies in, by its index in the cache.
    pub(crate) slab: u32,
}
