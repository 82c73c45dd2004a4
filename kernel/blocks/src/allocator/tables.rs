//! Memory for the allocator's own data: lent by the caller, or on the heap.

use pageset_core::{Config, ConfigError, MAX_ORDER, Storage, ZoneConfig, ZoneId};

use super::FRAMES;
use super::sets::SETS;
use crate::access::{Access, Shared};
use crate::bad_bits::BadBits;
use crate::cpu_share::{CpuHome, CpuShare};
use crate::index::{Index, IndexWord};
use crate::row::ROWS;
use crate::rows::Rows;
use crate::state::BlockState;
use crate::zone::Zone;

/// Tables of an allocator: 144 bytes for each pageblock (72 KiB for each GiB), 256 bytes for each CPU and
/// zone, and 12 for each CPU.
///
/// A zone has as many pageblocks as its span, holes included, rounded to multiples of 1024 frames at both
/// ends.
///
/// A kernel or program has three places for the tables: a static [`TableMemory`](super::TableMemory), memory
/// that it finds at boot ([`Tables::lent`]), or the heap (`Tables::on_heap`, feature `alloc`).
///
/// `pageset-core` has a type of the same name, and also a `TableCounts` and a `Zone`. Import them by name,
/// not by `*`.
#[derive(Debug)]
pub struct Tables<'a, A = Shared> {
    /// The frames of each pageblock.
    pub(super) rows: Storage<'a, Rows<A>>,
    /// The frames of each pageblock that are out of service.
    pub(super) bad: Storage<'a, BadBits>,
    /// The state of each pageblock.
    pub(super) states: Storage<'a, BlockState>,
    /// The sets of pageblocks.
    pub(super) index: Storage<'a, IndexWord>,
    /// The data of each CPU for each zone.
    pub(super) shares: Storage<'a, CpuShare>,
    /// The zones that each CPU's requests try first.
    pub(super) homes: Storage<'a, CpuHome>,
    /// Zones.
    pub(super) zones: Storage<'a, Zone>,
    /// The zonelist of each node: all zones, in the order that requests try them.
    pub(super) zonelists: Storage<'a, ZoneId>,
}

/// How many entries each table needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableCounts {
    /// Pageblocks, each with its rows and its state.
    pub pageblocks: usize,
    /// Pageblocks that can have bad frames: 16, or a 32nd of the pageblocks if there are at least 512.
    pub bad: usize,
    /// Words of the sets of pageblocks.
    pub index: usize,
    /// Entries with the data of one CPU for one zone: one for each CPU and zone.
    pub shares: usize,
    /// CPUs.
    pub cpus: usize,
    /// Zones.
    pub zones: usize,
    /// Entries of the zonelists: one for each zone and node.
    pub zonelists: usize,
}

impl TableCounts {
    /// Alignment of all tables together, when they lie one after the other as in [`Tables::lent`].
    pub const ALIGN: usize = {
        let aligns = [
            align_of::<Rows>(),
            align_of::<BadBits>(),
            align_of::<BlockState>(),
            align_of::<IndexWord>(),
            align_of::<CpuShare>(),
            align_of::<CpuHome>(),
            align_of::<Zone>(),
            align_of::<ZoneId>(),
        ];
        let (mut largest, mut index) = (1, 0);
        while index < aligns.len() {
            largest = if aligns[index] > largest { aligns[index] } else { largest };
            index += 1;
        }
        largest
    };

    /// Counts the entries of all tables of an allocator with these numbers of pageblocks, zones, CPUs and
    /// nodes. This function is `const`, so a program can use the numbers as lengths of static tables.
    ///
    /// Pageblocks are 512 frames, counted over the spans of the zones, each rounded to 1024 frames at both
    /// ends.
    #[must_use]
    pub const fn new(pageblocks: usize, zones: usize, cpus: usize, nodes: usize) -> Self {
        Self {
            pageblocks,
            bad: BadBits::entries(pageblocks),
            index: SETS * Index::words(pageblocks),
            shares: zones * cpus,
            cpus,
            zones,
            zonelists: zones * nodes,
        }
    }

    /// Bytes of all tables, one after the other in the order of [`Tables::lent`]. The first table begins at a
    /// multiple of [`ALIGN`](Self::ALIGN).
    #[must_use]
    pub const fn bytes(&self) -> usize {
        const fn behind<T>(at: usize, len: usize) -> usize {
            at.next_multiple_of(align_of::<T>()) + len * size_of::<T>()
        }
        let bits = behind::<BadBits>(behind::<Rows>(0, self.pageblocks), self.bad);
        let sets = behind::<IndexWord>(behind::<BlockState>(bits, self.pageblocks), self.index);
        let homes = behind::<CpuHome>(behind::<CpuShare>(sets, self.shares), self.cpus);
        behind::<ZoneId>(behind::<Zone>(homes, self.zones), self.zonelists)
    }

