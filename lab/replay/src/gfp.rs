//! The bits of allocation flags that this crate needs. The bits are the same in Linux 4.20 to 6.18.
//!
//! Source: `/sys/kernel/tracing/events/kmem/mm_page_alloc/format`.

pub(crate) const DMA: u32 = 0x1;
pub(crate) const HIGHMEM: u32 = 0x2;
pub(crate) const DMA32: u32 = 0x4;
pub(crate) const MOVABLE: u32 = 0x8;
pub(crate) const RECLAIMABLE: u32 = 0x10;
