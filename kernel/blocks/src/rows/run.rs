//! A run is any number of contiguous frames of a pageblock.

use core::ops::Range;

use super::{Refused, Rows, Use};
use crate::access::Access;
use crate::row::{BITS, FRAMES, ROW_FRAMES, ROW_ORDER, ROWS, rows_of};

impl<A: Access> Rows<A> {
    /// Takes a run of exactly this many frames out of the shortest free run that is long enough. Returns the
    /// first frame of the run. The run consists of the largest aligned blocks that fit. Free the run with
    /// [`free_first`](Self::free_first). Race: another CPU takes a frame of the run meanwhile. This call
    /// loses: it gives back the frames that it has taken, calls `put_back`, and tries again. In `put_back`,
    /// the caller handles those frames as newly freed ones, because other CPUs did not see them as free for a
    /// moment.
    pub(crate) fn take_run(&self, frames: usize, put_back: impl Fn()) -> Option<usize> {
        // Race: an attempt fails because another CPU has taken a frame. So some CPU makes progress in each
        // round.
        loop {
            let first = self.best_run(frames)?;
            if self.take_range(first..first + frames) {
                return Some(first);
            }
            put_back();
        }
    }

    /// Takes these frames, if all are free, as the largest aligned blocks that fit.
    ///
    /// Race: another CPU takes one of the frames meanwhile. Then this call loses and returns the pieces that
    /// it took. No other CPU has a piece of this call, so no other CPU frees such a piece.
    pub(crate) fn take_range(&self, frames: Range<usize>) -> bool {
        let Some(in_use) = pieces(frames.clone()).find(|piece| !self.take_piece(piece)) else { return true };
        pieces(frames.start..in_use.start).for_each(|piece| self.put_piece(&piece));
        false
    }

    fn take_piece(&self, piece: &Range<usize>) -> bool {
        if piece.len() > ROW_FRAMES {
            return self.take_rows(piece.start / ROW_FRAMES, piece.len() / ROW_FRAMES);
        }
        rows_of(piece.clone()).all(|(row, part)| self.change(row, |now| now.with_part_taken(part)).is_ok())
    }

    /// Frees a piece that this CPU has just taken.
    fn put_piece(&self, piece: &Range<usize>) {
        if piece.len() > ROW_FRAMES {
            self.put_rows(piece.start / ROW_FRAMES, piece.len().ilog2() as usize).ok();
        } else {
            rows_of(piece.clone()).for_each(|(row, part)| {
                self.change(row, |now| now.with_part_freed(part)).ok();
            });
        }
    }

    /// The free runs, in ascending order.
    pub(crate) fn free_runs(&self) -> impl Iterator<Item = Range<usize>> + use<A> {
        let free = self.free_frames();
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = next_free(&free, at)?;
            at = first + run_at(&free, first);
            Some(first..at)
        })
    }

    /// Cuts the block around a frame in use until a block begins at the frame.
    pub(crate) fn cut_before(&self, frame: usize) -> Result<(), Refused> {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        loop {
            match self.look(frame) {
                Use::Block(start, _) if start == frame => return Ok(()),
                Use::Block(start, order) if order.index() > ROW_ORDER => {
                    self.cut(start / ROW_FRAMES, order.index())?;
                }
                // Race: another CPU changes the row after the look. This exchange then cuts what is there
                // now, or changes nothing, and the loop looks again.
                Use::Block(..) => {
                    self.change(row, |now| now.with_border(at)).map(|_| ()).or(Err(Refused::Changing))?
                }
                Use::Changing => return Err(Refused::Changing),
                Use::Free | Use::Withheld | Use::InsideWithheld => return Err(Refused::NoBlock),
            }
        }
    }

    /// The first frame of the shortest free run that has at least this many frames.
    fn best_run(&self, frames: usize) -> Option<usize> {
        let free = self.free_frames();
        // `enough` has a bit for each frame at which a free run of at least `length` frames begins. `length`
        // doubles until it is the wanted number.
        let (mut enough, mut length) = (free, 1);
        while length < frames {
            let more = length.min(frames - length);
            let behind = moved_down(&enough, more);
            enough.iter_mut().zip(behind).for_each(|(bits, behind)| *bits &= behind);
            length += more;
        }
        let (mut best, mut shortest) = (None, usize::MAX);
        let mut before = 0;
        for (word, bits) in enough.into_iter().enumerate() {
            // Keep only the first frame of each run.
            let mut firsts = bits & !(free[word] << 1 | before >> (BITS - 1));
            before = free[word];
            while firsts != 0 {
                let first = word * BITS + firsts.trailing_zeros() as usize;
                firsts &= firsts - 1;
                let length = run_at(&free, first);
                if length < shortest {
                    (best, shortest) = (Some(first), length);
                }
            }
        }
        best
    }
}

