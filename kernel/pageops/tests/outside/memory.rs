//! Memory between two inaccessible pages, one directly before the memory and one directly after. An access
//! outside of the memory ends the test.

use std::ops::{Deref, DerefMut};

#[cfg(not(miri))]
pub(crate) use guarded::Memory;
#[cfg(miri)]
pub(crate) use heap::Memory;

impl Memory {
    /// Memory with a different value in each 8-byte word, so that a test notices a wrong copy.
    pub(crate) fn patterned(bytes: usize, seed: u8) -> Self {
        let mut memory = Self::new(bytes);
        memory.fill_pattern(seed);
        memory
    }

    pub(crate) fn fill_pattern(&mut self, seed: u8) {
        for (index, word) in self.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let value = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 0x0101_0101_0101_0101;
            *word = (value ^ u64::from(seed) << 56).to_ne_bytes();
        }
    }
}

#[cfg(not(miri))]
mod guarded {
    use super::*;

    const GUARD_BYTES: usize = 4096;

    pub(crate) struct Memory {
        mapping: *mut u8,
        bytes: usize,
    }

    impl Memory {
        pub(crate) fn new(bytes: usize) -> Self {
            let total = bytes + 2 * GUARD_BYTES;
            // SAFETY: a new mapping at an address that the system chooses overlaps no other memory.
            let mapping = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(std::ptr::null_mut(), total, libc::PROT_NONE, flags, -1, 0)
            };
            assert_ne!(mapping, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
            let memory = Self { mapping: mapping.cast(), bytes };
            let start = memory.as_ptr().cast_mut();
            // SAFETY: the range is inside the new mapping, whose address no other code has.
            let outcome = unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
            memory
        }
    }

    impl Deref for Memory {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            // SAFETY: the bytes between the guards are mapped and zeroed, and live as long as `self`.
            unsafe { std::slice::from_raw_parts(self.mapping.wrapping_add(GUARD_BYTES), self.bytes) }
        }
    }

    impl DerefMut for Memory {
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: as for `deref`, and `self` is borrowed exclusively.
            unsafe { std::slice::from_raw_parts_mut(self.mapping.wrapping_add(GUARD_BYTES), self.bytes) }
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the `Memory` value owns the mapping, and is being dropped.
            unsafe { libc::munmap(self.mapping.cast(), self.bytes + 2 * GUARD_BYTES) };
        }
    }
}

/// Under miri, plain memory suffices, because miri itself finds accesses outside of the memory.
#[cfg(miri)]
mod heap {
    use super::*;

    pub(crate) struct Memory {
        bytes: Vec<u8>,
        start: usize,
    }

    impl Memory {
        pub(crate) fn new(bytes: usize) -> Self {
            let memory = vec![0; bytes + 4096];
            let start = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
            let mut memory = Self { bytes: memory, start };
            memory.bytes.truncate(start + bytes);
            memory
        }
    }

    impl Deref for Memory {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            &self.bytes[self.start..]
        }
    }

    impl DerefMut for Memory {
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut self.bytes[self.start..]
        }
    }
}
