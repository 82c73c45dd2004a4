//! The frames of one pageblock, as rows that any CPU may change at any time.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! Race: two CPUs take or free blocks in one row at once, and no block is larger than a row. Each CPU
//! exchanges the row. The CPU whose exchange comes second loses: its exchange fails, and it reads the row
//! again. The new word says which frames are free and which blocks are in use. So the race ends as if one
//! operation had come after the other.
//!
//! A CPU takes, frees, cuts and splits a block of several rows row by row. The first row has the order of the
//! block. A CPU that changes the block *claims* the block first: it exchanges the first row for
//! [`Row::CHANGING`]. Race: several CPUs claim one block, and the first exchange wins. From then on only the
//! winner changes the rows of the block, because no other operation accepts such rows. The claim also checks
//! the order, so the claim fails if a block of another order begins with this row by now. The losers of a
//! claim, by operation:
//!
//! - [`take_at`](Rows::take_at): exchanges the first row from free to changing, and each further row from
//!   free to in use. If a row is not free, `take_at` loses. `take_at` then frees the rows that it has already
//!   taken. For a moment, other CPUs did not see the exchanged rows as free. So the caller looks at the
//!   pageblock again, as after a free.
//! - [`put`](Rows::put): frees the rows after the claim, from the last to the first. A second CPU that frees
//!   the same block loses: it finds the first row changing or free, and returns an error.
//! - [`free_first`](Rows::free_first), [`split`](Rows::split): the loser returns an error, and its caller
//!   looks again. The winner may have cut the block, so the caller's part may still be in use.
//! - [`close`](Rows::close) takes all rows, and loses like a `take_at` of the whole pageblock.
//!
//! Race: a CPU looks at a block of several rows, and another CPU changes the block between two of its reads.
//! The look loses: it trusts the words only if the order in the first row reaches the row of the frame, and
//! otherwise returns `Changing`. While no CPU changes a block, every look at the block is right.
//!
//! A CPU that stops between two rows keeps the frames of one block. No other CPU waits for the stopped CPU.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Range;

use pageset_core::{Order, PAGEBLOCK_ORDER};

use crate::access::{Access, Shared, set, update};
use crate::atomic::{Acquire, AtomicUsize, Relaxed, Release, SeqCst, array, constant};
use crate::row::{Frame, ROW_FRAMES, ROW_ORDER, ROWS, Row, larger_blocks, lowest, rows_of};

/// The frames of one pageblock, two bits each. While a table is all zeros, no frame can be taken or freed.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
#[repr(C, align(64))]
pub struct Rows<A = Shared> {
    rows: [AtomicUsize; ROWS],
    access: PhantomData<A>,
    /// `last_change` lies in another cache line than `rows`, so that `rows` has the same layout with and
    /// without the feature.
    #[cfg(feature = "line-counts")]
    pub(crate) last_change: crate::last_change::LastChange,
}

/// The use of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Free,
    /// The frame is no memory, or is out of service.
    Withheld,
    /// The frame belongs to a block in use, which begins at this frame of the pageblock and has this order.
    Block(usize, Order),
    /// The frame lies in a block that is out of service.
    InsideWithheld,
    /// Another CPU is taking, freeing, cutting or splitting the block around the frame, or did so during the
    /// look.
    Changing,
}

/// The named block is not in use. The caller looks again to find the error that it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoBlock;

/// Why a part of a pageblock was not freed or split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A frame is not in use.
    NoBlock,
    /// Another CPU is changing the block: look again.
    Changing,
}

