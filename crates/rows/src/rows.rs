//! The frames of one pageblock, as rows that any CPU may change at any time.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! A block of a row or less comes and goes by one exchange of its row. Of two exchanges of one row the second one fails, and looks
//! again: a frame that another CPU took is not free any more, a block that another CPU freed is no block in use. So each race of two
//! such operations ends as if one had come after the other.
//!
//! A block of several rows is taken and freed row by row. While that goes on, its rows are *withheld*, and no operation touches a
//! withheld frame:
//!
//! - [`take`](Rows::take): each row goes from free to withheld. Another CPU that wants one of these rows finds it taken. If a row is not
//!   free, the loser is this operation: it frees the rows that it withheld.
//! - [`put`](Rows::put): the first row goes from in use to withheld. That exchange decides which of two frees is the right one.
//!   Then the other rows become free, last to first. The first row comes last: until then no block can begin there, so none of the
//!   rows that still look in use can seem to go on from another block.
//! - [`close`](Rows::close), which takes all rows, is a `take` of the whole pageblock.
//!
//! A CPU that stops between two rows keeps the frames of one block, and nobody waits for it.

use core::ops::Range;

use pageset_core::Order;

use crate::atomic::{Acquire, AtomicUsize, Relaxed, SeqCst, array, constant};
use crate::row::{Frame, ROW_FRAMES, ROW_ORDER, ROWS, Row, lowest, rows_of};

/// The frames of one pageblock, two bits each. As a table's zeros: no frame of it can be taken or freed.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
#[repr(C, align(64))]
pub struct Rows {
    rows: [AtomicUsize; ROWS],
    /// In another line, so that all tables have the lines that they have without it.
    #[cfg(feature = "line-counts")]
    pub(crate) last_change: crate::last_change::LastChange,
}

/// What a frame is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Free,
    /// Nobody has it: it is no memory, out of service, or passes between two owners.
    Withheld,
    /// A block in use has it, that begins at this frame of the pageblock.
    Block(usize, Order),
    /// It lies in a block that is out of service.
    InsideWithheld,
}

/// Why frames cannot be freed: the operation that looks next says it in the caller's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoBlock;

impl Default for Rows {
    fn default() -> Self {
        Self::new()
    }
}