/// Shifts all bits down by `frames`, across words.
fn moved_down(bits: &[usize; ROWS / 2], frames: usize) -> [usize; ROWS / 2] {
    let (words, rest) = (frames / BITS, frames % BITS);
    core::array::from_fn(|at| {
        let word = |at: usize| bits.get(at).copied().unwrap_or(0);
        let above = if rest == 0 { 0 } else { word(at + words + 1) << (BITS - rest) };
        word(at + words) >> rest | above
    })
}

/// The first free frame from this one on.
fn next_free(free: &[usize; ROWS / 2], from: usize) -> Option<usize> {
    let mut at = from;
    while at < FRAMES {
        let bits = free[at / BITS] >> (at % BITS);
        if bits != 0 {
            return Some(at + bits.trailing_zeros() as usize);
        }
        at = (at / BITS + 1) * BITS;
    }
    None
}

/// The length of the free run that begins at this frame.
fn run_at(free: &[usize; ROWS / 2], first: usize) -> usize {
    let mut at = first;
    while at < FRAMES {
        let left = BITS - at % BITS;
        let run = (free[at / BITS] >> (at % BITS)).trailing_ones() as usize;
        at += run.min(left);
        if run < left {
            break;
        }
    }
    at - first
}

/// Cuts a run into pieces. A piece is the frames of one row, or the largest aligned block of several rows
/// that fits. If a shorter run begins at the same frame and ends where a piece ends, its pieces are the same.
fn pieces(frames: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = frames.start;
    core::iter::from_fn(move || {
        let (first, left) = (at, frames.end - at);
        let to_row_end = ROW_FRAMES - at % ROW_FRAMES;
        if left == 0 {
            return None;
        }
        let mut size = to_row_end.min(left);
        while size >= ROW_FRAMES && first & size == 0 && 2 * size <= left {
            size *= 2;
        }
        at += size;
        Some(first..at)
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Takes and frees runs of 1 to 100 frames at random, and compares the rows with the list of used frames.
    #[test]
    fn a_run_is_taken_where_it_fits_best() {
        let rows = <Rows>::new();
        rows.open();
        let mut used = [false; FRAMES];
        let mut runs = std::vec::Vec::new();
        let mut seed = 3_u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..if cfg!(miri) { 200 } else { 5000 } {
            if random(2) == 0 && !runs.is_empty() {
                let mut run: Range<usize> = runs.swap_remove(random(runs.len()));
                used[run.clone()].fill(false);
                while !run.is_empty() {
                    run.start += rows.free_first(run.clone()).expect("all in use").0;
                }
                continue;
            }
            let frames = 1 + random(100);
            let lengths = used.chunk_by(|one, next| one == next).filter(|run| !run[0]).map(<[bool]>::len);
            let shortest = lengths.filter(|length| *length >= frames).min();
            let taken = rows.take_run(frames, || ());
            assert_eq!(taken.is_some(), shortest.is_some());
            let Some(first) = taken else { continue };
            let before = used[..first].iter().rev().take_while(|used| !**used).count();
            let after = used[first..].iter().take_while(|used| !**used).count();
            assert_eq!(Some(before + after), shortest);
            used[first..first + frames].fill(true);
            runs.push(first..first + frames);
            assert_eq!(rows.free(), used.iter().filter(|used| !**used).count());
        }
    }
}
