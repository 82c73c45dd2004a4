//! The frames of a row, in one word: which are free, where blocks in use begin, and which nobody has.
//!
//! Each frame has two bits: one in the word's lower half, one in the upper half.
//!
//! | lower | upper | the frame |
//! |---|---|---|
//! | 1 | 1 | is free |
//! | 0 | 1 | is in use: a block begins here |
//! | 0 | 0 | is in use: the block that begins before goes on |
//! | 1 | 0 | is *withheld*: no memory, or out of service |
//!
//! So the upper bit says where a block cannot go on, but for withheld frames, of which there are few. A free compares once: the block's
//! frames, and that the next frame has an upper bit.
//!
//! One exchange of the word takes a block or frees it, and checks the block's order on the way. So of two that free a block, one
//! finds that it is no block in use any more.
//!
//! A block of several rows has whole rows. Its first word says its order too, so that one exchange checks that as well. For this there
//! are words that no blocks of one row can make: a block at frame 0 would have 3, 5, 7... frames there. One more of them says that a CPU
//! [changes](Row::CHANGING) the block that begins with this row.

use core::fmt;

use pageset_core::{Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

/// Frames of a pageblock.
pub(crate) const FRAMES: usize = PAGEBLOCK_FRAMES as usize;
/// Frames of a row.
pub(crate) const ROW_FRAMES: usize = usize::BITS as usize / 2;
/// Rows of a pageblock.
pub(crate) const ROWS: usize = FRAMES / ROW_FRAMES;
/// The order whose blocks are a row each.
pub(crate) const ROW_ORDER: usize = ROW_FRAMES.trailing_zeros() as usize;

/// All frames of a row, as bits.
pub(crate) const ALL: usize = usize::MAX >> ROW_FRAMES;

/// By order, where a block of a row at most may begin; `ENDS`: where it may end. Nothing for larger orders. A power of two of entries, so
/// that each place is one without a check.
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

/// What a block of an order at the first frame of a row looks like.
struct Shape {
    /// Its bits, and the upper one of the next frame.
    looked_at: usize,
    /// The bits that change when it is taken or freed: of those looked at, they are clear if it is in use.
    changes: usize,
}

/// By order. Nothing is in use of an order larger than a row's.
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

/// What the frames of a row are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) usize);

/// What a frame is, as far as its row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Free,
    Withheld,
    /// A block in use begins here, of so many frames.
    Head(usize),
    /// A block in use begins before.
    Inside,
    /// A CPU changes the block that begins with this row.
    Changing,
}

impl Row {
    /// Every frame is free.
    pub(crate) const FREE: Self = Self(usize::MAX);
    /// Every frame is withheld.
    pub(crate) const WITHHELD: Self = Self(ALL);
    /// A block goes on in every frame.
    pub(crate) const INSIDE: Self = Self(0);
    /// A block begins with the first frame, and has the whole row and no more.
    pub(crate) const HEAD: Self = Self(1 << ROW_FRAMES);
    /// Every frame is a block in use.
    pub(crate) const SINGLES: Self = Self(ALL << ROW_FRAMES);
    /// One CPU has this row for itself, and the rows in which a block goes on from here.
    pub(crate) const CHANGING: Self = Self::of_order(PAGEBLOCK_ORDER + 1);

    /// A block in use of this order, a row's at least, begins with the first frame.
    ///
    /// With the second bit, which is at an odd place, no block of one row is right here: the first one would have an odd number of frames,
    /// and the second one would begin where none can. So neither can be taken or freed.
    pub(crate) const fn of_order(order: usize) -> Self {
        let above = order - ROW_ORDER;
        if above == 0 { Self::HEAD } else { Self(Self::HEAD.0 | 1 << (ROW_FRAMES + 2 * above + 1)) }
    }

    /// The order of the block of several rows that begins here, in use or withheld; one more than a pageblock's for
    /// [`CHANGING`](Self::CHANGING).
    pub(crate) const fn long_order(self) -> Option<usize> {
        let (rest, first) = (self.upper() & !1, self.upper() & 1);
        // In use or withheld.
        let is_long = self.lower() ^ first == 1 && rest.is_power_of_two();
        let place = rest.trailing_zeros() as usize;
        if is_long && place % 2 == 1 && place > 1 { Some(ROW_ORDER + place / 2) } else { None }
    }

    /// As a row of one block, if a block of several rows begins here.
    const fn plain(self) -> Self {
        match self.long_order() {
            Some(_) if self.lower() == 0 => Self::HEAD,
            Some(_) => Self(1),
            None => self,
        }
    }

    /// Whether a block of several rows begins here or goes on.
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

    /// The frames at which blocks in use begin, if none has several rows.
    #[cfg(test)]
    const fn heads(self) -> usize {
        self.upper() & !self.lower()
    }

    /// The frames in which a block goes on, if none has several rows.
    #[inline]
    const fn inside(self) -> usize {
        !(self.lower() | self.upper()) & ALL
    }

