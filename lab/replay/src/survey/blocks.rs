//! A table of allocated blocks, each with the time and the CPU of its allocation.
//!
//! The table consists of chunks of 1024 frames. A chunk is made when one of its frames is allocated. When the
//! table has many chunks or is full, chunks without blocks are reused for other frames. Chunks are aligned
//! and as large as the largest block, so no block lies in two chunks.

use foldhash::HashMap;
use pageset_core::{NR_ORDERS, Order, Pfn};

use crate::memory;

/// Number of frames in a chunk.
const CHUNK_FRAMES: usize = 1024;
const _: () = assert!(CHUNK_FRAMES >= 1 << pageset_core::MAX_ORDER);

/// Minimum number of chunks at which the table is searched for chunks without blocks.
const SWEEP_MIN: usize = 256;

/// Number of bytes of one chunk, for the comparison with the memory limit.
pub(super) const CHUNK_BYTES: u64 = (CHUNK_FRAMES * (size_of::<u64>() + size_of::<u32>())) as u64;

/// A block whose allocation the recording shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The time of the block's allocation.
    pub(super) since_ns: u64,
    /// The CPU that allocated the block.
    pub(super) cpu: u16,
    /// The order of the block, or of the freed part if the block is freed in parts.
    pub(super) order: Order,
}

/// The result of one free: the blocks that were released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Number of released blocks, or released parts of a larger block, whose allocation was recorded.
    pub(super) blocks: u32,
    /// The number of frames in the released blocks.
    pub(super) frames: u32,
    /// Whether the freed block is a part of a larger block whose other parts stay allocated.
    pub(super) is_part: bool,
}

/// All blocks that are allocated now and whose allocation was recorded.
#[derive(Debug)]
pub(super) struct LiveBlocks {
    chunks: Vec<Chunk>,
    /// The index of each chunk, by the chunk's number. The number is the first frame divided by the chunk
    /// size.
    numbers: HashMap<u64, u32>,
    /// Indices of chunks without a number.
    spare: Vec<u32>,
    /// Number of chunks at which the table is searched again for chunks without blocks.
    sweep_at: usize,
    /// Number of blocks that the full table did not take since the last search for chunks without blocks.
    refused: usize,
    /// The number and the index of the chunk that was used last.
    last: Option<(u64, u32)>,
    chunks_max: u64,
}

#[derive(Debug)]
struct Chunk {
    number: u64,
    /// Number of blocks that begin in this chunk.
    blocks: u32,
    since_ns: Box<[u64; CHUNK_FRAMES]>,
    /// For the first frame of a block: the CPU that allocated the block, and the block's order plus 1. All
    /// other frames have 0.
    tags: Box<[u32; CHUNK_FRAMES]>,
    /// For each order, the number of blocks that begin in this chunk.
    live: [u16; NR_ORDERS],
}

impl LiveBlocks {
    /// A table that may use about `bytes_max` bytes.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            chunks: Vec::new(),
            numbers: HashMap::default(),
            spare: Vec::new(),
            sweep_at: SWEEP_MIN,
            refused: 0,
            last: None,
            chunks_max: (bytes_max / CHUNK_BYTES).max(1),
        }
    }

    /// Adds an allocated block. Removes the blocks that the table had at these frames, and returns their
    /// number. `None` if the table is full, or if memory is short.
    #[inline]
    pub(super) fn insert(&mut self, pfn: Pfn, block: Block) -> Option<u32> {
        let index = frame_index(pfn);
        let chunk = self.chunk_or_new(pfn)?;
        let replaced = chunk.take(index, block.order, |_| ()).blocks;
        chunk.put(index, block);
        Some(replaced)
    }

    /// Removes the allocated blocks, or parts of a block, within the block of `order` at `pfn`. Passes each
    /// removed block to `each`.
    #[inline]
    pub(super) fn remove(&mut self, pfn: Pfn, order: Order, each: impl FnMut(Block)) -> Found {
        match self.chunk(pfn) {
            Some(chunk) => chunk.take(frame_index(pfn), order, each),
            None => Found::default(),
        }
    }

    /// Returns the number of blocks that are still allocated, by order.
    pub(super) fn live(&self) -> [u64; NR_ORDERS] {
        let mut sums = [0; NR_ORDERS];
        for chunk in &self.chunks {
            for (sum, count) in sums.iter_mut().zip(chunk.live) {
                *sum += u64::from(count);
            }
        }
        sums
    }

    #[inline]
    fn chunk(&mut self, pfn: Pfn) -> Option<&mut Chunk> {
        let number = pfn.0 / CHUNK_FRAMES as u64;
        let place = match self.last {
            Some((last, place)) if last == number => place,
            _ => *self.numbers.get(&number)?,
        };
        self.last = Some((number, place));
        self.chunks.get_mut(place as usize)
    }

    #[inline]
    fn chunk_or_new(&mut self, pfn: Pfn) -> Option<&mut Chunk> {
        let number = pfn.0 / CHUNK_FRAMES as u64;
        let is_known =
            self.last.is_some_and(|(last, _)| last == number) || self.numbers.contains_key(&number);
        if !is_known {
            let place = self.place_of_new()?;
            self.chunks[place as usize].number = number;
            self.numbers.insert(number, place);
        }
        self.chunk(pfn)
    }

    /// Returns the index of a chunk without blocks and without a number.
    #[cold]
    fn place_of_new(&mut self) -> Option<u32> {
        if self.spare.is_empty() && (self.chunks.len() >= self.sweep_at || self.refused > self.chunks.len()) {
            self.sweep();
        }
        if let Some(place) = self.spare.pop() {
            return Some(place);
        }
        if self.chunks.len() as u64 >= self.chunks_max {
            self.refused += 1;
            return None;
        }
        if memory::is_short_for(self.chunks.len()) {
            // Memory is short, so the table makes no further chunks.
            self.chunks_max = self.chunks.len() as u64;
            return None;
        }
        let place = u32::try_from(self.chunks.len()).ok()?;
        self.chunks.try_reserve(1).ok()?;
        self.chunks.push(Chunk::new()?);
        Some(place)
    }

    /// Makes chunks without blocks spare. If nearly all chunks have blocks, the next sweep comes when the
    /// number of chunks has doubled. The table is therefore at most twice as large as needed, and all sweeps
    /// together take little time.
    fn sweep(&mut self) {
        for (place, chunk) in (0..).zip(&self.chunks) {
            if chunk.blocks == 0 {
                self.numbers.remove(&chunk.number);
                self.spare.push(place);
            }
        }
        self.last = None;
        self.sweep_at = (2 * (self.chunks.len() - self.spare.len())).max(SWEEP_MIN);
        self.refused = 0;
    }
}

