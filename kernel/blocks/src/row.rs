//! A row is some frames of a pageblock, described by one word: 32 frames on 64-bit machines. The word says
//! which of these frames are free, which are withheld, and where blocks in use begin.
//!
//! Each frame has two bits: one in the word's lower half, one in the upper half.
//!
//! | lower | upper | the frame |
//! |---|---|---|
//! | 1 | 1 | is free |
//! | 0 | 1 | is in use: a block begins here |
//! | 0 | 0 | is in use: the block that begins before goes on |
//! | 1 | 0 | is *withheld*: no memory, or marked bad |
//!
//! So a set upper bit means that no block continues into the frame. A clear upper bit may also belong to a
//! withheld frame. Withheld frames are rare, so a slower path handles frees before them. The fast path of a
//! free compares the block's own bits and the upper bit of the next frame. The upper bit of the next frame
//! must be set.
//!
//! One exchange of the word takes or frees a block, and checks the block's order. If two CPUs free the same
//! block, the second exchange finds that the block is no longer in use.
//!
//! A block that is larger than a row fills whole rows. Its first row also encodes its order, so that one
//! exchange checks the order of a block of several rows, too. The encoding uses words that blocks within one
//! row cannot produce: a block at frame 0 would have 3, 5, 7... frames. One more such word,
//! [`CHANGING`](Row::CHANGING), says that a CPU is changing the block that begins with the row.

use core::fmt;

use pageset_core::{Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

/// Frames of a pageblock.
pub(crate) const FRAMES: usize = PAGEBLOCK_FRAMES as usize;
/// Bits of a word.
pub(crate) const BITS: usize = usize::BITS as usize;
/// Frames of a row. Each frame has two bits of a word.
pub(crate) const ROW_FRAMES: usize = BITS / 2;
/// Rows of a pageblock.
pub(crate) const ROWS: usize = FRAMES / ROW_FRAMES;
/// The order of a block that fills a row.
pub(crate) const ROW_ORDER: usize = ROW_FRAMES.trailing_zeros() as usize;

/// All frames of a row, as bits.
pub(crate) const ALL: usize = usize::MAX >> ROW_FRAMES;

/// For each order, the frames of a row at which a block may begin (`STARTS`) or end (`ENDS`). For orders
/// above a row's, the entry is zero. The number of entries is a power of two, so that a masked index needs no
/// bounds check.
const STARTS: [usize; 16] = places(false);
const ENDS: [usize; 16] = places(true);

const fn places(ends: bool) -> [usize; 16] {
    let mut places = [0; 16];
    let mut order = 0;
    while order <= ROW_ORDER {
        let mut at = 0;
        while at < ROW_FRAMES {
            places[order] |= 1 << if ends { at + (1 << order) - 1 } else { at };
            at += 1 << order;
        }
        order += 1;
    }
    places
}

/// Bit masks for the exchange that checks and changes a block of one order. The masks fit a block at the
/// first frame of a row.
struct Shape {
    /// The bits that the exchange compares: the bits of the block's frames, and the upper bit of the frame
    /// after the block.
    looked_at: usize,
    /// The bits that change when the block is taken or freed. While the block is in use, the bits of
    /// `changes` are clear and the other bits of `looked_at` are set.
    changes: usize,
}

/// The shape of each order. An entry above `ROW_ORDER` matches no block in use.
const SHAPES: [Shape; 8] = {
    let mut shapes = [const { Shape { looked_at: 0, changes: 1 } }; 8];
    let mut index = 0;
    while index <= ROW_ORDER {
        let frames = ALL >> (ROW_FRAMES - (1 << index));
        let next = if index < ROW_ORDER { 1 << (1 << index) } else { 0 };
        shapes[index] = Shape {
            looked_at: frames | (frames | next) << ROW_FRAMES,
            changes: frames | (frames ^ 1) << ROW_FRAMES,
        };
        index += 1;
    }
    shapes
};

/// The word of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) usize);

/// The use of a frame, according to its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Free,
    Withheld,
    /// A block in use with this many frames begins here.
    Head(usize),
    /// The frame belongs to a block that begins before it.
    Inside,
    /// A CPU is changing the block that begins with this row.
    Changing,
}