    /// The frames that nobody has.
    #[inline]
    pub(crate) const fn withheld(self) -> usize {
        self.lower() & !self.upper()
    }

    /// Where free blocks of this order, a row's at most, begin.
    #[inline]
    pub(crate) const fn free_blocks(self, order: Order) -> usize {
        runs(self.free(), order.index()) >> (frames_in(order) - 1)
    }

    /// Whether a block of this order is free in this row. None is if the order is larger than a row's.
    #[inline]
    pub(crate) const fn has_free(self, order: usize) -> bool {
        runs(self.free(), order) != 0
    }

    /// The orders of its free blocks, a bit each. Not counted are blocks that are part of a larger one in this row.
    #[inline]
    pub(crate) const fn free_orders(self) -> usize {
        let (mut blocks, mut orders, mut order) = (self.free(), 0, 0);
        while order < ROW_ORDER {
            let larger = larger_blocks(blocks, order);
            orders |= (blocks != larger | larger << (1 << order)) as usize * (1 << order);
            (blocks, order) = (larger, order + 1);
        }
        orders | (blocks & 1) << ROW_ORDER
    }

    /// Whether all of the block of this order, a row's at most, that begins at this frame is free.
    #[inline]
    pub(crate) const fn is_free_at(self, at: usize, order: Order) -> bool {
        let frames = (ALL >> (ROW_FRAMES - frames_in(order))) << at;
        self.free() & frames == frames
    }

    /// With these free blocks of an order in use.
    #[inline]
    pub(crate) const fn with_taken(self, heads: usize, order: Order) -> Self {
        Self(self.0 ^ changes(heads, order))
    }

    /// With the block of this order, a row's at most, that begins at this frame in use. `None` if a frame of it is not free, or none can
    /// begin there.
    #[inline]
    pub(crate) const fn with_taken_at(self, at: usize, order: Order) -> Option<Self> {
        let is_free = at & (frames_in(order) - 1) == 0 && self.is_free_at(at, order);
        if is_free { Some(Self(self.0 ^ SHAPES[order.index() & 7].changes << at)) } else { None }
    }

    /// With these blocks of an order, a row's at most, free. `None` if one of them is no block in use of this order, as far as this row
    /// tells.
    #[inline]
    pub(crate) const fn with_put(self, heads: usize, order: Order) -> Option<Self> {
        let frames = frames_of(heads, order);
        // Where the next block begins, or else the block is larger.
        let next = heads << frames_in(order);
        let looked_at = frames | (frames | next) << ROW_FRAMES;
        if heads & !STARTS[order.index() & 15] != 0 || self.0 & looked_at != (heads | next) << ROW_FRAMES {
            return self.with_put_before_withheld(heads, order);
        }
        Some(Self(self.0 ^ changes(heads, order)))
    }

    /// Whether the block of this order, a row's at most, that begins at this frame is in use. `false` if the frame after it is withheld.
    #[inline]
    pub(crate) const fn is_plain_block(self, at: usize, order: Order) -> bool {
        let shape = &SHAPES[order.index() & 7];
        // Shifted the other way round, so that a next row counts as one that does not go on with the block.
        at & (frames_in(order) - 1) == 0 && (!self.0 >> at) & shape.looked_at == shape.changes
    }

    /// With the block of this order that begins at this frame free: as [`with_put`](Self::with_put), in fewer steps.
    #[inline]
    pub(crate) const fn with_put_at(self, at: usize, order: Order) -> Option<Self> {
        if !self.is_plain_block(at, order) {
            return self.with_put_before_withheld(1 << at, order);
        }
        Some(Self(self.0 ^ SHAPES[order.index() & 7].changes << at))
    }

    /// The same if a withheld frame may follow one of the blocks.
    #[cold]
    const fn with_put_before_withheld(self, heads: usize, order: Order) -> Option<Self> {
        let (frames, next) = (frames_of(heads, order), (heads << frames_in(order)) & ALL);
        let is_right = heads & !STARTS[order.index() & 15] == 0
            && self.lower() & frames == 0
            && self.upper() & frames == heads
            && self.inside() & next == 0;
        if is_right { Some(Self(self.0 ^ changes(heads, order))) } else { None }
    }

    /// With these frames, which lie together and must be in use, free, whatever blocks of one row they are parts of. What is left of those
    /// is the largest blocks that fit. `None` if one of the frames is not in use, or lies in a block of several rows.
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

