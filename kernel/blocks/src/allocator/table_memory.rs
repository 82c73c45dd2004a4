//! One value that holds all tables of an allocator, so that a kernel can make it a static.

use pageset_core::{Config, ConfigError, Storage, ZoneId};

use super::{TableCounts, Tables};
use crate::access::{Access, Shared};
use crate::atomic::{array, constant};
use crate::bad_bits::BadBits;
use crate::cpu_share::{CpuHome, CpuShare};
use crate::index::IndexWord;
use crate::rows::Rows;
use crate::state::BlockState;
use crate::zone::Zone;

/// All tables of an allocator. [`table_memory!`](crate::table_memory) names the type of the right size.
///
/// A new `TableMemory` is all zeros. So a static of this type lies in `.bss` and takes no room in a kernel's
/// image.
///
/// ```
/// use pageset_blocks::{BlockAllocator, TableCounts, TableMemory, table_memory};
/// # use pageset_core::{Config, ConfigError, NodeId, ZoneConfig, ZoneKind};
///
/// // 1 GiB in one zone, two CPUs, one node.
/// const COUNTS: TableCounts = TableCounts::new((1 << 18) / 512, 1, 2, 1);
/// static MEMORY: std::sync::Mutex<table_memory!(COUNTS)> = std::sync::Mutex::new(TableMemory::new());
///
/// let mut memory = MEMORY.lock().unwrap(); // a kernel has a `ConstStaticCell`
/// # let regions = [0..1 << 18];
/// # let zones =
/// #     [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..1 << 18, regions: &regions }];
/// # let config = Config::new(&zones, &[NodeId(0); 2]);
/// let allocator = BlockAllocator::new(&config, memory.tables(&config)?)?;
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Debug)]
#[repr(C)] // The tables with the largest alignment come first.
pub struct TableMemory<
    const PAGEBLOCKS: usize,
    const BAD: usize,
    const INDEX: usize,
    const SHARES: usize,
    const CPUS: usize,
    const ZONES: usize,
    const ZONELISTS: usize,
    A = Shared,
> {
    shares: [CpuShare; SHARES],
    zones: [Zone; ZONES],
    rows: [Rows<A>; PAGEBLOCKS],
    states: [BlockState; PAGEBLOCKS],
    bad: [BadBits; BAD],
    index: [IndexWord; INDEX],
    homes: [CpuHome; CPUS],
    zonelists: [ZoneId; ZONELISTS],
}

/// The type of [`TableMemory`] that has room for these [`TableCounts`](crate::TableCounts), a constant.
///
/// `table_memory!(COUNTS, Alone)` is for [`BlockAllocator::for_one`](crate::BlockAllocator::for_one).
#[macro_export]
macro_rules! table_memory {
    ($counts:expr) => {
        $crate::table_memory!($counts, $crate::Shared)
    };
    ($counts:expr, $access:ty) => {
        $crate::TableMemory<
            { $counts.pageblocks },
            { $counts.bad },
            { $counts.index },
            { $counts.shares },
            { $counts.cpus },
            { $counts.zones },
            { $counts.zonelists },
            $access,
        >
    };
}

impl<
    const PAGEBLOCKS: usize,
    const BAD: usize,
    const INDEX: usize,
    const SHARES: usize,
    const CPUS: usize,
    const ZONES: usize,
    const ZONELISTS: usize,
    A: Access,
> TableMemory<PAGEBLOCKS, BAD, INDEX, SHARES, CPUS, ZONES, ZONELISTS, A>
{
    constant! {
        /// Memory for the tables: all zeros.
        #[must_use]
        #[expect(clippy::new_without_default, reason = "large: for statics, not for the stack")]
        pub fn new() -> Self {
            Self {
                shares: array!(CpuShare::new()),
                zones: array!(Zone::empty()),
                rows: array!(Rows::new()),
                states: array!(BlockState::new()),
                bad: array!(BadBits::new()),
                index: array!(IndexWord::new()),
                homes: array!(CpuHome::new()),
                zonelists: [ZoneId(0); ZONELISTS],
            }
        }
    }

    /// Returns the tables for `config`. Each returned table is the beginning of a table in this value. So a
    /// value for the largest machine also serves a smaller machine.
    ///
    /// # Errors
    /// [`ConfigError::BadZoneSpan`] if a zone is empty or too large, [`ConfigError::TableLength`] if a table
    /// has too few entries.
    pub fn tables(&mut self, config: &Config<'_>) -> Result<Tables<'_, A>, ConfigError> {
        let counts = TableCounts::for_config(config)?;
        Ok(Tables {
            rows: first("rows", &mut self.rows, counts.pageblocks)?,
            bad: first("bad", &mut self.bad, counts.bad)?,
            states: first("states", &mut self.states, counts.pageblocks)?,
            index: first("index", &mut self.index, counts.index)?,
            shares: first("shares", &mut self.shares, counts.shares)?,
            homes: first("homes", &mut self.homes, counts.cpus)?,
            zones: first("zones", &mut self.zones, counts.zones)?,
            zonelists: first("zonelists", &mut self.zonelists, counts.zonelists)?,
        })
    }
}

/// The first `needed` entries of a table.
fn first<'a, T>(
    name: &'static str,
    table: &'a mut [T],
    needed: usize,
) -> Result<Storage<'a, T>, ConfigError> {
    table.get_mut(..needed).map(Storage::from).ok_or(ConfigError::TableLength(name, needed))
}