impl Row {
    /// Every frame is free.
    pub(crate) const FREE: Self = Self(usize::MAX);
    /// Every frame is withheld.
    pub(crate) const WITHHELD: Self = Self(ALL);
    /// Every frame belongs to a block that began in an earlier row.
    pub(crate) const INSIDE: Self = Self(0);
    /// One block in use, which fills the row.
    pub(crate) const HEAD: Self = Self(1 << ROW_FRAMES);
    /// Every frame is in use, each as a block of one frame.
    pub(crate) const SINGLES: Self = Self(ALL << ROW_FRAMES);
    /// One CPU has claimed the block that begins with this row. Only that CPU may change the rows of the
    /// block.
    pub(crate) const CHANGING: Self = Self::of_order(PAGEBLOCK_ORDER + 1);

    /// The first row of a block in use. The order is a row's or larger.
    ///
    /// For orders above a row's, the word has a second upper bit at an odd place. If the second bit began a
    /// second block within the row, the first block would have an odd number of frames. The second block
    /// would begin where no block of its size can begin. So no operation mistakes the word for two small
    /// blocks.
    pub(crate) const fn of_order(order: usize) -> Self {
        let above = order - ROW_ORDER;
        if above == 0 { Self::HEAD } else { Self(Self::HEAD.0 | 1 << (ROW_FRAMES + 2 * above + 1)) }
    }

    /// The order of the block of several rows that begins here, in use or withheld. For
    /// [`CHANGING`](Self::CHANGING), returns one more than a pageblock's order.
    pub(crate) const fn long_order(self) -> Option<usize> {
        let (rest, first) = (self.upper() & !1, self.upper() & 1);
        // A row is long only if its first frame is in use or withheld.
        let is_long = self.lower() ^ first == 1 && rest.is_power_of_two();
        let place = rest.trailing_zeros() as usize;
        if is_long && place % 2 == 1 && place > 1 { Some(ROW_ORDER + place / 2) } else { None }
    }

    /// Returns a row that code for blocks within a row can read. If a block of several rows begins here, the
    /// returned row has one block of the row's size. Otherwise returns the row itself.
    const fn plain(self) -> Self {
        match self.long_order() {
            Some(_) if self.lower() == 0 => Self::HEAD,
            Some(_) => Self(1),
            None => self,
        }
    }

    /// Whether this row belongs to a block of several rows.
    pub(crate) const fn is_long(self) -> bool {
        self.0 == Self::INSIDE.0 || self.long_order().is_some()
    }

    /// The frames in use, as bits.
    pub(crate) const fn in_use(self) -> usize {
        if self.0 == Self::CHANGING.0 { 0 } else { !self.lower() & ALL }
    }

    #[inline]
    const fn lower(self) -> usize {
        self.0 & ALL
    }

    #[inline]
    const fn upper(self) -> usize {
        self.0 >> ROW_FRAMES
    }

    /// The free frames, as bits.
    #[inline]
    pub(crate) const fn free(self) -> usize {
        self.0 & self.upper()
    }

    /// The frames at which blocks in use begin, as bits. The row must not be a part of a block of several
    /// rows.
    #[cfg(test)]
    const fn heads(self) -> usize {
        self.upper() & !self.lower()
    }

    /// The frames in use at which no block begins, as bits. The row must not be a part of a block of several
    /// rows.
    #[inline]
    const fn inside(self) -> usize {
        !(self.lower() | self.upper()) & ALL
    }

    /// The withheld frames, as bits.
    #[inline]
    pub(crate) const fn withheld(self) -> usize {
        self.lower() & !self.upper()
    }

    /// The first frames of free blocks of this order, as bits. `order` is at most `ROW_ORDER`.
    #[inline]
    pub(crate) const fn free_blocks(self, order: Order) -> usize {
        runs(self.free(), order.index()) >> (frames_in(order) - 1)
    }

    /// Whether every frame of the block of this order at frame `at` is free. `order` is at most `ROW_ORDER`.
    #[inline]
    pub(crate) const fn is_free_at(self, at: usize, order: Order) -> bool {
        let frames = (ALL >> (ROW_FRAMES - frames_in(order))) << at;
        self.free() & frames == frames
    }

    /// Returns this row with free blocks of an order taken. `heads` has a bit for each block, at its first
    /// frame.
    #[inline]
    pub(crate) const fn with_taken(self, heads: usize, order: Order) -> Self {
        Self(self.0 ^ changes(heads, order))
    }