    /// With these frames, which lie together, in use, as the largest blocks that fit. `None` if one of them is not free.
    pub(crate) const fn with_part_taken(self, frames: usize) -> Option<Self> {
        if self.free() & frames != frames {
            return None;
        }
        let (mut rest, mut heads) = (frames, 0);
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            heads |= 1 << at;
            // As large as the frame's place and the rest allow.
            let (mut size, run) = (1, (rest >> at).trailing_ones() as usize);
            while at & size == 0 && 2 * size <= run {
                size *= 2;
            }
            rest &= !((ALL >> (ROW_FRAMES - size)) << at);
        }
        Some(Self(self.0 & !(frames | (frames & !heads) << ROW_FRAMES)))
    }

    /// With a border between blocks before this frame: a block that has it inside is cut, in halves, and the half that still has it inside
    /// again. `None` if that block is out of service.
    pub(crate) const fn with_border(self, frame: usize) -> Option<Self> {
        let mut row = self;
        while let Frame::Inside = row.frame(frame) {
            let Some(start) = row.start_before(frame) else { return None };
            let Frame::Head(frames) = row.frame(start) else { return None };
            row = Self(row.0 | 1 << (ROW_FRAMES + start + frames / 2));
        }
        Some(row)
    }

    /// With these frames, which must be free, as blocks of one frame or withheld. `None` if one is not free.
    pub(crate) const fn with_free_withheld(self, frames: usize) -> Option<Self> {
        if self.free() & frames != frames { None } else { Some(Self(self.0 & !(frames << ROW_FRAMES))) }
    }

    /// With these withheld frames free. `None` if one is not withheld.
    pub(crate) const fn with_freed_withheld(self, frames: usize) -> Option<Self> {
        if self.withheld() & frames != frames { None } else { Some(Self(self.0 | frames << ROW_FRAMES)) }
    }

    /// With a block in use that begins at this frame withheld: its first frame says so, the others go on as they do. And how many frames
    /// it has.
    pub(crate) const fn with_block_withheld(self, frame: usize) -> Option<(Self, usize)> {
        match self.frame(frame) {
            Frame::Head(frames) => Some((Self(self.0 ^ (1 << frame | 1 << (ROW_FRAMES + frame))), frames)),
            _ => None,
        }
    }

    /// With all blocks in use that have one of these frames as blocks of one frame. `None` if one has several rows.
    pub(crate) const fn with_split(self, frames: usize) -> Option<Self> {
        if self.is_long() {
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

    /// What a frame is.
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

    /// The last frame up to this one that is not inside a block.
    pub(crate) const fn start_before(self, frame: usize) -> Option<usize> {
        let starts = !self.plain().inside() & ALL & (ALL >> (ROW_FRAMES - 1 - frame));
        match starts.checked_ilog2() {
            Some(start) => Some(start as usize),
            None => None,
        }
    }
}

impl fmt::Debug for Row {
    /// One sign a frame: `.` free, `H` head, `-` inside, `x` withheld, `~` changing.
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

/// Where blocks of an order end of which all bits are set. Nothing if the order is larger than a row's.
///
/// Each allocation and free asks this, for orders that come in no order. So no branch depends on the order: processors would guess wrong
/// often.
#[inline]
const fn runs(bits: usize, order: usize) -> usize {
    let ends = ENDS[order & 15];
    let (clear, others) = (!bits & ALL, ALL & !ends);
    // A clear bit carries into its block's last bit.
    let has_clear = ((clear & others) + others) | clear;
    ends & !has_clear
}

/// Where blocks of the next larger order begin, in two rows, by where those of this order do.
#[inline]
pub(crate) const fn larger_blocks(blocks: usize, order: usize) -> usize {
    let starts = STARTS[(order + 1) & 15];
    blocks & blocks >> (1 << order) & (starts | starts << ROW_FRAMES)
}

/// All frames of blocks of an order, a row's at most, by a bit for each first one: as many below the next block's first frame.
#[inline]
pub(crate) const fn frames_of(heads: usize, order: Order) -> usize {
    (heads << frames_in(order)).wrapping_sub(heads)
}

/// The bits that change when these blocks are taken or freed.
#[inline]
const fn changes(heads: usize, order: Order) -> usize {
    let frames = frames_of(heads, order);
    frames | (frames ^ heads) << ROW_FRAMES
}

/// Frames of a block of this order in one row.
#[inline]
const fn frames_in(order: Order) -> usize {
    let order = if order.index() < ROW_ORDER { order.index() } else { ROW_ORDER };
    1 << order
}

/// The lowest bits, `limit` at most.
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

/// The rows of some frames of a pageblock, and which frames of each as bits.
pub(crate) fn rows_of(frames: core::ops::Range<usize>) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    (frames.start / ROW_FRAMES..frames.end.div_ceil(ROW_FRAMES)).map(move |row| {
        let first = row * ROW_FRAMES;
        let (from, to) = (frames.start.max(first) - first, frames.end.min(first + ROW_FRAMES) - first);
        (row, if from < to { (ALL >> (ROW_FRAMES - (to - from))) << from } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: usize) -> Order {
        Order::new(order as u8).expect("an order")
    }

    /// A row's blocks, taken and freed at random beside a list of them: every answer is the list's.
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
        assert_eq!(withheld.with_split(ALL), Some(withheld));
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
        assert_eq!(row.with_part_freed(0xff), Some(Row::FREE));
    }

    /// Whatever one row can be asked for, such a word refuses it.
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
        assert_eq!(rows_of(3..3).map(|(_, frames)| frames).sum::<usize>(), 0);
    }
}
