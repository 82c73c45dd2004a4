//! References to slab objects. A worker can send a reference to a slab object to another worker.

/// An object of a slab cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub(super) cache: u16,
    pub(super) slab: u32,
}
