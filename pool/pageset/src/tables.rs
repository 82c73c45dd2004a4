//! Memory for the base's tables. The table of rows has an entry for each pageblock. The system provides the
//! memory of the table of rows page by page, when the pages are used.

use pageset_blocks::{Alone, BlockAllocator, Rows, TableCounts, Tables};
use pageset_core::Config;

use crate::BuildError;
use crate::sys::zeros::Zeros;

/// An allocator, and the memory that it borrows.
///
/// # Invariants
/// Only the allocator uses the rows. The allocator is dropped first, because fields are dropped in the order
/// of their declaration.
pub(crate) struct Allocator {
    /// The allocator is valid only while this value lives, although its type says `'static`.
    /// [`get`](Self::get) limits the lifetime.
    allocator: BlockAllocator<'static, Alone>,
    _rows: Zeros<Rows<Alone>>,
}

impl Allocator {
    /// Makes tables, and calls `build` to make an allocator that borrows them. Returns the allocator, and the
    /// number of bytes of the tables.
    pub(crate) fn with_tables(
        config: &Config<'_>,
        build: impl for<'a> FnOnce(Tables<'a, Alone>) -> Result<BlockAllocator<'a, Alone>, BuildError>,
    ) -> Result<(Self, usize), BuildError> {
        let counts = TableCounts::for_config(config)?;
        let mut rows = Zeros::new(counts.pageblocks)
            .map_err(|source| BuildError::System { what: "map the pool's tables", source })?;
        // SAFETY: `build` is generic over the lifetime, so `build` cannot keep the rows. Only the allocator
        // has the rows, and by the invariant the allocator is dropped before the rows.
        let lent = unsafe { rows.lend() };
        let tables = Tables::with_rows(lent.into(), config)?;
        let bytes = tables.bytes();
        Ok((Self { allocator: build(tables)?, _rows: rows }, bytes))
    }

    /// The allocator, for as long as its tables live.
    #[inline(always)]
    pub(crate) fn get(&self) -> &BlockAllocator<'_, Alone> {
        &self.allocator
    }
}
