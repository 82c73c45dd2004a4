//! Measures the operating system's own page fault: makes a fresh mapping and writes one byte to each page.

use std::time::Instant;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::measure::{PAGE, PAGES};

/// Returns the time per fault, in nanoseconds.
pub(crate) fn fault_ns() -> f64 {
    let bytes = (PAGES * PAGE) as usize;
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address that the system chooses overlaps no other memory.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, prot, flags) }.expect("address space");
    // SAFETY: the range is the mapping from above, and the advice changes no contents.
    unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) }.expect("advice on one's own mapping");
    let begin = Instant::now();
    for offset in (0..bytes).step_by(PAGE as usize) {
        // SAFETY: the offset is inside the mapping.
        let byte = unsafe { start.cast::<u8>().add(offset) };
        // SAFETY: the mapping can be written, and no other code has its address.
        unsafe { byte.write_volatile(1) };
    }
    let ns = begin.elapsed().as_nanos() as f64 / PAGES as f64;
    // SAFETY: the range is the mapping from above, and no code refers to the mapping any more.
    unsafe { munmap(start, bytes) }.expect("one's own mapping");
    ns
}