    /// Returns this row with the block at this frame taken. `order` is at most `ROW_ORDER`. Returns `None` if
    /// a frame of the block is not free, or if no block of this order can begin there.
    #[inline]
    pub(crate) const fn with_taken_at(self, at: usize, order: Order) -> Option<Self> {
        let is_free = at & (frames_in(order) - 1) == 0 && self.is_free_at(at, order);
        if is_free { Some(Self(self.0 ^ SHAPES[order.index() & 7].changes << at)) } else { None }
    }

    /// Returns this row with blocks of an order freed. `heads` has a bit for each block, at its first frame.
    /// `order` is at most `ROW_ORDER`. Returns `None` if one of the blocks is not in use with this order.
    #[inline]
    pub(crate) const fn with_put(self, heads: usize, order: Order) -> Option<Self> {
        let frames = frames_of(heads, order);
        // The upper bit of the frame after each block. If that bit is clear, the block is larger than
        // `order`, or a withheld frame follows the block.
        let next = heads << frames_in(order);
        let looked_at = frames | (frames | next) << ROW_FRAMES;
        if heads & !STARTS[order.index() & 15] != 0 || self.0 & looked_at != (heads | next) << ROW_FRAMES {
            return self.with_put_before_withheld(heads, order);
        }
        Some(Self(self.0 ^ changes(heads, order)))
    }

    /// Whether a block of this order is in use at this frame. `order` is at most `ROW_ORDER`. Returns `false`
    /// if the frame after the block is withheld.
    #[inline]
    pub(crate) const fn is_plain_block(self, at: usize, order: Order) -> bool {
        let shape = &SHAPES[order.index() & 7];
        // The inversion comes before the shift, so that the bits from beyond the row count as set. So a block
        // may end with the row.
        at & (frames_in(order) - 1) == 0 && (!self.0 >> at) & shape.looked_at == shape.changes
    }

    /// Returns this row with the block at this frame freed. The result is that of
    /// [`with_put`](Self::with_put) for one block, in fewer steps.
    #[inline]
    pub(crate) const fn with_put_at(self, at: usize, order: Order) -> Option<Self> {
        if !self.is_plain_block(at, order) {
            return self.with_put_before_withheld(1 << at, order);
        }
        Some(Self(self.0 ^ SHAPES[order.index() & 7].changes << at))
    }

    /// Does the same as [`with_put`](Self::with_put), even if a withheld frame follows one of the blocks.
    #[cold]
    const fn with_put_before_withheld(self, heads: usize, order: Order) -> Option<Self> {
        let (frames, next) = (frames_of(heads, order), (heads << frames_in(order)) & ALL);
        let is_right = heads & !STARTS[order.index() & 15] == 0
            && self.lower() & frames == 0
            && self.upper() & frames == heads
            && self.inside() & next == 0;
        if is_right { Some(Self(self.0 ^ changes(heads, order))) } else { None }
    }

    /// Returns this row with contiguous frames in use freed. These frames may be parts of any blocks of this
    /// row. The blocks' other frames stay in use, as the largest aligned blocks that fit. Returns `None` if
    /// one of the frames is not in use, or lies in a block of several rows.
    pub(crate) const fn with_part_freed(self, frames: usize) -> Option<Self> {
        if frames == 0 || self.is_long() || self.lower() & frames != 0 {
            return None;
        }
        let end = ROW_FRAMES - (frames << ROW_FRAMES).leading_zeros() as usize;
        let Some(mut cut) = self.with_border(frames.trailing_zeros() as usize) else { return None };
        if end < ROW_FRAMES {
            let Some(both) = cut.with_border(end) else { return None };
            cut = both;
        }
        Some(Self(cut.0 | frames | frames << ROW_FRAMES))
    }