impl Rows {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self {
                rows: array!(AtomicUsize::new(0)),
                #[cfg(feature = "line-counts")]
                last_change: crate::last_change::LastChange::none(),
            }
        }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> Row {
        Row(self.rows[row].load(Acquire))
    }

    /// In one order with all changes of what pageblocks are for: who frees a frame and then asks who looks after the pageblock, and who
    /// says that nobody does and then looks for frames, do not miss each other.
    #[inline]
    fn row_in_order(&self, row: usize) -> Row {
        Row(self.rows[row].load(SeqCst))
    }

    /// Changes a row by `change`, unless that returns none. Returns the row as it is then, or the one that was not changed.
    #[inline]
    fn change(&self, row: usize, change: impl Fn(Row) -> Option<Row>) -> Result<Row, Row> {
        let cell = &self.rows[row];
        let mut now = cell.load(Relaxed);
        loop {
            let Some(next) = change(Row(now)) else { return Err(Row(now)) };
            match cell.compare_exchange_weak(now, next.0, SeqCst, Relaxed) {
                Ok(_) => return Ok(next),
                Err(other) => now = other,
            }
        }
    }

    /// For whoever has the row for himself.
    fn set(&self, row: usize, to: Row) {
        self.rows[row].store(to.0, SeqCst);
    }

    /// Takes a free block of `order` from `row`, or from the rows that a larger block has there. Returns its first frame.
    #[inline]
    pub(crate) fn take(&self, row: usize, order: Order) -> Option<usize> {
        if order.index() > ROW_ORDER {
            let rows = rows_in(order);
            let first = row & !(rows - 1);
            return self.take_rows(first, rows).then_some(first * ROW_FRAMES);
        }
        // Apart, so that the compiler knows the order of most blocks.
        let heads = match order {
            Order::ZERO => self.take_blocks(row, Order::ZERO, 1),
            _ => self.take_blocks(row, order, 1),
        };
        (heads != 0).then(|| row * ROW_FRAMES + heads.trailing_zeros() as usize)
    }

    /// Takes up to `limit` blocks of `order`, a row's at most, by one exchange, the lowest first. Returns a bit for each.
    #[inline]
    pub(crate) fn take_blocks(&self, row: usize, order: Order, limit: usize) -> usize {
        let cell = &self.rows[row];
        let mut now = cell.load(Relaxed);
        loop {
            let heads = lowest(Row(now).free_blocks(order), limit);
            if heads == 0 {
                return 0;
            }
            match cell.compare_exchange_weak(now, Row(now).with_taken(heads, order).0, Acquire, Relaxed) {
                Ok(_) => return heads,
                Err(other) => now = other,
            }
        }
    }

    fn take_rows(&self, first: usize, rows: usize) -> bool {
        if !self.withhold_rows(first, rows) {
            return false;
        }
        // Nobody else touches these rows now.
        (first + 1..first + rows).for_each(|row| self.set(row, Row::INSIDE));
        self.set(first, Row::HEAD);
        true
    }

    fn withhold_rows(&self, first: usize, rows: usize) -> bool {
        let withhold =
            |row: usize| self.change(row, |now| (now == Row::FREE).then_some(Row::WITHHELD)).is_ok();
        let Some(in_use) = (first..first + rows).find(|row| !withhold(*row)) else { return true };
        (first..in_use).for_each(|row| self.set(row, Row::FREE));
        false
    }

    /// Takes the block that begins at this frame, if all of it is free.
    pub(crate) fn take_at(&self, frame: usize, order: Order) -> bool {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        if order.index() > ROW_ORDER {
            return self.take_rows(row, rows_in(order));
        }
        let take = |now: Row| (now.free_blocks(order) >> at & 1 == 1).then(|| now.with_taken(1 << at, order));
        self.change(row, take).is_ok()
    }

    /// Frees a block in use. Returns its row as it is then, its last one of several.
    #[inline]
    pub(crate) fn put(&self, frame: usize, order: Order) -> Result<Row, NoBlock> {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        if order.index() >= ROW_ORDER {
            return self.put_rows(row, at, order);
        }
        match order {
            Order::ZERO => self.put_blocks(row, Order::ZERO, 1 << at),
            _ => self.put_blocks(row, order, 1 << at),
        }
    }

    /// Frees blocks of an order below a row's, by one exchange: a bit for each. Returns the row as it is then.
    #[inline]
    pub(crate) fn put_blocks(&self, row: usize, order: Order, heads: usize) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_put(heads, order)).map_err(|_| NoBlock)
    }

    fn put_rows(&self, first: usize, at: usize, order: Order) -> Result<Row, NoBlock> {
        let rows = rows_in(order);
        let is_row = |row: usize, is: Row| self.row(row) == is;
        let goes_on = |row: usize| row < ROWS && self.row(row).frame(0) == Frame::Inside;
        // A block begins at a multiple of its size, so only from every second such place can a larger one go on.
        let is_larger = (first / rows).is_multiple_of(2) && goes_on(first + rows);
        let is_block = at == 0
            && first.is_multiple_of(rows)
            && is_row(first, Row::HEAD)
            && (first + 1..first + rows).all(|row| is_row(row, Row::INSIDE))
            && !is_larger;
        if !is_block {
            return Err(NoBlock);
        }
        // Of two CPUs that free this block, one comes to this exchange first. The other one finds no head.
        self.change(first, |now| (now == Row::HEAD).then_some(Row::WITHHELD)).map_err(|_| NoBlock)?;
        (first..first + rows).rev().for_each(|row| self.set(row, Row::FREE));
        Ok(Row::FREE)
    }

    /// What a frame is used for, as far as one can see while others take and free.
    pub(crate) fn look(&self, frame: usize) -> Use {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        let start = match self.row(row).frame(at) {
            Frame::Free => return Use::Free,
            Frame::Withheld => return Use::Withheld,
            Frame::Head(_) => frame,
            Frame::Inside => match self.start_of(row, at) {
                Some(start) => start,
                None => return Use::Withheld,
            },
        };
        match self.row(start / ROW_FRAMES).frame(start % ROW_FRAMES) {
            Frame::Withheld => Use::InsideWithheld,
            // It was freed meanwhile.
            Frame::Free | Frame::Inside => Use::Free,
            Frame::Head(frames) => Use::Block(start, self.order_of(start, frames)),
        }
    }

    /// The last frame up to this one that is not inside a block.
    fn start_of(&self, row: usize, at: usize) -> Option<usize> {
        let in_row = |row: usize, at: usize| Some(row * ROW_FRAMES + self.row(row).start_before(at)?);
        in_row(row, at).or_else(|| (0..row).rev().find_map(|row| in_row(row, ROW_FRAMES - 1)))
    }

    /// The order of the block that begins at a frame, and has so many frames of its first row.
    fn order_of(&self, start: usize, in_first: usize) -> Order {
        let mut frames = in_first;
        let mut row = start / ROW_FRAMES + 1;
        if start % ROW_FRAMES + in_first == ROW_FRAMES {
            while row < ROWS && self.row(row) == Row::INSIDE {
                frames += ROW_FRAMES;
                row += 1;
            }
        }
        Order::new(frames.ilog2() as u8).unwrap_or(Order::MAX)
    }

    /// A block begins at this frame from here on, if it lies in a block in use: that one is cut, into the largest blocks that have it
    /// for a border. Several CPUs may cut one block at once: at each moment it is blocks that fill it.
    pub(crate) fn cut_at(&self, frame: usize) {
        while let Use::Block(start, order) = self.look(frame)
            && start < frame
            && order > Order::ZERO
        {
            let middle = start + order.frames() as usize / 2;
            // Another CPU may be faster.
            self.change(middle / ROW_FRAMES, |now| now.with_cut(middle % ROW_FRAMES)).ok();
        }
    }

    /// Makes every block of these frames blocks of one frame. They are in use.
    pub(crate) fn split(&self, frames: Range<usize>) {
        for (row, frames) in rows_of(frames) {
            self.change(row, |now| Some(now.with_split(frames))).ok();
        }
    }

    /// Whether all of these frames are in use.
    pub(crate) fn are_in_use(&self, frames: Range<usize>) -> bool {
        let in_use = |row: Row| row.heads() | row.inside();
        rows_of(frames).all(|(row, frames)| in_use(self.row(row)) & frames == frames)
    }

    /// Frees these frames of a row, which are in use. The caller has [cut](Self::cut_at) what reaches beyond them. Returns the row as it
    /// is then.
    pub(crate) fn release(&self, row: usize, frames: usize) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_released(frames)).map_err(|_| NoBlock)
    }

    /// Withholds these free frames of a row. `false` if one is not free.
    pub(crate) fn withhold(&self, row: usize, frames: usize) -> bool {
        self.change(row, |now| now.with_free_withheld(frames)).is_ok()
    }

    /// Withholds a block in use that begins at this frame.
    pub(crate) fn withhold_block(&self, frame: usize) -> bool {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        self.change(row, |now| now.with_block_withheld(at)).is_ok()
    }

    /// Frees these withheld frames of a row. `false` if one is not withheld. Returns the row as it is then.
    pub(crate) fn offer(&self, row: usize, frames: usize) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_freed_withheld(frames)).map_err(|_| NoBlock)
    }

    /// Withholds all frames, if all are free.
    pub(crate) fn close(&self) -> bool {
        self.withhold_rows(0, ROWS)
    }

    /// All frames are free from here on. For whoever has the pageblock for himself.
    pub(crate) fn open(&self) {
        (0..ROWS).for_each(|row| self.set(row, Row::FREE));
    }

    /// All frames are blocks in use of this order from here on, below a pageblock's.
    pub(crate) fn open_in_use(&self, order: Order) {
        let (blocks, of_row) = (order.frames() as usize, order.index() <= ROW_ORDER);
        for row in (0..ROWS).rev() {
            let is_first = (row * ROW_FRAMES).is_multiple_of(blocks);
            self.set(
                row,
                match (of_row, is_first) {
                    (true, _) => Row::FREE.with_taken(Row::FREE.free_blocks(order), order),
                    (false, true) => Row::HEAD,
                    (false, false) => Row::INSIDE,
                },
            );
        }
    }

    /// All frames are withheld from here on.
    pub(crate) fn withhold_everything(&self) {
        (0..ROWS).for_each(|row| self.set(row, Row::WITHHELD));
    }

    /// How many frames are free.
    pub(crate) fn free(&self) -> usize {
        (0..ROWS).map(|row| self.row_in_order(row).free().count_ones() as usize).sum()
    }

    /// Whether all frames are free.
    pub(crate) fn is_free(&self) -> bool {
        (0..ROWS).all(|row| self.row_in_order(row) == Row::FREE)
    }

    /// The largest order below a pageblock's of which a block is free; `None` if nothing is.
    pub(crate) fn largest_free(&self) -> Option<usize> {
        let rows: [Row; ROWS] = core::array::from_fn(|row| self.row_in_order(row));
        let in_rows = rows.iter().filter_map(|row| row.largest_free()).max()?;
        if in_rows < ROW_ORDER {
            return Some(in_rows);
        }
        let mut order = ROW_ORDER;
        let has = |order: usize| {
            let size = 1 << (order - ROW_ORDER);
            rows.chunks(size).any(|rows| rows.iter().all(|row| *row == Row::FREE))
        };
        while order + 1 < pageset_core::PAGEBLOCK_ORDER && has(order + 1) {
            order += 1;
        }
        Some(order)
    }

    /// The rows at which blocks of `order` may begin, from `row` on and round.
    pub(crate) fn rows_from(row: usize, order: Order) -> impl Iterator<Item = usize> {
        let step = if order.index() > ROW_ORDER { rows_in(order) } else { 1 };
        let first = row & !(step - 1);
        (0..ROWS / step).map(move |at| (first + at * step) % ROWS)
    }
}

