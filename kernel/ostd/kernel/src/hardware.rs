//! Gives the processor page tables and frames by physical address. OSTD does not expose these, so this code
//! is unsafe.
#![expect(unsafe_code, reason = "the processor's page tables are reached through the linear mapping")]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use ostd::mm::io::util::HasVmReaderWriter;
use ostd::mm::{FrameAllocOptions, HasPaddr, PAGE_SIZE, VmSpace};
use pageset_core::Pfn;
use spin::Once;
use x86_64::registers::control::Cr3;

const ENTRIES: usize = 512;
const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ADDRESS: u64 = ((1 << 40) - 1) << 12;
/// Bytes that an entry of a page directory covers.
pub(crate) const LEAF_BYTES: usize = ENTRIES * PAGE_SIZE;

/// The offset at which OSTD maps all memory: virtual minus physical address.
fn linear_offset() -> usize {
    static OFFSET: Once<usize> = Once::new();
    *OFFSET.call_once(|| {
        let frame = FrameAllocOptions::new().alloc_frame().expect("memory enough");
        frame.reader().cursor() as usize - frame.paddr()
    })
}

/// The page directory for one GiB of an address space. The test puts leaf tables into this directory, and
/// must remove them before OSTD uses the directory again.
pub(crate) struct Directory {
    entries: &'static [AtomicU64; ENTRIES],
    /// Keeps the directory alive.
    _space: Arc<VmSpace>,
}

impl Directory {
    /// The directory around `va` in the address space that this CPU uses. Its first leaf table belongs to
    /// OSTD: a page is mapped there, so that the directory exists.
    pub(crate) fn in_use(space: Arc<VmSpace>, va: usize) -> Self {
        space.activate();
        let (root, _) = Cr3::read_raw();
        let mut table = root.start_address().as_u64();
        for shift in [39, 30] {
            // SAFETY: OSTD maps all memory at this offset, and `table` is a page table of an address space
            // that `space` keeps.
            let entries = unsafe { &*((table as usize + linear_offset()) as *const [AtomicU64; ENTRIES]) };
            let entry = entries[va >> shift & (ENTRIES - 1)].load(Ordering::Acquire);
            assert_ne!(entry & PRESENT, 0, "something is mapped in this GiB");
            table = entry & ADDRESS;
        }
        // SAFETY: as above; `_space` keeps it as long as this value lives.
        let entries = unsafe { &*((table as usize + linear_offset()) as *const [AtomicU64; ENTRIES]) };
        Self { entries, _space: space }
    }

    /// Makes this leaf table visible to the processor.
    pub(crate) fn link(&self, va: usize, words: *const AtomicU64) {
        let address = words as usize - linear_offset();
        assert_eq!(address % PAGE_SIZE, 0, "a table is a page");
        self.entry(va).store(address as u64 | PRESENT | WRITABLE | USER, Ordering::Release);
    }

    /// Hides the leaf table of `va` from the processor, once the processor drops its cached translations.
    pub(crate) fn unlink(&self, va: usize) {
        self.entry(va).store(0, Ordering::Release);
    }

    fn entry(&self, va: usize) -> &AtomicU64 {
        let index = va / LEAF_BYTES % ENTRIES;
        assert_ne!(index, 0, "the first leaf table is OSTD's");
        &self.entries[index]
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Clear the entries, because OSTD would free every table that it finds here.
        self.entries[1..].iter().for_each(|entry| entry.store(0, Ordering::Release));
    }
}

/// Clears a frame that belongs to the caller.
pub(crate) fn clear(pfn: Pfn) {
    let start = (pfn.0 as usize * PAGE_SIZE + linear_offset()) as *mut u8;
    // SAFETY: OSTD maps all memory at this offset; the frame was just allocated, and no address space maps it
    // yet.
    unsafe { start.write_bytes(0, PAGE_SIZE) };
}
