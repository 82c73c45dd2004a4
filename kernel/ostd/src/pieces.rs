//! The memory that OSTD adds piece by piece before there is an allocator.

use core::ops::Range;

/// The maximum number of pieces. A PC's firmware reports about ten pieces.
pub(crate) const MAX_PIECES: usize = 32;

/// The frame at 4 GiB. OSTD cannot access memory above 4 GiB until its own page table is in use.
const REACH: u64 = 1 << 20;

/// Free memory, as ranges of frames in ascending order.
#[derive(Clone)]
pub(crate) struct Pieces {
    pieces: [Range<u64>; MAX_PIECES],
    len: usize,
}

impl Pieces {
    pub(crate) const fn new() -> Self {
        Self { pieces: [const { 0..0 }; MAX_PIECES], len: 0 }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.pieces[..self.len].iter().cloned()
    }

    pub(crate) fn frames(&self) -> u64 {
        self.iter().map(|piece| piece.end - piece.start).sum()
    }

    /// Adds a piece. Returns `false` if there is no room for the piece.
    pub(crate) fn add(&mut self, frames: Range<u64>) -> bool {
        if frames.is_empty() {
            return true;
        }
        if self.len == MAX_PIECES {
            return false;
        }
        let at = self.iter().position(|piece| piece.start > frames.start).unwrap_or(self.len);
        self.pieces[at..=self.len].rotate_right(1);
        self.pieces[at] = frames;
        self.len += 1;
        true
    }

    /// Takes `frames` frames, aligned to `align`, from the end of the largest piece that OSTD can access this
    /// early.
    pub(crate) fn take(&mut self, frames: u64, align: u64) -> Option<u64> {
        let reach = |piece: &Range<u64>| piece.start..piece.end.min(REACH);
        let len = |piece: &Range<u64>| piece.end.saturating_sub(piece.start);
        let at = (0..self.len).max_by_key(|at| len(&reach(&self.pieces[*at])))?;
        let (piece, inside) = (self.pieces[at].clone(), reach(&self.pieces[at]));
        let start = inside.end.checked_sub(frames)? / align * align;
        if start < inside.start {
            return None;
        }
        // Frames that alignment skips stay free.
        self.pieces[at].end = start;
        if self.add(start + frames..piece.end) { Some(start) } else { None }
    }
}
