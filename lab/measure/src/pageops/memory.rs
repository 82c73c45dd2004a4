//! Memory for measurements. If possible, huge pages back the memory, so that the TLB hardly affects the
//! times. All memory is resident, so that page faults do not affect the times.

use std::fs;

use anyhow::{Context as _, Result, bail};
use memmap2::{Advice, MmapMut};

use crate::host::Meminfo;

/// Bytes of a huge page on x86-64, and on aarch64 with base pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Resident memory that is aligned to huge pages.
#[derive(Debug)]
pub struct HugeMemory {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl HugeMemory {
    /// Allocates memory of this many huge pages. If the system gives no huge pages, base pages back the
    /// memory. [`Self::is_huge`] tells which pages the system gave.
    ///
    /// # Errors
    ///
    /// An error if there is too little memory.
    pub fn new(pages: usize) -> Result<Self> {
        let bytes = pages * HUGE_PAGE_BYTES;
        refuse_what_does_not_fit(bytes)?;
        let map = MmapMut::map_anon(bytes + HUGE_PAGE_BYTES)
            .with_context(|| format!("cannot map {} MiB of memory", bytes >> 20))?;
        // If the advice fails, `is_huge` returns `false`.
        let _ = map.advise(Advice::HugePage);
        let start = map.as_ptr().addr().next_multiple_of(HUGE_PAGE_BYTES) - map.as_ptr().addr();
        let mut memory = Self { map, start, bytes };
        memory.all_mut().fill(1);
        Ok(memory)
    }

    /// Number of huge pages in this memory.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.bytes / HUGE_PAGE_BYTES
    }

    /// The huge page with the number `index`.
    #[must_use]
    pub fn page(&self, index: usize) -> &[u8] {
        &self.map[self.start + index * HUGE_PAGE_BYTES..][..HUGE_PAGE_BYTES]
    }

    /// The huge page with the number `index`.
    pub fn page_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.map[self.start + index * HUGE_PAGE_BYTES..][..HUGE_PAGE_BYTES]
    }

    /// All bytes of this memory.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        &self.map[self.start..self.start + self.bytes]
    }

    /// All bytes of this memory.
    pub fn all_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.bytes]
    }

    /// Whether the system backs all of this memory with huge pages.
    #[must_use]
    pub fn is_huge(&self) -> bool {
        let Ok(smaps) = fs::read_to_string("/proc/self/smaps") else { return false };
        huge_bytes(&smaps, self.all().as_ptr().addr()) >= self.bytes
    }
}

/// Returns an error if more memory is needed than is available. If memory ran out, the kernel might kill the
/// process, and the user would see no reason.
fn refuse_what_does_not_fit(bytes: usize) -> Result<()> {
    let Some(available) = Meminfo::read().available_bytes else { return Ok(()) };
    if bytes as u64 > available {
        bail!(
            "{} MiB of memory are needed and {} MiB are available: close something, or use a larger machine",
            bytes >> 20,
            available >> 20
        );
    }
    Ok(())
}

/// Number of bytes that huge pages back in the mapping that contains `address`.
fn huge_bytes(smaps: &str, address: usize) -> usize {
    let mut is_inside = false;
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let (Some(start), Some(end)) = (number(start), number(end)) {
                is_inside = (start..end).contains(&address);
            }
        } else if is_inside && let Some(kilobytes) = line.strip_prefix("AnonHugePages:") {
            let kilobytes = kilobytes.trim().trim_end_matches(" kB");
            return kilobytes.parse::<usize>().unwrap_or(0) << 10;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_apart_and_resident() {
        let mut memory = HugeMemory::new(2).unwrap();
        memory.page_mut(1).fill(7);
        assert_eq!((memory.pages(), memory.page(0)[0], memory.page(1)[0]), (2, 1, 7));
        assert!(memory.page(0).as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
    }

    #[test]
    fn huge_pages_are_those_of_the_mapping() {
        let smaps = "1000-3000 rw-p 0 0:0 0\nAnonHugePages:  4 kB\n3000-9000 rw-p 0 0:0 0\nRss: 1 kB\n\
                     AnonHugePages:   2048 kB\n";
        assert_eq!(huge_bytes(smaps, 0x3000), 2 << 20);
        assert_eq!(huge_bytes(smaps, 0x2fff), 4 << 10);
        assert_eq!(huge_bytes(smaps, 0x9000), 0);
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let error = HugeMemory::new(usize::MAX >> 25).map(|_| ()).unwrap_err();
        assert!(error.to_string().ends_with("close something, or use a larger machine"), "{error}");
    }
}