/// Rows of a block of an order that is a row's or larger.
const fn rows_in(order: Order) -> usize {
    1 << (order.index() - ROW_ORDER)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::*;
    use crate::row::FRAMES;

    fn order(order: usize) -> Order {
        Order::new(order as u8).expect("an order")
    }

    /// Random programs beside a map from first frames to orders.
    #[test]
    fn a_pageblock_is_what_a_map_of_blocks_says() {
        let mut seed = 3_u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let rows = Rows::new();
        rows.open();
        let mut blocks: BTreeMap<usize, usize> = BTreeMap::new();
        let steps = if cfg!(miri) { 300 } else { 30_000 };
        for _ in 0..steps {
            let (of, frame) = (random(9), random(FRAMES));
            let is_free = |blocks: &BTreeMap<usize, usize>, at: usize, of: usize| {
                let before = blocks.range(..at + (1 << of)).next_back();
                before.is_none_or(|(start, order)| start + (1 << order) <= at)
            };
            match random(8) {
                0..3 => {
                    let taken =
                        Rows::rows_from(random(ROWS), order(of)).find_map(|row| rows.take(row, order(of)));
                    if let Some(at) = taken {
                        assert!(is_free(&blocks, at, of) && at.is_multiple_of(1 << of));
                        blocks.insert(at, of);
                    } else {
                        assert!((0..FRAMES).step_by(1 << of).all(|at| !is_free(&blocks, at, of)));
                    }
                }
                3 => {
                    let at = frame & !((1 << of) - 1);
                    assert_eq!(rows.take_at(at, order(of)), is_free(&blocks, at, of));
                    blocks.entry(at).or_insert(of);
                    blocks.retain(|start, of| {
                        matches!(rows.look(*start), Use::Block(at, is) if at == *start && is == order(*of))
                    });
                }
                4 | 5 => {
                    let (at, of) = match blocks.iter().nth(random(blocks.len().max(1))) {
                        Some((at, of)) if random(3) > 0 => (*at, *of),
                        _ => (frame, of),
                    };
                    let is_block = blocks.get(&at) == Some(&of);
                    assert_eq!(rows.put(at, order(of)).is_ok(), is_block, "{at} {of} {blocks:?}");
                    if is_block {
                        blocks.remove(&at);
                    }
                }
                6 => {
                    rows.cut_at(frame);
                    while let Some((start, of)) = blocks.range(..frame).next_back().map(|(at, of)| (*at, *of))
                        && start + (1 << of) > frame
                    {
                        blocks.insert(start, of - 1);
                        blocks.insert(start + (1 << (of - 1)), of - 1);
                    }
                }
                _ => {
                    let Some((start, of)) = blocks.range(..=frame).next_back().map(|(at, of)| (*at, *of))
                    else {
                        continue;
                    };
                    rows.split(start..start + (1 << of));
                    blocks.extend((start..start + (1 << of)).map(|at| (at, 0)));
                }
            }
            let in_use: usize = blocks.values().map(|of| 1 << of).sum();
            assert_eq!(rows.free(), FRAMES - in_use);
            let known: Vec<_> = (0..FRAMES).map(|frame| rows.look(frame)).collect();
            for (start, of) in &blocks {
                assert!(
                    known[*start..start + (1 << of)]
                        .iter()
                        .all(|used| *used == Use::Block(*start, order(*of)))
                );
            }
            let largest =
                (0..9).rev().find(|of| (0..FRAMES).step_by(1 << of).any(|at| is_free(&blocks, at, *of)));
            assert_eq!(rows.largest_free(), largest);
        }
    }

    #[test]
    fn what_is_withheld_cannot_be_taken_or_freed() {
        let rows = Rows::new();
        assert!(rows.put(0, Order::ZERO).is_err() && rows.take(0, Order::ZERO).is_none());
        rows.open();
        assert!(rows.close() && !rows.close());
        assert_eq!((rows.look(7), rows.free(), rows.largest_free()), (Use::Withheld, 0, None));
        assert!(rows.put(0, Order::ZERO).is_err() && rows.take(0, order(8)).is_none());
        assert!(rows.offer(0, 0b11).is_ok() && rows.offer(0, 0b11).is_err());
        assert!(rows.withhold(0, 0b1) && !rows.withhold(0, 0b1));
        assert_eq!(rows.free(), 1);
        rows.open_in_use(order(7));
        assert!(rows.withhold_block(128) && !rows.withhold_block(129));
        assert_eq!((rows.look(128), rows.look(130)), (Use::Withheld, Use::InsideWithheld));
        assert!(rows.put(128, order(7)).is_err() && rows.put(0, order(7)).is_ok());
    }
}
