//! Which allocator it is.

use pageset_blocks::BlockAllocator;
use pageset_core::{Config, ConfigError, FrameAllocator, PageAllocator, Platform};

use crate::SpinLock;

/// A page-frame allocator that can be OSTD's.
pub trait Engine: FrameAllocator + Send + Sync + Sized + 'static {
    /// Its own memory.
    type Tables;

    /// Takes its tables from the heap.
    ///
    /// # Errors
    /// If a zone spans too many frames.
    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError>;

    /// Builds it.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError>;
}

// ANCHOR: platform
/// What OSTD supplies to the core: a spin lock, and nobody who listens to events.
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
