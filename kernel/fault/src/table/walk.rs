//! The walk from the root to the page-table word for an address.

use super::TableArena;
use crate::geometry::Geometry;
use crate::pte::{Meaning, Pte, TableId};

/// The place of a page-table word, and the place of the parent word, which leads to the word's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) table: TableId,
    pub(crate) index: u32,
    /// The level of the table. Level 0 is a leaf table.
    pub(crate) level: u8,
    /// The parent word, which leads to the table. `None` for the root.
    pub(crate) parent: Option<(TableId, u32)>,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The walk reached a word of the wanted level, or a huge page above that level. The fields of `Word` are
    /// the word's place and the word.
    Word(Slot, Pte),
    /// The walk reached an empty word above the wanted level, so the table below is missing.
    NoTable(Slot),
    /// The walk reached a word that another task is changing, or a table that was taken out of the tree. The
    /// caller must start again.
    Busy,
}

/// Walks from `root` to the word for `va` in a table of level `level`, or to a huge page above that level,
/// without locks. Each step reads its word once, with `Acquire` (ordering E2).
#[inline]
pub(crate) fn walk<R: lock_api::RawMutex>(
    tables: &TableArena<R>,
    geometry: Geometry,
    root: TableId,
    va: u64,
    level: u8,
) -> Found {
    let mut slot = Slot {
        table: root,
        index: geometry.index(va, geometry.root_level()),
        level: geometry.root_level(),
        parent: None,
    };
    loop {
        let word = tables.load(slot.table, slot.index);
        if slot.level == level {
            return Found::Word(slot, word);
        }
        match word.meaning(slot.level) {
            Meaning::Empty => return Found::NoTable(slot),
            Meaning::Page => return Found::Word(slot, word),
            Meaning::Table(table) => slot = slot.below(table, geometry.index(va, slot.level - 1)),
            Meaning::Reclaimed(_) | Meaning::Busy => return Found::Busy,
        }
    }
}

impl Slot {
    /// The place of word number `index` in `table`, which the word at `self` names.
    #[inline]
    pub(crate) fn below(self, table: TableId, index: u32) -> Self {
        Self { table, index, level: self.level - 1, parent: Some((self.table, self.index)) }
    }

    /// The place of another word in the same table.
    #[inline]
    pub(crate) fn at(self, index: u32) -> Self {
        Self { index, ..self }
    }
}