impl<A: Access> Default for Rows<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Access> Rows<A> {
    constant! {
        /// Makes an entry of a table, all zeros. The constructor of the allocator changes the entries of
        /// pageblocks with holes.
        #[must_use]
        pub fn new() -> Self {
            Self {
                rows: array!(AtomicUsize::new(0)),
                access: PhantomData,
                #[cfg(feature = "line-counts")]
                last_change: crate::last_change::LastChange::none(),
            }
        }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> Row {
        Row(self.rows[row].load(Acquire))
    }

    /// Reads a row without an order relative to other reads, so the returned word is a hint.
    #[inline]
    pub(crate) fn peek(&self, row: usize) -> usize {
        self.rows[row].load(Relaxed)
    }

    /// Reads a row in the total order of `SeqCst` operations, which includes all changes of states. Race: one
    /// CPU frees a frame and then reads the state, while another CPU gives up its reservation and then looks
    /// for free frames. In a total order, at least one of the two CPUs sees the change of the other CPU, so
    /// the free frame is not missed.
    #[inline]
    fn row_in_order(&self, row: usize) -> Row {
        Row(self.rows[row].load(SeqCst))
    }

    /// Changes a row by `change`, and returns the new row. If `change` returns `None`, the row stays as it
    /// is, and is returned as the error.
    #[inline(always)]
    fn change(&self, row: usize, change: impl Fn(Row) -> Option<Row>) -> Result<Row, Row> {
        let mut next = Row::FREE;
        let changed = update::<A, _>(&self.rows[row], SeqCst, |now| {
            next = change(Row(now))?;
            Some(next.0)
        });
        changed.map(|_| next).map_err(Row)
    }

    /// Overwrites a row with any word.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn damage(&self, row: usize, word: usize) {
        self.set(row, Row(word));
    }

    /// Stores a row that only the caller may change now.
    fn set(&self, row: usize, to: Row) {
        set::<A>(&self.rows[row], to.0);
    }

    /// Stores `to` in rows that only the caller may change now, the first row last.
    ///
    /// Race: one CPU frees these rows and then reads the state, while another CPU changes the state and then
    /// looks for free frames. Only the store of the first row is in the total order of
    /// [`row_in_order`](Self::row_in_order). One store in that order suffices, because a look reads rows
    /// upwards: a look that reads the new first row also reads the other new rows.
    fn set_all(&self, rows: Range<usize>, to: Row) {
        if let Some(first) = rows.clone().next() {
            rows.skip(1).rev().for_each(|row| self.rows[row].store(to.0, Release));
            self.set(first, to);
        }
    }

    /// Takes a free block of `order` from `row`. The block must fit into a row. Returns its first frame.
    #[inline]
    pub(crate) fn take_in_row(&self, row: usize, order: Order) -> Option<usize> {
        // The separate call lets the compiler build a version for single frames. The version for single
        // frames takes half as many steps between the look at the row and the exchange.
        let heads = match order {
            Order::ZERO => self.take_blocks(row, Order::ZERO, 1),
            _ => self.take_blocks(row, order, 1),
        };
        (heads != 0).then(|| row * ROW_FRAMES + heads.trailing_zeros() as usize)
    }

    /// Takes up to `limit` blocks of `order` from `row` by one exchange, the lowest first. The blocks must
    /// fit into a row. Returns a bit for each block, at its first frame.
    #[inline(always)]
    pub(crate) fn take_blocks(&self, row: usize, order: Order, limit: usize) -> usize {
        let mut heads = 0;
        let take = |now| {
            heads = lowest(Row(now).free_blocks(order), limit);
            (heads != 0).then(|| Row(now).with_taken(heads, order).0)
        };
        // On failure `heads` is 0.
        update::<A, _>(&self.rows[row], Acquire, take).ok();
        heads
    }

    fn take_rows(&self, first: usize, rows: usize) -> bool {
        if !self.claim_free(first, rows, Row::INSIDE) {
            return false;
        }
        // The rows are claimed: no other CPU changes them now. Looks have seen since the claim that the rows
        // are not free.
        self.rows[first].store(Row::of_order(ROW_ORDER + rows.trailing_zeros() as usize).0, Release);
        true
    }

    /// Claims `rows` rows from `first` on, if all are free. The first row becomes changing. The other rows
    /// become `others`, which no other operation accepts after a changing row.
    fn claim_free(&self, first: usize, rows: usize, others: Row) -> bool {
        let claim = |row: usize| {
            let to = if row == first { Row::CHANGING } else { others };
            self.change(row, |now| (now == Row::FREE).then_some(to)).is_ok()
        };
        // Look before the claim, because a failed claim hides free rows from other CPUs for a moment. Most
        // calls that fail end here, without a claim.
        if !(first..first + rows).all(|row| self.row(row) == Row::FREE) {
            return false;
        }
        let Some(in_use) = (first..first + rows).find(|row| !claim(*row)) else { return true };
        self.set_all(first..in_use, Row::FREE);
        false
    }