    /// The entries that a configuration needs.
    ///
    /// # Errors
    /// [`ConfigError::BadZoneSpan`] if a zone is empty or larger than memory can be.
    pub fn for_config(config: &Config<'_>) -> Result<Self, ConfigError> {
        let (zones, cpus, nodes) = (config.zones.len(), config.cpus.len(), config.nodes());
        let mut pageblocks = 0;
        for (index, zone) in config.zones.iter().enumerate() {
            let blocks = pageblocks_of(zone).ok_or(ConfigError::BadZoneSpan(index))?;
            pageblocks += blocks;
        }
        Ok(Self::new(pageblocks, zones, cpus, nodes))
    }
}

/// Hands out memory for tables piece by piece. A kernel implements it over the first memory that it finds at
/// boot.
///
/// An implementation makes typed slices out of bytes, and needs unsafe code for that. This crate has no
/// unsafe code.
pub trait TableLender<'a> {
    /// A table of `len` entries, each made by `make`. Returns `None` if there is not enough memory.
    fn lend<T: 'a>(&mut self, len: usize, make: impl FnMut() -> T) -> Option<&'a mut [T]>;
}

impl<'a, A: Access> Tables<'a, A> {
    /// Makes the tables for `config` in memory of one lender. [`TableCounts::bytes`] tells their size in
    /// advance.
    ///
    /// # Errors
    /// [`ConfigError::BadZoneSpan`] if a zone is empty or too large, [`ConfigError::OutOfMemory`] if the
    /// lender has too little memory.
    pub fn lent(config: &Config<'_>, lender: &mut impl TableLender<'a>) -> Result<Self, ConfigError> {
        fn lend<'a, T: 'a>(
            lender: &mut impl TableLender<'a>,
            len: usize,
            make: impl FnMut() -> T,
        ) -> Result<Storage<'a, T>, ConfigError> {
            let table = lender.lend(len, make);
            table.map(Storage::from).ok_or(ConfigError::OutOfMemory(len.saturating_mul(size_of::<T>())))
        }
        let counts = TableCounts::for_config(config)?;
        // The tables lie in the order that `TableCounts::bytes` counts.
        Ok(Self {
            rows: lend(lender, counts.pageblocks, Rows::new)?,
            bad: lend(lender, counts.bad, BadBits::new)?,
            states: lend(lender, counts.pageblocks, BlockState::new)?,
            index: lend(lender, counts.index, IndexWord::new)?,
            shares: lend(lender, counts.shares, CpuShare::new)?,
            homes: lend(lender, counts.cpus, CpuHome::new)?,
            zones: lend(lender, counts.zones, Zone::empty)?,
            zonelists: lend(lender, counts.zonelists, || ZoneId(0))?,
        })
    }
}

/// The frames that a zone's pageblocks cover: its span, rounded to multiples of the largest block. Returns
/// `None` if the end is beyond all frame numbers.
pub(super) fn covering(zone: &ZoneConfig<'_>) -> Option<core::ops::Range<u64>> {
    const LARGEST: u64 = 1 << MAX_ORDER;
    Some(zone.span.start / LARGEST * LARGEST..zone.span.end.checked_next_multiple_of(LARGEST)?)
}

/// The number of pageblocks of a zone. Returns `None` if the zone has no frames, or too many pageblocks.
pub(super) fn pageblocks_of(zone: &ZoneConfig<'_>) -> Option<usize> {
    let covering = covering(zone)?;
    let blocks = covering.end.checked_sub(covering.start)? / FRAMES as u64;
    let is_possible = zone.span.start < zone.span.end && blocks < u64::from(u32::MAX) / ROWS as u64;
    is_possible.then_some(usize::try_from(blocks).ok()?)
}