fn frame_index(pfn: Pfn) -> usize {
    (pfn.0 % CHUNK_FRAMES as u64) as usize
}

impl Chunk {
    /// Makes a chunk without blocks. `None` if memory is short.
    fn new() -> Option<Self> {
        let since_ns = memory::filled(CHUNK_FRAMES, 0)?.try_into().ok()?;
        let tags = memory::filled(CHUNK_FRAMES, 0)?.try_into().ok()?;
        Some(Self { number: 0, blocks: 0, since_ns, tags, live: [0; NR_ORDERS] })
    }

    #[inline]
    fn block_at(&self, index: usize) -> Option<Block> {
        let tag = self.tags[index];
        let order = Order::new((tag & 0xff).wrapping_sub(1) as u8)?;
        Some(Block { since_ns: self.since_ns[index], cpu: (tag >> 8) as u16, order })
    }

    #[inline]
    fn put(&mut self, index: usize, block: Block) {
        self.since_ns[index] = block.since_ns;
        self.tags[index] = u32::from(block.cpu) << 8 | (u32::from(block.order.get()) + 1);
        self.live[block.order.index()] += 1;
        self.blocks += 1;
    }

    #[inline]
    fn clear(&mut self, index: usize, order: Order) {
        self.tags[index] = 0;
        self.live[order.index()] -= 1;
        self.blocks -= 1;
    }

    /// Removes the allocated blocks in the block of `order` at `index`, which is aligned.
    #[inline]
    fn take(&mut self, index: usize, order: Order, mut each: impl FnMut(Block)) -> Found {
        if let Some(block) = self.block_at(index)
            && block.order == order
        {
            self.clear(index, order);
            each(block);
            return Found { blocks: 1, frames: order.frames(), is_part: false };
        }
        match self.take_part(index, order, &mut each) {
            Some(found) => found,
            None => self.take_all(index, order, &mut each),
        }
    }

    /// Removes a block that is a part of a larger block. The larger block is split into halves, as the buddy
    /// allocator splits blocks.
    fn take_part(&mut self, index: usize, order: Order, each: &mut impl FnMut(Block)) -> Option<Found> {
        for larger in order.and_above().skip(1).filter(|larger| self.live[larger.index()] > 0) {
            let head = index & !(larger.frames() as usize - 1);
            let Some(block) = self.block_at(head).filter(|block| block.order == larger) else { continue };
            self.clear(head, larger);
            let mut head = head;
            for half in order.and_above().rev().skip_while(|half| *half >= larger) {
                let frames = half.frames() as usize;
                let (inside, outside) =
                    if index & frames == 0 { (head, head + frames) } else { (head + frames, head) };
                self.put(outside, Block { order: half, ..block });
                head = inside;
            }
            each(Block { order, ..block });
            return Some(Found { blocks: 1, frames: order.frames(), is_part: true });
        }
        None
    }

