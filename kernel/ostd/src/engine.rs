//! The choice of the allocator.

use core::ops::Range;

use pageset_blocks::BlockAllocator;
use pageset_core::{
    AllocError, Config, ConfigError, CpuId, FrameAllocator, FreeError, PageAllocator, Pfn, Platform, Request,
};

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

    /// Allocates `frames` contiguous frames at a multiple of `align`.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_contiguous(
        &self,
        cpu: CpuId,
        frames: u64,
        align: u64,
        request: &Request,
    ) -> Result<Pfn, AllocError>;

    /// Turns the blocks of a range into single frames.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Makes frames free that were holes of the zones until now.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError>;
}

/// Implements the methods of an engine that the allocator has under the same names.
macro_rules! own_methods {
    () => {
        fn alloc_contiguous(
            &self,
            cpu: CpuId,
            frames: u64,
            align: u64,
            request: &Request,
        ) -> Result<Pfn, AllocError> {
            self.alloc_contiguous(cpu, frames, align, request)
        }

        fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
            self.split_range(cpu, pfns)
        }

        fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
            self.add_memory(cpu, pfns)
        }
    };
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

    own_methods!();
}

impl Engine for BlockAllocator<'static> {
    type Tables = pageset_blocks::Tables<'static>;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Self::Tables::on_heap(config)
    }

    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        Self::new(config, tables)
    }

    own_methods!();
}