    /// Claims a block in use that begins with row `first`. `order` is larger than a row's. After the claim,
    /// no other CPU changes the rows of the block.
    fn claim_block(&self, first: usize, order: usize) -> bool {
        // A damaged row could name an order that does not fit at row `first`. A block of the wrong order
        // could reach into the next pageblock.
        first.is_multiple_of(rows_of_order(order))
            && self.change(first, |now| (now == Row::of_order(order)).then_some(Row::CHANGING)).is_ok()
    }

    /// Takes the block that begins at this frame, if all of it is free.
    pub(crate) fn take_at(&self, frame: usize, order: Order) -> bool {
        if order.index() > ROW_ORDER {
            return self.take_rows(frame / ROW_FRAMES, rows_in(order));
        }
        self.take_at_in_row(frame, order)
    }

    /// Does the same as [`take_at`](Self::take_at) for an order up to a row's.
    #[inline(always)]
    pub(crate) fn take_at_in_row(&self, frame: usize, order: Order) -> bool {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        self.change(row, |now| now.with_taken_at(at, order)).is_ok()
    }

    /// Frees a block in use. Returns the new word of the block's row. If the block has several rows, returns
    /// the word of its last row.
    #[inline]
    pub(crate) fn put(&self, frame: usize, order: Order) -> Result<Row, NoBlock> {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        if order.index() > ROW_ORDER {
            return if at == 0 { self.put_rows(row, order.index()) } else { Err(NoBlock) };
        }
        self.put_in_row(row, at, order)
    }

