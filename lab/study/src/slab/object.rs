//! A reference to a slab object. A worker can send it to another worker.

/// An object of a slab cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub(super) cache: u16,
    pub(super) slab: u32,
}
