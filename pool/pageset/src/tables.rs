//! Memory for the base's tables. Rows of pageblocks lie on pages that the system provides when they are used.

use pageset_blocks::{Alone, BlockAllocator, Rows, TableCounts, Tables};
use pageset_core::Config;

use crate::BuildError;
use crate::sys::zeros::Zeros;

/// An allocator, and the memory that it borrows.
///
/// # Invariants
/// Only the allocator uses the rows. The allocator is dropped first: fields are dropped in this order.
pub(crate) struct Allocator {
    /// The allocator is valid only while this value lives; [`get`](Self::get) limits its lifetime.
    allocator: BlockAllocator<'static, Alone>,
    _rows: Zeros<Rows<Alone>>,
}

impl Allocator {
    /// Lets `build` make the allocator from its tables. Returns the allocator, and the bytes of the tables.
    pub(crate) fn with_tables(
        config: &Config<'_>,
        build: impl for<'a> FnOnce(Tables<'a, Alone>) -> Result<BlockAllocator<'a, Alone>, BuildError>,
    ) -> Result<(Self, usize), BuildError> {
        let counts = TableCounts::for_config(config)?;
        let mut rows = Zeros::new(counts.pageblocks)
            .map_err(|source| BuildError::System { what: "map the pool's tables", source })?;
        // SAFETY: `build` is for any lifetime, so it keeps no rows. The allocator has the rows, and by the
        // invariant it is dropped before them.
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
