//! Checks the invariants of an engine that hold while no task runs (spec §1.2). Most tests of this crate end
//! with this check.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;

use pageset_core::{Order, Pfn};

use crate::area::{Access, AreaMap};
use crate::counts::Counts;
use crate::engine::Engine;
use crate::frames::FrameSource;
use crate::pte::{Meaning, Pte, TableId};
use crate::space::AddressSpace;
use crate::world::World;

/// Numbers that a successful [`Engine::check`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The number of mapped pages in all address spaces. A shared page counts once in each address space. The
    /// zero page does not count.
    pub pages: u64,
    /// The number of page tables, including the root tables.
    pub tables: u64,
    /// The number of frames in the blocks that words map.
    pub frames: u64,
    /// The number of words that name a reclaimed page.
    pub reclaimed: u64,
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A page is mapped outside of all areas, or has more rights than its area. The fields of `Stray` are the
    /// page's address and the page-table word.
    Stray(u64, Pte),
    /// A word has the mark "busy", although no task is changing the word. The fields of `Busy` are the
    /// address that the word stands for, and the word.
    Busy(u64, Pte),
    /// A word permits stores to a page that other words map too, or to the zero page. The fields of
    /// `SharedWritable` are the page's address and the page-table word.
    SharedWritable(u64, Pte),
    /// A block's reference count is wrong. The fields of `References` are the block, the number of words that
    /// map the block, and the block's reference count.
    References(Pfn, u32, u32),
    /// An address space's counts differ from the numbers of pages and tables in its page table. The fields of
    /// `Counts` are the address space's counts, and the numbers found in the page table.
    Counts(Counts, Counts),
    /// The number of frames that the allocator has allocated differs from the number of frames in use. The
    /// fields of `Frames` are the number of allocated frames, and the number of frames in use.
    Frames(u64, u64),
    /// The number of blocks on the lists of pages in use differs from the number of blocks in use. The fields
    /// of `Listed` are the number of listed blocks, and the number of blocks in use.
    Listed(u64, u64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stray(va, word) => {
                write!(f, "{word:?} at {va:#x} lies in no area, or has more rights than its area")
            }
            Self::Busy(va, word) => write!(f, "{word:?} at {va:#x} is busy though no task runs"),
            Self::SharedWritable(va, word) => {
                write!(f, "{word:?} at {va:#x} is writable though several words map its page")
            }
            Self::References(pfn, found, counted) => {
                write!(f, "block {pfn} is mapped by {found} words, but its count is {counted}")
            }
            Self::Counts(counted, found) => write!(f, "counted {counted:?}, found {found:?}"),
            Self::Frames(given, found) => write!(f, "{given} frames were allocated, {found} are in use"),
            Self::Listed(listed, found) => write!(f, "{listed} blocks are listed, {found} are in use"),
        }
    }
}

impl core::error::Error for Violation {}

/// For the first frame of each block, the block's order and the number of words that map the block.
type Blocks = BTreeMap<u64, (Order, u32)>;

impl<W: World> Engine<W> {
    /// Reads every word of every page table, and checks these invariants:
    /// - Each page lies in an area, and its word has no more rights than the area.
    /// - No word is busy. No word permits stores to the zero page. If a word maps a whole block that several
    ///   words map, no word permits stores to the block.
    /// - Each block's reference count equals the number of words that map the block. Each address space's
    ///   counts equal the numbers of pages and tables in its page table.
    /// - The number of allocated frames equals the number of frames in use, and the number of listed blocks
    ///   equals the number of blocks in use.
    ///
    /// `spaces` must be all address spaces of the engine. All tasks must have ended, because the counts are
    /// exact only after each task has folded its own counts.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self, spaces: &[&Arc<AddressSpace<W>>]) -> Result<Census, Violation> {
        let (mut census, mut blocks) = (Census::default(), Blocks::new());
        for space in spaces {
            let before = census;
            let map = space.mm.map();
            let mut look = Look { engine: self, map: &map, blocks: &mut blocks, census: &mut census };
            look.table(space.root(), self.geometry.root_level(), 0)?;
            let pages = (census.pages - before.pages) as i64;
            let found = Counts { tables: (census.tables - before.tables) as i64 - 1, ..Counts::pages(pages) };
            if space.counts() != found {
                return Err(Violation::Counts(space.counts(), found));
            }
        }
        for (pfn, (order, refs)) in &blocks {
            census.frames += u64::from(order.frames());
            if self.frames.refs(Pfn(*pfn)) != *refs {
                return Err(Violation::References(Pfn(*pfn), *refs, self.frames.refs(Pfn(*pfn))));
            }
        }
        self.check_totals(&census, blocks.len() as u64)?;
        Ok(census)
    }

    fn check_totals(&self, census: &Census, blocks: u64) -> Result<(), Violation> {
        let in_use = census.frames + census.tables + self.prezeroed_frames();
        if let Some(given) = self.world.frames().frames_allocated().filter(|given| *given != in_use) {
            return Err(Violation::Frames(given, in_use));
        }
        if self.listed_blocks() != blocks {
            return Err(Violation::Listed(self.listed_blocks(), blocks));
        }
        Ok(())
    }
}

/// The state of a pass over the page tables of one address space.
struct Look<'a, W: World> {
    engine: &'a Engine<W>,
    map: &'a AreaMap,
    blocks: &'a mut Blocks,
    census: &'a mut Census,
}

impl<W: World> Look<'_, W> {
    fn table(&mut self, table: TableId, level: u8, start: u64) -> Result<(), Violation> {
        self.census.tables += 1;
        let step = self.engine.geometry.word_span(level);
        for index in 0..self.engine.geometry.entries() {
            let (word, va) = (self.engine.tables.load(table, index), start + u64::from(index) * step);
            match word.meaning(level) {
                Meaning::Empty => {}
                Meaning::Table(below) => self.table(below, level - 1, va)?,
                Meaning::Page => self.page(word, level, va)?,
                Meaning::Reclaimed(_) => {
                    self.census.reclaimed += 1;
                    self.area(word, va, level)?;
                }
                Meaning::Busy => return Err(Violation::Busy(va, word)),
            }
        }
        Ok(())
    }

    fn page(&mut self, word: Pte, level: u8, va: u64) -> Result<(), Violation> {
        self.area(word, va, level)?;
        if word.is_zero_page() {
            return if word.is_writable() { Err(Violation::SharedWritable(va, word)) } else { Ok(()) };
        }
        self.census.pages += self.engine.geometry.pages_per_word(level) as u64;
        let (head, order) = self.engine.frames.block(word.pfn());
        self.blocks.entry(head.0).or_insert((order, 0)).1 += 1;
        let is_whole = level > 0 || order == Order::ZERO;
        if word.is_writable() && is_whole && self.engine.frames.refs(head) > 1 {
            return Err(Violation::SharedWritable(va, word));
        }
        Ok(())
    }

    /// Checks that the page lies in an area, and that the word has no more rights than this area.
    fn area(&self, word: Pte, va: u64, level: u8) -> Result<(), Violation> {
        let end = va + self.engine.geometry.word_span(level);
        let fits = self.map.find(va).is_some_and(|index| {
            let area = &self.map.areas()[index];
            let allowed = |access| area.prot.allows(access) || !word.permits(access);
            area.range.end >= end && allowed(Access::Read) && allowed(Access::Write)
        });
        if fits { Ok(()) } else { Err(Violation::Stray(va, word)) }
    }
}
