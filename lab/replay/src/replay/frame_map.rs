//! A table with a value for each frame, which takes memory only near frames that occur in the recording.

use std::num::NonZeroU32;

/// Frames per chunk: 16 KiB of values, so that a stray frame costs little.
const CHUNK_FRAMES: u64 = 4096;

/// Values of the frames of one zone.
#[derive(Debug, Default)]
pub(super) struct FrameMap {
    start_pfn: u64,
    chunks: Vec<Option<Box<[Option<NonZeroU32>]>>>,
}

impl FrameMap {
    /// A map for `frames` frames from `start_pfn` on.
    pub(super) fn new(start_pfn: u64, frames: u64) -> Self {
        let chunks = frames.div_ceil(CHUNK_FRAMES) as usize;
        Self { start_pfn, chunks: std::iter::repeat_with(|| None).take(chunks).collect() }
    }

    fn place(&self, pfn: u64) -> Option<(usize, usize)> {
        let frame = pfn.checked_sub(self.start_pfn)?;
        let chunk = usize::try_from(frame / CHUNK_FRAMES).ok().filter(|chunk| *chunk < self.chunks.len())?;
        Some((chunk, (frame % CHUNK_FRAMES) as usize))
    }

    #[inline]
    pub(super) fn get(&self, pfn: u64) -> Option<NonZeroU32> {
        let (chunk, frame) = self.place(pfn)?;
        self.chunks[chunk].as_ref()?[frame]
    }

    /// Removes and returns the value of a frame.
    #[inline]
    pub(super) fn take(&mut self, pfn: u64) -> Option<NonZeroU32> {
        let (chunk, frame) = self.place(pfn)?;
        self.chunks[chunk].as_mut()?[frame].take()
    }

    /// Sets the value of a frame and returns its old value. Frames outside the map are ignored.
    #[inline]
    pub(super) fn set(&mut self, pfn: u64, value: NonZeroU32) -> Option<NonZeroU32> {
        let (chunk, frame) = self.place(pfn)?;
        let chunk =
            self.chunks[chunk].get_or_insert_with(|| vec![None; CHUNK_FRAMES as usize].into_boxed_slice());
        chunk[frame].replace(value)
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
}
