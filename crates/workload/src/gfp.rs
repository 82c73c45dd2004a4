//! Bits of allocation flags that decide something here; they have not moved from Linux 4.20 to 6.18.
//!
//! Source: `/sys/kernel/tracing/events/kmem/mm_page_alloc/format`.

pub(crate) const DMA: u32 = 0x1;
pub(crate) const HIGHMEM: u32 = 0x2;
pub(crate) const DMA32: u32 = 0x4;
pub(crate) const MOVABLE: u32 = 0x8;
pub(crate) const RECLAIMABLE: u32 = 0x10;
pub(crate) const HIGH: u32 = 0x20;
pub(crate) const DIRECT_RECLAIM: u32 = 0x400;
pub(crate) const KSWAPD_RECLAIM: u32 = 0x800;
pub(crate) const MEMALLOC: u32 = 0x2_0000;
pub(crate) const NOMEMALLOC: u32 = 0x8_0000;