    /// Returns this row with these contiguous free frames taken, as the largest aligned blocks that fit.
    /// Returns `None` if a frame is not free.
    pub(crate) const fn with_part_taken(self, frames: usize) -> Option<Self> {
        if self.free() & frames != frames {
            return None;
        }
        let (mut rest, mut heads) = (frames, 0);
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            heads |= 1 << at;
            // The block at `at` is as large as the alignment of `at` and the length of the free run allow.
            let (mut size, run) = (1, (rest >> at).trailing_ones() as usize);
            while at & size == 0 && 2 * size <= run {
                size *= 2;
            }
            rest &= !((ALL >> (ROW_FRAMES - size)) << at);
        }
        Some(Self(self.0 & !(frames | (frames & !heads) << ROW_FRAMES)))
    }

    /// Returns this row with the block around this frame cut so that a block begins at this frame. The block
    /// is halved until one of its parts begins at this frame. Returns `None` if the block is out of service.
    pub(crate) const fn with_border(self, frame: usize) -> Option<Self> {
        let mut row = self;
        while let Frame::Inside = row.frame(frame) {
            let Some(start) = row.start_before(frame) else { return None };
            let Frame::Head(frames) = row.frame(start) else { return None };
            row = Self(row.0 | 1 << (ROW_FRAMES + start + frames / 2));
        }
        Some(row)
    }

    /// Returns this row with these free frames withheld, or `None` if a frame is not free.
    pub(crate) const fn with_free_withheld(self, frames: usize) -> Option<Self> {
        if self.free() & frames != frames { None } else { Some(Self(self.0 & !(frames << ROW_FRAMES))) }
    }

    /// Returns this row with withheld frames made free. Returns `None` if a frame is not withheld.
    pub(crate) const fn with_freed_withheld(self, frames: usize) -> Option<Self> {
        if self.withheld() & frames != frames { None } else { Some(Self(self.0 | frames << ROW_FRAMES)) }
    }

    /// Returns this row with the block in use at this frame withheld, and the number of frames of the block.
    /// Only the bits of the block's first frame change.
    pub(crate) const fn with_block_withheld(self, frame: usize) -> Option<(Self, usize)> {
        match self.frame(frame) {
            Frame::Head(frames) => Some((Self(self.0 ^ (1 << frame | 1 << (ROW_FRAMES + frame))), frames)),
            _ => None,
        }
    }

    /// Returns this row with each block that has one of these frames split into single frames. Returns `None`
    /// if one of these frames is not in use, or if a block has several rows.
    pub(crate) const fn with_split(self, frames: usize) -> Option<Self> {
        if self.is_long() || self.in_use() & frames != frames {
            return None;
        }
        let (mut row, mut at) = (self, 0);
        while at < ROW_FRAMES {
            if let Frame::Head(size) = self.frame(at) {
                let block = (ALL >> (ROW_FRAMES - size)) << at;
                if block & frames != 0 {
                    row = Self(row.0 | block << ROW_FRAMES);
                }
            }
            at += 1;
        }
        Some(row)
    }

    /// The use of a frame.
    pub(crate) const fn frame(self, frame: usize) -> Frame {
        if self.0 == Self::CHANGING.0 {
            return Frame::Changing;
        }
        let plain = self.plain();
        match (plain.lower() >> frame & 1, plain.upper() >> frame & 1) {
            (1, 0) => Frame::Withheld,
            (1, _) => Frame::Free,
            (_, 0) => Frame::Inside,
            _ => Frame::Head(match self.long_order() {
                Some(order) => 1 << order,
                None => 1 + (plain.inside() >> frame >> 1).trailing_ones() as usize,
            }),
        }
    }

    /// Goes back from this frame to the nearest frame at which a block begins or that is not in use.
    pub(crate) const fn start_before(self, frame: usize) -> Option<usize> {
        let starts = !self.plain().inside() & ALL & (ALL >> (ROW_FRAMES - 1 - frame));
        match starts.checked_ilog2() {
            Some(start) => Some(start as usize),
            None => None,
        }
    }
}

impl fmt::Debug for Row {
    /// Writes one sign for each frame: `.` free, `H` head, `-` inside, `x` withheld, `~` changing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..ROW_FRAMES).try_for_each(|frame| {
            f.write_str(match self.frame(frame) {
                Frame::Free => ".",
                Frame::Withheld => "x",
                Frame::Head(_) => "H",
                Frame::Inside => "-",
                Frame::Changing => "~",
            })
        })
    }
}

/// Finds the blocks of an order whose bits are all set. Returns a bit for each block, at its last frame.
/// Returns zero if the order is larger than a row's.
///
/// Allocations call this function with orders that vary at random. A processor would often mispredict a
/// branch on the order, so the function has none.
#[inline]
const fn runs(bits: usize, order: usize) -> usize {
    let ends = ENDS[order & 15];
    let (clear, others) = (!bits & ALL, ALL & !ends);
    // A clear bit carries into the last bit of its block.
    let has_clear = ((clear & others) + others) | clear;
    ends & !has_clear
}

