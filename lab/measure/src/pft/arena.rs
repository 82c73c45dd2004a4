//! Real memory behind the frames, so that the clearing and touching of a page take real time.

use anyhow::{Context as _, Result};
use memmap2::{Advice, MmapMut};
use pageset_core::{CpuId, Order, Pfn};
use pageset_fault::{Memory, NoMemory};
use parking_lot::Mutex;

/// Memory whose frames a thread can write to.
pub(super) trait Contents: Memory + Send + Sync {
    /// Writes to the first byte of `lines` lines, as a program does after a fault.
    fn write(&self, pfn: Pfn, lines: u32, line_bytes: u64);
}

impl Contents for NoMemory {
    fn write(&self, _: Pfn, _: u32, _: u64) {}
}

/// Maps memory for `frames` frames, and makes all of the memory resident, so that the test does not measure
/// faults of the operating system.
pub(super) fn map(frames: u64, page_bytes: u64) -> Result<MmapMut> {
    let bytes = usize::try_from(frames * page_bytes)?;
    let mut map =
        MmapMut::map_anon(bytes).with_context(|| format!("cannot map {bytes} bytes; use a smaller --gib"))?;
    // Ask for huge pages, as a pool would. Without huge pages, the test is a little slower.
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    map.fill(1);
    Ok(map)
}

/// Clears a page of a mapping by the method that `pageset-pageops` chooses for this CPU.
pub(super) fn clear(page: &mut [u8]) {
    pageset_pageops::clear(page, Some(0)).expect("a page of a mapping is one");
}

/// Frames of a mapping, each with a lock. If a bug of the engine gave one frame to two tasks, these tasks
/// would wait for each other instead of racing. While the engine gives each frame to one task only, no CPU
/// waits for a lock of a frame.
pub(super) struct Arena<'m>(Vec<Mutex<&'m mut [u8]>>);

impl<'m> Arena<'m> {
    pub(super) fn new(map: &'m mut MmapMut, page_bytes: u64) -> Self {
        Self(map.chunks_exact_mut(page_bytes as usize).map(Mutex::new).collect())
    }

    fn with(&self, pfn: Pfn, write: impl FnOnce(&mut [u8])) {
        write(&mut self.0[pfn.0 as usize].lock());
    }
}

impl Memory for Arena<'_> {
    #[inline]
    fn clear(&self, _: CpuId, pfn: Pfn, order: Order, _: u32) {
        for frame in pfn.0..pfn.0 + u64::from(order.frames()) {
            self.with(Pfn(frame), clear);
        }
    }

    #[inline]
    fn expect(&self, _: CpuId, pfn: Pfn) {
        self.with(pfn, |bytes| pageset_pageops::prefetch(bytes.as_ptr()));
    }

    fn copy(&self, _: CpuId, from: Pfn, to: Pfn) {
        self.with(from, |from| self.with(to, |to| to.copy_from_slice(from)));
    }
}

impl Contents for Arena<'_> {
    #[inline]
    fn write(&self, pfn: Pfn, lines: u32, line_bytes: u64) {
        self.with(pfn, |bytes| {
            bytes.iter_mut().step_by(line_bytes as usize).take(lines as usize).for_each(|byte| *byte = 1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_cleared_and_written_alone() {
        let mut map = map(3, 4096).unwrap();
        let arena = Arena::new(&mut map, 4096);
        arena.clear(CpuId(0), Pfn(1), Order::ZERO, 0);
        arena.write(Pfn(1), 2, 64);
        drop(arena);
        assert_eq!((map[4095], map[4096], map[4097], map[4096 + 64], map[8192]), (1, 1, 0, 1, 1));
        assert_eq!(map[4096..8192].iter().map(|byte| u32::from(*byte)).sum::<u32>(), 2);
    }
}