    /// Frees a block of an order up to a row's. Returns the new row.
    #[inline(always)]
    pub(crate) fn put_in_row(&self, row: usize, at: usize, order: Order) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_put_at(at, order)).map_err(|_| NoBlock)
    }

    /// Frees blocks of an order up to a row's by one exchange. `heads` has a bit for each block. Returns the
    /// new row.
    #[inline(always)]
    pub(crate) fn put_blocks(&self, row: usize, order: Order, heads: usize) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_put(heads, order)).map_err(|_| NoBlock)
    }

    fn put_rows(&self, first: usize, order: usize) -> Result<Row, NoBlock> {
        if !self.claim_block(first, order) {
            return Err(NoBlock);
        }
        self.set_all(first..first + rows_of_order(order), Row::FREE);
        Ok(Row::FREE)
    }

    /// Returns the use of a frame. Other CPUs may change the frame during the look.
    pub(crate) fn look(&self, frame: usize) -> Use {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        let now = self.row(row);
        match now.frame(at) {
            Frame::Free => Use::Free,
            Frame::Withheld => Use::Withheld,
            Frame::Changing => Use::Changing,
            Frame::Head(frames) => Use::Block(frame, order_of(frames)),
            Frame::Inside => match now.start_before(at) {
                Some(start) => match now.frame(start) {
                    Frame::Head(frames) => Use::Block(row * ROW_FRAMES + start, order_of(frames)),
                    _ => Use::InsideWithheld,
                },
                None => self.look_back(row),
            },
        }
    }

    /// Returns the use of the frames of a row that begins inside a block: looks for the block's first row.
    fn look_back(&self, row: usize) -> Use {
        let before = (0..row).rev().map(|row| (row, self.row(row)));
        let Some((first, head)) = { before }.find(|(_, now)| *now != Row::INSIDE) else {
            return Use::Changing;
        };
        match (head.long_order(), head.frame(0)) {
            // Race: another CPU changes the block between the reads of the two words. If the order in the
            // first row no longer reaches this row, the look loses: it returns `Changing`.
            (Some(order), used) if row < first + rows_of_order(order) => match used {
                Frame::Head(frames) => Use::Block(first * ROW_FRAMES, order_of(frames)),
                Frame::Withheld => Use::InsideWithheld,
                _ => Use::Changing,
            },
            _ => Use::Changing,
        }
    }

    /// Whether all of these frames are in use.
    pub(crate) fn are_in_use(&self, frames: Range<usize>) -> bool {
        rows_of(frames).all(|(row, frames)| self.row(row).in_use() & frames == frames)
    }

    /// Frees the frames of the range that lie in its first row, or a whole block of several rows at its
    /// start. A block that reaches beyond these frames is cut, and its other frames become the largest
    /// aligned blocks that fit. Returns the number of freed frames and the new row. If a block of several
    /// rows was freed, returns its last row.
    pub(crate) fn free_first(&self, frames: Range<usize>) -> Result<(usize, Row), Refused> {
        let (row, part) = rows_of(frames.clone()).next().ok_or(Refused::NoBlock)?;
        loop {
            // One exchange checks the row's current word, cuts the block and frees the part. So a change that
            // another CPU made before the exchange does no harm.
            match self.change(row, |now| now.with_part_freed(part)) {
                Ok(left) => return Ok((part.count_ones() as usize, left)),
                Err(now) if !now.is_long() => return Err(Refused::NoBlock),
                Err(_) => {}
            }
            let (first, order) = self.long_around(frames.start)?;
            let block = first * ROW_FRAMES..(first * ROW_FRAMES + (1 << order));
            if block.start == frames.start && block.end <= frames.end {
                let left = self.put_rows(first, order).map_err(|NoBlock| Refused::Changing)?;
                return Ok((block.len(), left));
            }
            self.cut(first, order)?;
        }
    }

    /// Returns the first row and the order of the block of several rows around a frame.
    fn long_around(&self, frame: usize) -> Result<(usize, usize), Refused> {
        match self.look(frame) {
            Use::Block(start, order) if order.index() > ROW_ORDER => Ok((start / ROW_FRAMES, order.index())),
            Use::Block(..) | Use::Changing => Err(Refused::Changing),
            Use::Free | Use::Withheld | Use::InsideWithheld => Err(Refused::NoBlock),
        }
    }

    /// Cuts the block that begins with this row into two halves.
    fn cut(&self, first: usize, order: usize) -> Result<(), Refused> {
        if !self.claim_block(first, order) {
            return Err(Refused::Changing);
        }
        let half = Row::of_order(order - 1);
        self.set(first + rows_of_order(order) / 2, half);
        self.set(first, half);
        Ok(())
    }

    /// Splits every block that has one of these frames into single frames. All these frames must be in use.
    pub(crate) fn split(&self, frames: Range<usize>) -> Result<(), Refused> {
        for (row, part) in rows_of(frames) {
            match self.change(row, |now| now.with_split(part)) {
                Ok(_) => continue,
                Err(now) if !now.is_long() => return Err(Refused::NoBlock),
                Err(_) => {}
            }
            // Look up the block around the caller's first frame in this row. Another owner may have freed
            // other frames of the row.
            let (first, order) = self.long_around(row * ROW_FRAMES + part.trailing_zeros() as usize)?;
            if !self.claim_block(first, order) {
                return Err(Refused::Changing);
            }
            self.set_all(first..first + rows_of_order(order), Row::SINGLES);
        }
        Ok(())
    }

    /// Withholds free frames of a row. Returns `false` if one of `frames` is not free.
    pub(crate) fn withhold(&self, row: usize, frames: usize) -> bool {
        self.change(row, |now| now.with_free_withheld(frames)).is_ok()
    }

    /// Withholds the block in use that begins at this frame. Returns its number of frames.
    pub(crate) fn withhold_block(&self, frame: usize) -> Option<usize> {
        let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
        let size = Cell::new(0);
        let withhold = |now: Row| {
            let (withheld, frames) = now.with_block_withheld(at)?;
            size.set(frames);
            // A damaged row could name a size that does not fit here, as in `claim_block`.
            (frames <= ROW_FRAMES || frame.is_multiple_of(frames)).then_some(withheld)
        };
        self.change(row, withhold).ok().map(|_| size.get())
    }

    /// Makes withheld frames of a row free. Returns the new row.
    pub(crate) fn offer(&self, row: usize, frames: usize) -> Result<Row, NoBlock> {
        self.change(row, |now| now.with_freed_withheld(frames)).map_err(|_| NoBlock)
    }

    /// Takes all frames, if all are free. The frames stay taken until the pageblock is [opened](Self::open)
    /// again.
    pub(crate) fn close(&self) -> bool {
        self.claim_free(0, ROWS, Row::CHANGING)
    }

    /// Makes all frames free. No other CPU may change the pageblock during the call.
    pub(crate) fn open(&self) {
        self.set_all(0..ROWS, Row::FREE);
    }

    /// Fills the pageblock with blocks in use of this order, at most the order of a pageblock. No other CPU
    /// may change the pageblock during the call.
    pub(crate) fn open_in_use(&self, order: Order) {
        let (blocks, of_row) = (order.frames() as usize, order.index() <= ROW_ORDER);
        for row in (0..ROWS).rev() {
            let is_first = (row * ROW_FRAMES).is_multiple_of(blocks);
            self.set(
                row,
                match (of_row, is_first) {
                    (true, _) => Row::FREE.with_taken(Row::FREE.free_blocks(order), order),
                    (false, true) => Row::of_order(order.index()),
                    (false, false) => Row::INSIDE,
                },
            );
        }
    }

    /// Withholds all frames.
    pub(crate) fn withhold_everything(&self) {
        (0..ROWS).for_each(|row| self.set(row, Row::WITHHELD));
    }

    /// Returns the free frames as bits, with two rows in a word. So a CPU looks at all rows in half as many
    /// steps.
    fn free_frames(&self) -> [usize; ROWS / 2] {
        let mut frames = [0; ROWS / 2];
        for (pair, frames) in frames.iter_mut().enumerate() {
            let (even, odd) = (self.row_in_order(2 * pair), self.row_in_order(2 * pair + 1));
            *frames = even.free() | odd.free() << ROW_FRAMES;
        }
        frames
    }

    /// The number of free frames.
    pub(crate) fn free(&self) -> usize {
        self.free_frames().iter().map(|frames| frames.count_ones() as usize).sum()
    }

    /// Whether all frames are free.
    pub(crate) fn is_free(&self) -> bool {
        self.free_frames().iter().all(|frames| *frames == usize::MAX)
    }

    /// The order of the largest free block. Returns a pageblock's order if all frames are free. Returns
    /// `None` if no frame is free.
    pub(crate) fn largest_free(&self) -> Option<usize> {
        self.free_orders().0.checked_ilog2().map(|order| order as usize)
    }

    /// Returns the orders of the free blocks, a bit for each order, and the number of free frames. Free
    /// blocks that are part of a larger free block do not count.
    pub(crate) fn free_orders(&self) -> (usize, usize) {
        let (mut blocks, mut orders) = (self.free_frames(), 0);
        let free = blocks.iter().map(|frames| frames.count_ones() as usize).sum();
        if !has_whole_rows(&blocks) {
            for order in 0..ROW_ORDER {
                let mut alone = 0;
                for blocks in &mut blocks {
                    let larger = larger_blocks(*blocks, order);
                    alone |= *blocks & !(larger | larger << (1 << order));
                    *blocks = larger;
                }
                orders |= usize::from(alone != 0) << order;
            }
        }
        let mut rows = whole_rows(&blocks);
        for order in ROW_ORDER..PAGEBLOCK_ORDER {
            let larger = larger_blocks(rows, order - ROW_ORDER);
            let alone = rows & !(larger | larger << (1 << (order - ROW_ORDER)));
            orders |= usize::from(alone != 0) << order;
            rows = larger;
        }
        (orders | usize::from(rows != 0) << PAGEBLOCK_ORDER, free)
    }

    /// Takes a free block of `order` out of the smallest free block that is large enough, so that larger
    /// blocks stay for larger requests. Returns the first frame of the block that it took.
    pub(crate) fn take_any(&self, order: Order) -> Option<usize> {
        // Race: another CPU takes a frame of the block before this CPU does. This CPU loses, and searches
        // again. The retry is safe, because in each round some CPU makes progress.
        loop {
            let (frame, _) = self.best_fit(order)?;
            if self.take_at(frame, order) {
                return Some(frame);
            }
        }
    }

    /// Takes a free block of `order`, if that is the order of the smallest free block with room for it.
    pub(crate) fn take_exact(&self, order: Order) -> Option<usize> {
        let (frame, found) = self.best_fit(order)?;
        (found == order.index() && self.take_at(frame, order)).then_some(frame)
    }

    /// Whether the block's buddy is free. A free block and its free buddy form a larger free block. The order
    /// is at most a row's.
    #[inline(always)]
    pub(crate) fn is_merged(&self, frame: usize, order: Order) -> bool {
        let beside = frame ^ order.frames() as usize;
        self.row(beside / ROW_FRAMES).is_free_at(beside % ROW_FRAMES, order)
    }

    /// Returns the smallest free block that has room for a block of `order`: its first frame and its order.
    fn best_fit(&self, order: Order) -> Option<(usize, usize)> {
        if order.index() >= ROW_ORDER { self.best_rows(order) } else { self.best_fit_in_row(order) }
    }

    fn best_fit_in_row(&self, order: Order) -> Option<(usize, usize)> {
        let mut blocks = self.free_frames();
        for at in 0..order.index().min(ROW_ORDER) {
            blocks.iter_mut().for_each(|blocks| *blocks = larger_blocks(*blocks, at));
        }
        for at in order.index()..ROW_ORDER {
            let (mut found, mut any) = (None, 0);
            for (pair, blocks) in blocks.iter_mut().enumerate() {
                let larger = larger_blocks(*blocks, at);
                let alone = *blocks & !(larger | larger << (1 << at));
                if found.is_none() && alone != 0 {
                    found = Some((pair * 2 * ROW_FRAMES + alone.trailing_zeros() as usize, at));
                }
                any |= larger;
                *blocks = larger;
            }
            if found.is_some() || any == 0 {
                return found;
            }
        }
        smallest_of_rows(whole_rows(&blocks), ROW_ORDER)
    }

    /// Does the same as [`best_fit`](Self::best_fit) for an order of a row or larger.
    fn best_rows(&self, order: Order) -> Option<(usize, usize)> {
        let is_free = |row: usize| usize::from(self.row_in_order(row) == Row::FREE) << row;
        smallest_of_rows((0..ROWS).map(is_free).sum(), order.index())
    }
}