/// Finds the blocks of the next larger order in two rows. `blocks` has a bit for each block of this order, at
/// its first frame, and the result has such a bit for each larger block.
#[inline]
pub(crate) const fn larger_blocks(blocks: usize, order: usize) -> usize {
    let starts = STARTS[(order + 1) & 15];
    blocks & blocks >> (1 << order) & (starts | starts << ROW_FRAMES)
}

/// The frames of some blocks of an order, as bits. `heads` has a bit for each block, at the block's first
/// frame. For an order above a row's, returns the bits of the block's first row. The subtraction sets the
/// bits up to each block's last frame.
#[inline]
pub(crate) const fn frames_of(heads: usize, order: Order) -> usize {
    (heads << frames_in(order)).wrapping_sub(heads)
}

/// The bits of a row that change when the blocks of `heads` are taken or freed.
#[inline]
const fn changes(heads: usize, order: Order) -> usize {
    let frames = frames_of(heads, order);
    frames | (frames ^ heads) << ROW_FRAMES
}

/// How many frames of a block of this order lie in one row.
#[inline]
const fn frames_in(order: Order) -> usize {
    let order = if order.index() < ROW_ORDER { order.index() } else { ROW_ORDER };
    1 << order
}

/// Returns the lowest set bits of `bits`, at most `limit` of them.
#[inline]
pub(crate) const fn lowest(bits: usize, limit: usize) -> usize {
    if limit == 1 {
        return bits & bits.wrapping_neg();
    }
    if limit >= ROW_FRAMES {
        return bits;
    }
    let (mut rest, mut left) = (bits, limit);
    while rest != 0 && left > 0 {
        rest &= rest - 1;
        left -= 1;
    }
    bits & !rest
}