    /// Removes the allocated blocks within a freed block, which may consist of several allocated blocks.
    fn take_all(&mut self, index: usize, order: Order, each: &mut impl FnMut(Block)) -> Found {
        let mut found = Found::default();
        let has_smaller = self.live[..order.index()].iter().any(|count| *count > 0);
        if !has_smaller {
            return found;
        }
        for inside in index..index + order.frames() as usize {
            if let Some(block) = self.block_at(inside) {
                self.clear(inside, block.order);
                each(block);
                found.blocks += 1;
                found.frames += block.order.frames();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: u8) -> Order {
        Order::new(order).unwrap()
    }

    fn block(size: u8) -> Block {
        Block { since_ns: 7, cpu: 65535, order: order(size) }
    }

    fn removed(blocks: &mut LiveBlocks, pfn: u64, size: u8) -> (Found, Vec<Block>) {
        let mut all = Vec::new();
        let found = blocks.remove(Pfn(pfn), order(size), |block| all.push(block));
        (found, all)
    }

    #[test]
    fn a_block_is_found_once() {
        let mut blocks = LiveBlocks::new(1 << 20);
        assert_eq!(blocks.insert(Pfn(4096), block(0)), Some(0));
        assert_eq!(removed(&mut blocks, 4096, 0).1, [block(0)]);
        assert_eq!(removed(&mut blocks, 4096, 0).0, Found::default());
        assert_eq!(removed(&mut blocks, 1 << 40, 0).0, Found::default());
    }

    #[test]
    fn a_block_freed_in_parts_leaves_the_other_parts() {
        let mut blocks = LiveBlocks::new(1 << 20);
        blocks.insert(Pfn(8), block(3));
        let (found, _) = removed(&mut blocks, 13, 0);
        assert_eq!(found, Found { blocks: 1, frames: 1, is_part: true });
        assert_eq!(blocks.live()[..4], [1, 1, 1, 0], "12, 14 and 15, 8 to 11");
        assert_eq!(removed(&mut blocks, 8, 2).0.frames, 4);
        assert_eq!(removed(&mut blocks, 14, 1).0.frames, 2);
        assert_eq!(removed(&mut blocks, 13, 0).0.frames, 0);
        assert_eq!(removed(&mut blocks, 12, 0).0.frames, 1);
        assert_eq!(blocks.live(), [0; NR_ORDERS]);
    }

    #[test]
    fn blocks_freed_together_are_all_found() {
        let mut blocks = LiveBlocks::new(1 << 20);
        for pfn in [16, 17, 19] {
            blocks.insert(Pfn(pfn), block(0));
        }
        let (found, all) = removed(&mut blocks, 16, 2);
        assert_eq!(found, Found { blocks: 3, frames: 3, is_part: false });
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn an_allocation_replaces_what_was_there() {
        let mut blocks = LiveBlocks::new(1 << 20);
        blocks.insert(Pfn(0), block(2));
        assert_eq!(blocks.insert(Pfn(0), block(0)), Some(1));
        assert_eq!(blocks.live()[..3], [2, 1, 0], "0, and the rest of the block");
        assert_eq!(blocks.insert(Pfn(0), block(10)), Some(3));
        assert_eq!(blocks.live()[..11], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_full_table_says_so_and_keeps_what_it_has() {
        let mut blocks = LiveBlocks::new(0);
        assert_eq!(blocks.insert(Pfn(5), block(0)), Some(0));
        assert_eq!(blocks.insert(Pfn(5000), block(0)), None);
        assert_eq!(removed(&mut blocks, 5, 0).0.blocks, 1);
    }

    #[test]
    fn the_table_is_as_large_as_what_is_allocated_at_one_time() {
        let mut blocks = LiveBlocks::new(1 << 30);
        let pages = 3000 * CHUNK_FRAMES as u64;
        for pfn in 0..pages {
            assert_eq!(blocks.insert(Pfn(pfn), block(0)), Some(0));
            // Keep only the last 5000 pages and page 7 allocated.
            if let Some(earlier) = pfn.checked_sub(5000).filter(|earlier| *earlier != 7) {
                assert_eq!(removed(&mut blocks, earlier, 0).1, [block(0)]);
            }
        }
        assert_eq!(blocks.live()[0], 5001);
        assert!(blocks.chunks.len() <= SWEEP_MIN, "{}", blocks.chunks.len());
        assert_eq!(blocks.numbers.len() + blocks.spare.len(), blocks.chunks.len());
        assert_eq!(removed(&mut blocks, 7, 0).1, [block(0)]);
        // If all chunks have blocks, the table grows.
        let mut blocks = LiveBlocks::new(1 << 30);
        for chunk in 0..3000 {
            assert_eq!(blocks.insert(Pfn(chunk * CHUNK_FRAMES as u64), block(0)), Some(0));
        }
        assert_eq!((blocks.chunks.len(), blocks.live()[0]), (3000, 3000));
    }
}
