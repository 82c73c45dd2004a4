//! A simple model of a pool: frames in use, and pageblocks out of service.

use std::collections::BTreeSet;

use pageset::{AllocError, Order, PAGE_BYTES};

/// Frames of a pageblock. A resize moves whole pageblocks.
const BLOCK_FRAMES: usize = 512;
/// Bytes of a pageblock.
const BLOCK_BYTES: usize = BLOCK_FRAMES * PAGE_BYTES;

/// A pool, frame by frame.
pub(super) struct Model {
    /// Whether the frame is in use.
    is_used: Vec<bool>,
    used: usize,
    capacity: usize,
    /// The most frames that may be in use. After the capacity has fallen below the number of used frames, the
    /// limit exceeds the capacity until the arrays are drained.
    limit: usize,
    /// Pageblocks out of service.
    retired: BTreeSet<usize>,
}

impl Model {
    pub(super) fn new(bytes: usize, capacity: Option<usize>) -> Self {
        let frames = bytes / PAGE_BYTES;
        let capacity = capacity.map_or(frames, |bytes| bytes / PAGE_BYTES).min(frames);
        Self { is_used: vec![false; frames], used: 0, capacity, limit: capacity, retired: BTreeSet::new() }
    }

    pub(super) fn frames(&self) -> usize {
        self.is_used.len()
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn retired_frames(&self) -> usize {
        self.retired.len() * BLOCK_FRAMES
    }

    /// The number of single pages that can be allocated.
    pub(super) fn available(&self) -> usize {
        let free = self.frames() - self.used - self.retired_frames();
        free.min(self.capacity.saturating_sub(self.used))
    }

    fn is_free(&self, frame: usize) -> bool {
        self.is_used.get(frame).is_some_and(|used| !used) && !self.retired.contains(&(frame / BLOCK_FRAMES))
    }

    /// Whether all of these frames are free.
    pub(super) fn are_free(&self, first: usize, count: usize) -> bool {
        (first..first + count).all(|frame| self.is_free(frame))
    }

    /// Whether all of these frames are in use.
    pub(super) fn are_used(&self, first: usize, count: usize) -> bool {
        (first..first + count).all(|frame| self.is_used.get(frame).is_some_and(|used| *used))
    }

    /// Returns the expected outcome of the allocation of a block. The allocation fails only if no block of
    /// this order is free, or if the block exceeds the capacity.
    pub(super) fn alloc(&self, order: Order) -> Result<(), AllocError> {
        self.alloc_frames(order, order.frames() as usize)
    }

    /// Returns the expected outcome of the allocation of more frames than a block has. The allocation fails
    /// only if no run of `count` frames is free, or if the run exceeds the capacity.
    pub(super) fn alloc_run(&self, count: usize) -> Result<(), AllocError> {
        if self.used + count > self.capacity && self.capacity < self.frames() {
            return Err(AllocError::OverCapacity);
        }
        let mut together = 0;
        let is_there = (0..self.frames()).any(|frame| {
            together = if self.is_free(frame) { together + 1 } else { 0 };
            together >= count
        });
        if is_there { Ok(()) } else { Err(AllocError::NoRun { page_count: count }) }
    }

    /// Returns the expected outcome of the allocation of `count` frames. The allocation fails only if no
    /// block of this order is free, or if the frames exceed the capacity.
    pub(super) fn alloc_frames(&self, order: Order, count: usize) -> Result<(), AllocError> {
        let frames = order.frames() as usize;
        if self.used + count > self.capacity && self.capacity < self.frames() {
            return Err(AllocError::OverCapacity);
        }
        let is_there = (0..self.frames()).step_by(frames).any(|first| self.are_free(first, frames));
        if is_there { Ok(()) } else { Err(AllocError::OutOfMemory { order }) }
    }

    /// The expected outcome of an allocation at a given place.
    pub(super) fn alloc_at(&self, first: usize, order: Order) -> Result<(), AllocError> {
        let frames = order.frames() as usize;
        if !first.is_multiple_of(frames) || first + frames > self.frames() {
            Err(AllocError::BadFrame)
        } else if self.used + frames > self.capacity {
            Err(AllocError::OverCapacity)
        } else if !self.are_free(first, frames) {
            Err(AllocError::NotFree)
        } else {
            Ok(())
        }
    }

    /// Whether arrays may hold single pages beyond the capacity.
    pub(super) fn may_exceed(&self) -> bool {
        self.limit > self.capacity
    }

    /// Notes that the arrays are empty.
    pub(super) fn note_drained(&mut self) {
        self.limit = self.capacity.max(self.used);
    }

    /// Notes that frames were allocated.
    #[track_caller]
    pub(super) fn take(&mut self, first: usize, count: usize) {
        assert!(count > 0 && self.are_free(first, count), "{count} frames from {first} on are not free");
        self.is_used[first..first + count].fill(true);
        self.used += count;
        assert!(self.used <= self.limit, "beyond the capacity");
    }

    /// Notes that frames were freed.
    #[track_caller]
    pub(super) fn put(&mut self, first: usize, count: usize) {
        assert!(self.are_used(first, count), "{count} frames from {first} on have no owner");
        self.is_used[first..first + count].fill(false);
        self.used -= count;
    }

    /// Resizes the pool. Returns the bytes in service.
    pub(super) fn resize(&mut self, bytes: usize) -> usize {
        let all = self.frames() * PAGE_BYTES;
        let in_service = |retired: &BTreeSet<usize>| all - retired.len() * BLOCK_BYTES;
        // The pool takes the lowest pageblock back into service first.
        while !self.retired.is_empty() && in_service(&self.retired) + BLOCK_BYTES <= bytes {
            self.retired.pop_first();
        }
        for block in (0..self.frames() / BLOCK_FRAMES).rev() {
            if in_service(&self.retired) > bytes && self.are_free(block * BLOCK_FRAMES, BLOCK_FRAMES) {
                self.retired.insert(block);
            }
        }
        self.capacity = bytes.min(all) / PAGE_BYTES;
        self.note_drained();
        in_service(&self.retired)
    }
}
