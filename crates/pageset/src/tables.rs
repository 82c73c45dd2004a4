//! The memory of the base's tables: the bits of pageblocks lie on pages that the system provides when they are used. The
//! depot takes pageblocks as wholes and has bits of its own, so most of the base's never are.

use std::io;

use pageset_blocks::{BlockAllocator, FreeBits, TableCounts, Tables, TailBits};
use pageset_core::Config;

use crate::BuildError;
use crate::sys::zeros::Zeros;

/// The bits of all pageblocks.
struct Bits {
    free: Zeros<FreeBits>,
    tails: Zeros<TailBits>,
}

impl Bits {
    fn new(pageblocks: usize) -> io::Result<Self> {
        Ok(Self { free: Zeros::new(pageblocks)?, tails: Zeros::new(pageblocks)? })
    }
}

/// An allocator, and the memory that it borrows.
///
/// # Invariants
/// Only the allocator uses the bits, and it goes first: fields are dropped in this order.
pub(crate) struct Allocator {
    /// Only as long as this value lives: [`get`](Self::get) says so.
    allocator: BlockAllocator<'static>,
    _bits: Bits,
}

impl Allocator {
    /// The allocator that `build` makes of its tables, and the bytes that these are.
    pub(crate) fn with_tables(
        config: &Config<'_>,
        build: impl for<'a> FnOnce(Tables<'a>) -> Result<BlockAllocator<'a>, BuildError>,
    ) -> Result<(Self, usize), BuildError> {
        let counts = TableCounts::for_config(config)?;
        let mut bits = Bits::new(counts.pageblocks)
            .map_err(|source| BuildError::System { what: "map the pool's tables", source })?;
        // SAFETY: `build` is for any lifetime, so it keeps none of them. The allocator has them, and by the invariant it goes before
        // the bits.
        let free = unsafe { bits.free.lend() };
        // SAFETY: as above.
        let tails = unsafe { bits.tails.lend() };
        let tables = Tables::with_bits(free.into(), tails.into(), config)?;
        let bytes = tables.bytes();
        Ok((Self { allocator: build(tables)?, _bits: bits }, bytes))
    }

    /// The allocator, for as long as its tables are there.
    #[inline(always)]
    pub(crate) fn get(&self) -> &BlockAllocator<'_> {
        &self.allocator
    }
}