/// Returns the first frame and the order of the smallest free block that has room for a block of `order`, a
/// row's or larger. `rows` has a bit for each row that is entirely free.
fn smallest_of_rows(mut rows: usize, order: usize) -> Option<(usize, usize)> {
    for at in ROW_ORDER..PAGEBLOCK_ORDER {
        let larger = larger_blocks(rows, at - ROW_ORDER);
        let alone = rows & !(larger | larger << (1 << (at - ROW_ORDER)));
        if at >= order && alone != 0 {
            return Some((alone.trailing_zeros() as usize * ROW_FRAMES, at));
        }
        rows = larger;
    }
    (rows != 0).then_some((0, PAGEBLOCK_ORDER))
}

/// Whether each row is entirely free, or has no free frame. `frames` has two rows in a word.
fn has_whole_rows(frames: &[usize; ROWS / 2]) -> bool {
    let last_of_both = 1 << (ROW_FRAMES - 1) | 1 << (2 * ROW_FRAMES - 1);
    let borders = frames.iter().fold(0, |borders, frames| borders | frames ^ frames >> 1);
    borders & !last_of_both == 0
}

/// Returns a bit for each row: whether the first bit of the row is set in `blocks`, which has two rows in a
/// word.
fn whole_rows(blocks: &[usize; ROWS / 2]) -> usize {
    blocks.iter().rev().fold(0, |bits, blocks| bits << 2 | blocks >> ROW_FRAMES << 1 & 0b10 | blocks & 1)
}

