//! The memory of the base's tables: the bits of pageblocks lie on pages that the system provides when they are used. The
//! depot takes pageblocks as wholes and has bits of its own, so most of the base's never are.

use pageset_blocks::{BlockAllocator, FreeBits, TableCounts, Tables, TailBits};
use pageset_core::Config;
use self_cell::{MutBorrow, self_cell};

use crate::BuildError;

/// The bits of all pageblocks.
struct Bits {
    free: Table<FreeBits>,
    tails: Table<TailBits>,
}

#[cfg(not(shuttle))]
type Table<T> = crate::sys::zeros::Zeros<T>;
/// Atomics of a model checker are more than their zeros.
#[cfg(shuttle)]
type Table<T> = Box<[T]>;

impl Bits {
    #[cfg(not(shuttle))]
    fn new(pageblocks: usize) -> std::io::Result<Self> {
        Ok(Self { free: Table::new(pageblocks)?, tails: Table::new(pageblocks)? })
    }

    #[cfg(shuttle)]
    fn new(pageblocks: usize) -> std::io::Result<Self> {
        let (free, tails) = (|_| FreeBits::new(), |_| TailBits::new());
        Ok(Self { free: (0..pageblocks).map(free).collect(), tails: (0..pageblocks).map(tails).collect() })
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
