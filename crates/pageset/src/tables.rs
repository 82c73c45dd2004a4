//! The memory of the base's tables: the bits of pageblocks lie on pages that the system provides when they are used. The
//! depot takes pageblocks as wholes and has bits of its own, so most of the base's never are.

use std::io;

use pageset_blocks::{BlockAllocator, FreeBits, TableCounts, Tables, TailBits};
use pageset_core::Config;
use self_cell::{MutBorrow, self_cell};

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

self_cell!(
    /// An allocator, and the memory that it borrows.
    pub(crate) struct Allocator {
        owner: MutBorrow<Bits>,
        #[covariant]
        dependent: BlockAllocator,
    }
);

impl Allocator {
    /// The allocator that `build` makes of its tables, and the bytes that these are.
    pub(crate) fn with_tables(
        config: &Config<'_>,
        build: impl for<'a> FnOnce(Tables<'a>) -> Result<BlockAllocator<'a>, BuildError>,
    ) -> Result<(Self, usize), BuildError> {
        let counts = TableCounts::for_config(config)?;
        let bits = Bits::new(counts.pageblocks)
            .map_err(|source| BuildError::System { what: "map the pool's tables", source })?;
        let mut bytes = 0;
        let allocator = Self::try_new(MutBorrow::new(bits), |bits| {
            let bits = bits.borrow_mut();
            let tables = Tables::with_bits((&mut *bits.free).into(), (&mut *bits.tails).into(), config)?;
            bytes = tables.bytes();
            build(tables)
        })?;
        Ok((allocator, bytes))
    }
}
