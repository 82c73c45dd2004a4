//! The allocator that the kernel boots on, with its statistics.

#[cfg(feature = "osdk")]
use core::alloc::Layout;
use core::ops::Range;

use ostd::boot::{boot_info, memory_region::MemoryRegionType};
#[cfg(not(feature = "osdk"))]
use ostd::irq;
use ostd::mm::PAGE_SIZE;
use ostd::mm::frame::GlobalFrameAllocator;
#[cfg(not(feature = "osdk"))]
use pageset_core::FrameAllocator;
use pageset_core::{CpuId, FrameCensus, FreeError, Order, Pfn, Request, Violation};
#[cfg(not(feature = "osdk"))]
use pageset_ostd::Frames;

/// Linux's allocator under the policy of Linux 6.18.
#[cfg(feature = "linux")]
// ANCHOR: choice
#[ostd::global_frame_allocator]
static FRAMES: pageset_ostd::LinuxFrames = Frames::new(pageset_core::policy::LINUX_6_18);
// ANCHOR_END: choice

/// pageset's own allocator.
#[cfg(feature = "own")]
#[ostd::global_frame_allocator]
static FRAMES: pageset_ostd::OwnFrames = Frames::new(pageset_core::policy::LINUX_6_18);

/// pageset's own allocator with arrays.
#[cfg(feature = "own-with-arrays")]
#[ostd::global_frame_allocator]
static FRAMES: pageset_ostd::ArrayFrames = Frames::new(pageset_core::policy::LINUX_6_18);

// OSTD's own allocator, which a kernel gets if it names none.
#[cfg(feature = "osdk")]
static FRAMES: osdk_frame_allocator::FrameAllocator = osdk_frame_allocator::FrameAllocator;

/// The allocator as OSTD sees it.
pub(crate) fn of_kernel() -> &'static dyn GlobalFrameAllocator {
    &FRAMES
}

pub(crate) const NAME: &str = if cfg!(feature = "linux") {
    "linux-6.18"
} else if cfg!(feature = "own") {
    "own"
} else if cfg!(feature = "own-with-arrays") {
    "own-with-arrays"
} else {
    "osdk"
};

/// All frame numbers of the machine's memory.
pub(crate) fn span() -> Range<u64> {
    let usable = boot_info().memory_regions.iter().filter(|region| region.typ() == MemoryRegionType::Usable);
    0..usable.map(|region| (region.end() / PAGE_SIZE) as u64).max().unwrap_or(0)
}

/// Allocates a block for `cpu`, which runs the caller. OSTD does not know about the frames of the block.
#[cfg(not(feature = "osdk"))]
pub(crate) fn alloc(cpu: CpuId, request: &Request) -> Option<Pfn> {
    let _off = irq::disable_local();
    FRAMES.engine().expect("the kernel runs").alloc(cpu, request).ok()
}

/// Frees a block of [`alloc`].
#[cfg(not(feature = "osdk"))]
pub(crate) fn free_block(cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
    let _off = irq::disable_local();
    FRAMES.engine().expect("the kernel runs").free(cpu, pfn, order)
}

/// Number of free frames, including those that CPUs keep.
#[cfg(not(feature = "osdk"))]
pub(crate) fn free() -> u64 {
    let usage = FRAMES.engine().expect("the kernel runs").usage();
    usage.free + usage.held + usage.at_hand
}

/// Checks that no frame is lost or misplaced. Other CPUs must not use the allocator meanwhile.
#[cfg(not(feature = "osdk"))]
pub(crate) fn validate() -> Result<Option<FrameCensus>, Violation> {
    assert_eq!(FRAMES.lost_frames(), 0, "frames are lost");
    FRAMES.engine().expect("the kernel runs").validate().map(Some)
}

/// Number of frames for the allocator's tables.
#[cfg(not(feature = "osdk"))]
pub(crate) fn table_frames() -> u64 {
    FRAMES.table_frames()
}

/// Does this CPU's periodic work.
#[cfg(not(feature = "osdk"))]
pub(crate) fn tick() {
    FRAMES.tick();
}

#[cfg(feature = "osdk")]
pub(crate) fn free() -> u64 {
    (osdk_frame_allocator::load_total_free_size() / PAGE_SIZE) as u64
}

#[cfg(feature = "osdk")]
pub(crate) fn validate() -> Result<Option<FrameCensus>, Violation> {
    Ok(None)
}

#[cfg(feature = "osdk")]
pub(crate) fn alloc(_: CpuId, request: &Request) -> Option<Pfn> {
    let bytes = (request.order.frames() as usize) * PAGE_SIZE;
    let start = FRAMES.alloc(Layout::from_size_align(bytes, bytes).ok()?)?;
    Some(Pfn((start / PAGE_SIZE) as u64))
}

#[cfg(feature = "osdk")]
pub(crate) fn free_block(_: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
    FRAMES.dealloc(pfn.0 as usize * PAGE_SIZE, order.frames() as usize * PAGE_SIZE);
    Ok(())
}

// OSTD's allocator stores its lists in OSTD's metadata of each frame.
#[cfg(feature = "osdk")]
pub(crate) fn table_frames() -> u64 {
    0
}

#[cfg(feature = "osdk")]
pub(crate) fn tick() {}
