//! The choice of the allocator.

use pageset_blocks::BlockAllocator;
use pageset_core::{Config, ConfigError, FrameAllocator, PageAllocator, Platform};

use crate::SpinLock;

/// A page-frame allocator that OSTD can use.
pub trait Engine: FrameAllocator + Send + Sync + Sized + 'static {
    /// The memory for its tables.
    type Tables;

    /// Allocates its tables on the heap.
    ///
    /// # Errors
    /// An error if a zone spans too many frames.
    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError>;

    /// Builds the allocator.
    ///
    /// # Errors
    /// An error if the configuration contradicts itself.
    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError>;
}

// ANCHOR: platform
/// The platform of `pageset-core` on OSTD: a spin lock, and no event sink.
#[derive(Debug)]
pub struct Ostd;

impl Platform for Ostd {
    type RawLock = SpinLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}
// ANCHOR_END: platform

impl Engine for PageAllocator<'static, Ostd> {
    type Tables = pageset_core::Tables<'static, Ostd>;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Self::Tables::on_heap(config)
    }

    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        Self::new(Ostd, config, tables)
    }
}

impl Engine for BlockAllocator<'static> {
    type Tables = pageset_blocks::Tables<'static>;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Self::Tables::on_heap(config)
    }

    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        Self::new(config, tables)
    }
}
