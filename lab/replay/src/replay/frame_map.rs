//! A table with a value for each frame. The table takes memory only near frames that have a value.

use std::num::NonZeroU32;

use crate::memory;

/// Number of frames in a chunk. A chunk has 4 KiB of values, so that a single frame far from all other frames
/// takes little memory.
const CHUNK_FRAMES: usize = 1024;

/// Maximum number of chunks without values that are kept for reuse.
const SPARE_MAX: usize = 64;

/// Values of the frames of one zone.
#[derive(Debug, Default)]
pub(super) struct FrameMap {
    start_pfn: u64,
    chunks: Vec<Option<Chunk>>,
    spare: Vec<Chunk>,
    /// Number of chunks with values.
    used: usize,
    is_short_of_memory: bool,
}

#[derive(Debug)]
struct Chunk {
    values: Box<[Option<NonZeroU32>]>,
    /// Number of frames with a value.
    used: u32,
}

impl Chunk {
    /// Makes a chunk without values. `None` if memory is short.
    fn new() -> Option<Self> {
        Some(Self { values: memory::filled(CHUNK_FRAMES, None)?, used: 0 })
    }
}

impl FrameMap {
    /// A map for `frames` frames from `start_pfn` on.
    pub(super) fn new(start_pfn: u64, frames: u64) -> Self {
        let chunks = frames.div_ceil(CHUNK_FRAMES as u64) as usize;
        let chunks = std::iter::repeat_with(|| None).take(chunks).collect();
        Self { start_pfn, chunks, ..Self::default() }
    }

    /// Returns the number of bytes of all chunks with values, plus the bytes of one more chunk. Returns
    /// `None` unless the map has failed to get memory.
    pub(super) fn wanted_bytes(&self) -> Option<u64> {
        let bytes = ((self.used + 1) * CHUNK_FRAMES * size_of::<Option<NonZeroU32>>()) as u64;
        self.is_short_of_memory.then_some(bytes)
    }

    fn place(&self, pfn: u64) -> Option<(usize, usize)> {
        let frame = usize::try_from(pfn.checked_sub(self.start_pfn)?).ok()?;
        let chunk = Some(frame / CHUNK_FRAMES).filter(|chunk| *chunk < self.chunks.len())?;
        Some((chunk, frame % CHUNK_FRAMES))
    }

    /// Makes a chunk, unless memory is short.
    #[cold]
    fn new_chunk(&self) -> Option<Chunk> {
        if self.is_short_of_memory || memory::is_short_for(self.used) { None } else { Chunk::new() }
    }

    #[inline]
    pub(super) fn get(&self, pfn: u64) -> Option<NonZeroU32> {
        let (chunk, frame) = self.place(pfn)?;
        self.chunks[chunk].as_ref()?.values[frame]
    }

    /// Removes and returns the value of a frame.
    #[inline]
    pub(super) fn take(&mut self, pfn: u64) -> Option<NonZeroU32> {
        let (at, frame) = self.place(pfn)?;
        let chunk = self.chunks[at].as_mut()?;
        let value = chunk.values[frame].take()?;
        chunk.used -= 1;
        if chunk.used == 0 {
            self.used -= 1;
            self.spare.extend(self.chunks[at].take().filter(|_| self.spare.len() < SPARE_MAX));
        }
        Some(value)
    }

    /// Sets the value of a frame and returns its old value. Frames outside the map are ignored. If memory is
    /// short, the value is lost, and [`FrameMap::wanted_bytes`] returns a number from then on.
    #[inline]
    pub(super) fn set(&mut self, pfn: u64, value: NonZeroU32) -> Option<NonZeroU32> {
        let (at, frame) = self.place(pfn)?;
        if self.chunks[at].is_none() {
            self.chunks[at] = self.spare.pop().or_else(|| self.new_chunk());
            self.used += usize::from(self.chunks[at].is_some());
        }
        let Some(chunk) = &mut self.chunks[at] else {
            self.is_short_of_memory = true;
            return None;
        };
        let before = chunk.values[frame].replace(value);
        chunk.used += u32::from(before.is_none());
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_once() {
        let mut map = FrameMap::new(1000, 10_000);
        let one = NonZeroU32::new(1).unwrap();
        assert_eq!(map.set(1000, one), None);
        assert_eq!(map.set(10_999, one), None);
        assert_eq!([1000, 1001, 999].map(|pfn| map.get(pfn)), [Some(one), None, None]);
        assert_eq!(map.set(1000, one), Some(one));
        assert_eq!(map.take(1000), Some(one));
        assert_eq!(map.take(1000), None);
        assert_eq!(map.set(999, one), None, "outside");
        assert_eq!(map.take(u64::MAX), None);
    }

    #[test]
    fn chunks_without_values_take_no_memory() {
        let frames = 100 * CHUNK_FRAMES as u64;
        let mut map = FrameMap::new(0, frames);
        let one = NonZeroU32::new(1).unwrap();
        for pfn in 0..frames {
            assert_eq!((map.set(pfn, one), map.set(pfn, one)), (None, Some(one)));
            // Only the last 1500 frames have values.
            if let Some(earlier) = pfn.checked_sub(1500) {
                assert_eq!((map.take(earlier), map.take(earlier)), (Some(one), None));
            }
            assert!(map.chunks.iter().flatten().count() <= 3 && map.used <= 3);
            assert!(map.spare.len() <= 2, "{}", map.spare.len());
        }
        assert_eq!(map.wanted_bytes(), None);
        assert!((0..frames).all(|pfn| map.set(pfn, one).is_none_or(|before| before == one)));
        assert!((0..frames).all(|pfn| map.take(pfn) == Some(one)));
        assert_eq!((map.used, map.spare.len()), (0, SPARE_MAX));
    }
}