impl<A: Access> Tables<'_, A> {
    /// Bytes of all tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.rows)
            + size_of_val(&*self.bad)
            + size_of_val(&*self.states)
            + size_of_val(&*self.index)
            + size_of_val(&*self.shares)
            + size_of_val(&*self.homes)
            + size_of_val(&*self.zones)
            + size_of_val(&*self.zonelists)
    }

    /// The address range of each table that CPUs share: `rows`, `states`, `shares`, `zones`, `index`, `bad`.
    /// From these ranges, an observer of atomic operations finds out which table an operation used.
    #[cfg(all(feature = "observed", not(any(loom, shuttle))))]
    #[must_use]
    pub fn addresses(&self) -> [core::ops::Range<usize>; 6] {
        fn of<T>(table: &[T]) -> core::ops::Range<usize> {
            let range = table.as_ptr_range();
            range.start.addr()..range.end.addr()
        }
        [of(&self.rows), of(&self.states), of(&self.shares), of(&self.zones), of(&self.index), of(&self.bad)]
    }

    pub(super) fn check(&self, needed: TableCounts) -> Result<(), ConfigError> {
        for (table, len, needed) in [
            ("rows", self.rows.len(), needed.pageblocks),
            ("bad", self.bad.len(), needed.bad),
            ("states", self.states.len(), needed.pageblocks),
            ("index", self.index.len(), needed.index),
            ("shares", self.shares.len(), needed.shares),
            ("homes", self.homes.len(), needed.cpus),
            ("zones", self.zones.len(), needed.zones),
            ("zonelists", self.zonelists.len(), needed.zonelists),
        ] {
            if len != needed {
                return Err(ConfigError::TableLength(table, needed));
            }
        }
        Ok(())
    }
}

#[cfg(feature = "alloc")]
impl<A: Access> Tables<'static, A> {
    /// Tables on the heap for `config`.
    ///
    /// # Errors
    /// [`ConfigError::BadZoneSpan`] if a zone is empty or too large, [`ConfigError::OutOfMemory`] if the heap
    /// has too little.
    pub fn on_heap(config: &Config<'_>) -> Result<Self, ConfigError> {
        let pageblocks = TableCounts::for_config(config)?.pageblocks;
        Tables::with_rows(Storage::owned(pageblocks, Rows::new)?, config)
    }
}

#[cfg(feature = "alloc")]
impl<'a, A: Access> Tables<'a, A> {
    /// Tables on the heap for `config`, except for `rows`, the largest table. `rows` needs
    /// [`TableCounts::pageblocks`] entries, made by `new` or all zeros.
    ///
    /// # Errors
    /// [`ConfigError::BadZoneSpan`] if a zone is empty or too large, [`ConfigError::OutOfMemory`] if the heap
    /// has too little. If `rows` has another length, [`BlockAllocator::new`](crate::BlockAllocator::new)
    /// returns an error.
    pub fn with_rows(rows: Storage<'a, Rows<A>>, config: &Config<'_>) -> Result<Self, ConfigError> {
        let counts = TableCounts::for_config(config)?;
        Ok(Self {
            rows,
            bad: zeroed(counts.bad, BadBits::new)?,
            states: zeroed(counts.pageblocks, BlockState::new)?,
            index: zeroed(counts.index, IndexWord::new)?,
            shares: Storage::owned(counts.shares, CpuShare::new)?,
            homes: Storage::owned(counts.cpus, CpuHome::new)?,
            zones: Storage::owned(counts.zones, Zone::empty)?,
            zonelists: Storage::owned(counts.zonelists, || ZoneId(0))?,
        })
    }
}

/// Makes a table of zeros. An entry of zeros equals an entry that `make` makes. The system provides memory
/// only for the entries that are used.
#[cfg(all(feature = "alloc", not(any(loom, shuttle))))]
fn zeroed<'a, T: zerocopy::FromZeros>(len: usize, _make: fn() -> T) -> Result<Storage<'a, T>, ConfigError> {
    let refused = |_| ConfigError::OutOfMemory(len.saturating_mul(size_of::<T>()));
    Ok(Storage::Owned(<[T] as zerocopy::FromZeros>::new_box_zeroed_with_elems(len).map_err(refused)?))
}

/// Under a model checker, makes the entries one by one, because zeros are no valid entries.
#[cfg(all(feature = "alloc", any(loom, shuttle)))]
fn zeroed<'a, T>(len: usize, make: fn() -> T) -> Result<Storage<'a, T>, ConfigError> {
    Storage::owned(len, make)
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use std::format;

    use zerocopy::FromZeros as _;

    use super::*;

    #[test]
    fn zeros_are_entries_of_which_nothing_is_known() {
        assert_eq!(format!("{:?}", <Rows>::new_zeroed()), format!("{:?}", <Rows>::new()));
        assert_eq!(format!("{:?}", BlockState::new_zeroed()), format!("{:?}", BlockState::new()));
        assert_eq!(format!("{:?}", BadBits::new_zeroed()), format!("{:?}", BadBits::new()));
        assert_eq!(format!("{:?}", IndexWord::new_zeroed()), format!("{:?}", IndexWord::new()));
    }
}