/// The number of rows of a block. Its order is a row's or larger.
const fn rows_in(order: Order) -> usize {
    rows_of_order(order.index())
}

const fn rows_of_order(order: usize) -> usize {
    1 << (order - ROW_ORDER)
}

/// The order of a block of this many frames.
fn order_of(frames: usize) -> Order {
    Order::new(frames.ilog2() as u8).unwrap_or(Order::MAX)
}

#[cfg(all(test, loom))]
mod pairs;
#[cfg(all(test, any(loom, shuttle)))]
mod races;
mod run;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::*;
    use crate::row::FRAMES;

    fn order(order: usize) -> Order {
        Order::new(order as u8).expect("an order")
    }

    /// Runs random operations, and compares the rows with a map from first frames to orders.
    #[test]
    fn a_pageblock_is_what_a_map_of_blocks_says() {
        let mut seed = 3_u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let rows = <Rows>::new();
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
                    let taken = rows.take_any(order(of));
                    if let Some(at) = taken {
                        // The order of the free block around a block at this frame.
                        let around = |at: usize| {
                            (of..=9).rev().find(|of| is_free(&blocks, at & !((1 << of) - 1), *of))
                        };
                        let smallest = (0..FRAMES).step_by(1 << of).filter_map(around).min();
                        assert_eq!(around(at), smallest, "order {of} at {at}");
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
                    let most = [4, FRAMES][random(2)];
                    let part = frame..FRAMES.min(frame + 1 + random(most));
                    let in_use = part.clone().all(|at| !is_free(&blocks, at, 0));
                    assert_eq!(rows.are_in_use(part.clone()), in_use);
                    let mut rest = part.clone();
                    while in_use && !rest.is_empty() {
                        rest.start += rows.free_first(rest.clone()).expect("they are in use").0;
                    }
                    for border in [part.start, part.end].into_iter().filter(|_| in_use) {
                        while let Some((start, of)) =
                            blocks.range(..border).next_back().map(|(at, of)| (*at, *of))
                            && start + (1 << of) > border
                        {
                            blocks.insert(start, of - 1);
                            blocks.insert(start + (1 << (of - 1)), of - 1);
                        }
                    }
                    blocks.retain(|start, _| !in_use || !part.contains(start));
                }
                _ => {
                    let Some((start, of)) = blocks.range(..=frame).next_back().map(|(at, of)| (*at, *of))
                    else {
                        continue;
                    };
                    let at = start + random(1 << of);
                    assert_eq!(rows.split(at..at + 1), Ok(()));
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
                (0..=9).rev().find(|of| (0..FRAMES).step_by(1 << of).any(|at| is_free(&blocks, at, *of)));
            assert_eq!(rows.largest_free(), largest);
        }
    }

    /// A test of several threads found this bug, once in a thousand runs. A CPU returned a run of frames, and
    /// another CPU took them as a part of a larger block. Then the first CPU freed an empty range at the end
    /// of the run. Before the fix, the free of the empty range cut the block of the other CPU.
    #[test]
    fn a_range_without_frames_changes_nothing() {
        for of in 0..=9 {
            let rows = <Rows>::new();
            rows.open_in_use(order(of));
            for frame in 0..=FRAMES {
                let none = frame..frame;
                assert_eq!(rows.free_first(none.clone()), Err(Refused::NoBlock), "{of} {frame}");
                assert_eq!(rows.split(none.clone()), Ok(()));
                assert!(rows.are_in_use(none.clone()) && rows.take_range(none));
            }
            let starts = (0..FRAMES).step_by(1 << of);
            assert!({ starts }.all(|frame| rows.look(frame) == Use::Block(frame, order(of))), "{of}");
        }
    }

    #[test]
    fn what_is_withheld_cannot_be_taken_or_freed() {
        let rows = <Rows>::new();
        assert!(rows.put(0, Order::ZERO).is_err() && rows.take_any(Order::ZERO).is_none());
        rows.open();
        assert!(rows.close() && !rows.close());
        assert_eq!((rows.look(7), rows.free(), rows.largest_free()), (Use::Changing, 0, None));
        assert!(rows.put(0, Order::ZERO).is_err() && rows.take_any(order(8)).is_none());
        assert_eq!(rows.free_first(0..1), Err(Refused::Changing));
        rows.withhold_everything();
        assert_eq!((rows.look(7), rows.free(), rows.largest_free()), (Use::Withheld, 0, None));
        assert!(rows.put(0, Order::ZERO).is_err() && rows.take_any(order(8)).is_none());
        assert_eq!(rows.free_first(0..1), Err(Refused::NoBlock));
        assert!(rows.offer(0, 0b11).is_ok() && rows.offer(0, 0b11).is_err());
        assert!(rows.withhold(0, 0b1) && !rows.withhold(0, 0b1));
        assert_eq!(rows.free(), 1);
        rows.open_in_use(order(7));
        assert_eq!((rows.withhold_block(128), rows.withhold_block(129)), (Some(128), None));
        assert_eq!((rows.look(128), rows.look(130)), (Use::Withheld, Use::InsideWithheld));
        assert!(rows.put(128, order(7)).is_err() && rows.put(0, order(7)).is_ok());
    }
}