/// The rows of a range of frames, and the frames in each row as bits. A range without frames has no rows, so
/// that no caller changes a row for an empty range.
pub(crate) fn rows_of(frames: core::ops::Range<usize>) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let end = if frames.is_empty() { frames.start / ROW_FRAMES } else { frames.end.div_ceil(ROW_FRAMES) };
    (frames.start / ROW_FRAMES..end).map(move |row| {
        let first = row * ROW_FRAMES;
        let (from, to) = (frames.start.max(first) - first, frames.end.min(first + ROW_FRAMES) - first);
        (row, (ALL >> (ROW_FRAMES - (to - from))) << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: usize) -> Order {
        Order::new(order as u8).expect("an order")
    }

    /// Takes and frees blocks of a row at random, and compares every answer with a list of the blocks.
    #[test]
    fn a_row_knows_each_block_and_its_order() {
        let mut seed = 7_u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let mut row = Row::FREE;
        let mut blocks: std::vec::Vec<(usize, usize)> = std::vec::Vec::new();
        for _ in 0..20_000 {
            let of = random(ROW_ORDER + 1);
            if random(2) == 0 {
                let heads = lowest(row.free_blocks(order(of)), 1 + random(2));
                row = row.with_taken(heads, order(of));
                let taken = (0..ROW_FRAMES).filter(|at| heads >> at & 1 == 1);
                blocks.extend(taken.map(|at| (at, of)));
            } else {
                let at = random(ROW_FRAMES);
                let put = row.with_put(1 << at, order(of));
                let known = blocks.iter().position(|block| *block == (at, of));
                assert_eq!(put.is_some(), known.is_some(), "{row:?} {at} {of} {blocks:?}");
                assert_eq!(put, row.with_put_at(at, order(of)));
                if let Some((put, known)) = put.zip(known) {
                    row = put;
                    blocks.swap_remove(known);
                }
            }
            for (at, of) in &blocks {
                assert_eq!(row.frame(*at), Frame::Head(1 << of), "{row:?}");
                assert_eq!(row.start_before(at + (1 << of) - 1), Some(*at));
            }
            let in_use: usize = blocks.iter().map(|(_, of)| 1 << of).sum();
            assert_eq!(row.free().count_ones() as usize, ROW_FRAMES - in_use);
            for of in 0..ROW_ORDER {
                let larger = larger_blocks(row.free_blocks(order(of)), of);
                assert_eq!(larger, row.free_blocks(order(of + 1)), "{row:?}");
            }
        }
    }

    #[test]
    fn withheld_frames_are_neither_free_nor_in_use() {
        let row = Row::FREE.with_free_withheld(0b110).unwrap();
        assert_eq!((row.withheld(), row.free(), row.heads(), row.inside()), (0b110, ALL & !0b110, 0, 0));
        assert_eq!(row.with_put(0b10, Order::ZERO), None);
        assert_eq!(row.with_part_freed(0b10), None);
        assert_eq!(row.with_free_withheld(0b10), None);
        assert_eq!(row.with_freed_withheld(0b110), Some(Row::FREE));
    }

    #[test]
    fn parts_of_a_block_that_is_withheld_are_not_freed() {
        let row = Row::FREE.with_taken(0b1_0000, order(2));
        let (withheld, frames) = row.with_block_withheld(4).unwrap();
        assert_eq!((withheld.frame(4), withheld.frame(5), frames), (Frame::Withheld, Frame::Inside, 4));
        for part in [0b1_0000, 0b10_0000, 0b1111_0000, 0b1000_0000] {
            assert_eq!(withheld.with_part_freed(part), None);
        }
        assert_eq!(withheld.with_split(ALL), None);
        assert_eq!(withheld.with_split(0b1_0000), None);
        assert_eq!(withheld.with_block_withheld(4), None);
    }

    #[test]
    fn a_part_of_a_block_leaves_blocks_that_are_aligned() {
        let row = Row::FREE.with_taken(1, order(3));
        let left = row.with_part_freed(0b11_1000).unwrap();
        let frames: std::vec::Vec<_> = (0..8).map(|at| left.frame(at)).collect();
        let (head, free) = (Frame::Head, Frame::Free);
        assert_eq!(frames, [head(2), Frame::Inside, head(1), free, free, free, head(2), Frame::Inside]);
        assert_eq!(left.with_part_freed(0b11_1000), None, "it is free");
        assert_eq!(row.with_split(0b10).map(Row::heads), Some(0xff), "a block is split as a whole");
        assert_eq!(row.with_split(0x180), None, "the second frame is free");
        assert_eq!(row.with_part_freed(0xff), Some(Row::FREE));
    }

    /// Operations on blocks within one row refuse the first row of a block of several rows.
    #[test]
    fn the_first_row_of_several_is_no_blocks_of_one_row() {
        for of in ROW_ORDER + 1..=PAGEBLOCK_ORDER + 1 {
            let row = Row::of_order(of);
            assert_eq!((row.long_order(), row.free(), row.with_split(ALL)), (Some(of), 0, None));
            for small in 0..=ROW_ORDER {
                assert_eq!(row.free_blocks(order(small)), 0);
                assert!((0..ROW_FRAMES).all(|at| row.with_put(1 << at, order(small)).is_none()));
            }
            assert!((0..ROW_FRAMES).all(|at| row.with_part_freed(1 << at).is_none()));
            if of > PAGEBLOCK_ORDER {
                assert_eq!((row, row.in_use(), row.with_block_withheld(0)), (Row::CHANGING, 0, None));
                continue;
            }
            let (withheld, frames) = row.with_block_withheld(0).unwrap();
            assert_eq!((row.frame(0), row.frame(3), frames), (Frame::Head(1 << of), Frame::Inside, 1 << of));
            assert_eq!((withheld.long_order(), withheld.frame(0)), (Some(of), Frame::Withheld));
            assert!((1..ROW_FRAMES).all(|at| withheld.frame(at) == Frame::Inside));
            assert!((0..ROW_FRAMES).all(|at| row.start_before(at) == Some(0)));
        }
        for row in [Row::FREE, Row::WITHHELD, Row::INSIDE, Row::HEAD, Row::SINGLES] {
            assert_eq!(row.long_order(), None);
        }
    }

    #[test]
    fn rows_of_a_range() {
        let rows: std::vec::Vec<_> = rows_of(ROW_FRAMES - 1..2 * ROW_FRAMES + 2).collect();
        assert_eq!(rows, [(0, 1 << (ROW_FRAMES - 1)), (1, ALL), (2, 0b11)]);
        assert!([0, 3, ROW_FRAMES, FRAMES].iter().all(|at| rows_of(*at..*at).next().is_none()));
    }
}
