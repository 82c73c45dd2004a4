//! `/proc/pagetypeinfo`: free blocks by migratetype, and pageblocks by migratetype.

use pageset_core::{MigrateType, NR_ORDERS, ZoneKind};
use serde::{Deserialize, Serialize};

use super::{ProcError, ZONES_MAX, ZoneLine, buddyinfo::parse_orders, excerpt};

const FILE: &str = "pagetypeinfo";

/// Free blocks and pageblocks of every populated zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pagetypeinfo {
    /// The pageblock's order, from the file's first line.
    pub pageblock_order: Option<u8>,
    /// Free blocks by zone and migratetype.
    pub free: Vec<TypedFreeBlocks>,
    /// Pageblocks by zone.
    pub pageblocks: Vec<Pageblocks>,
}

/// Free blocks of one zone and migratetype.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypedFreeBlocks {
    /// NUMA node.
    pub node: u16,
    /// Kind of the zone.
    #[serde(with = "crate::zone_name")]
    pub kind: ZoneKind,
    /// The kernel's migratetype number (index of [`MigrateType`]).
    pub migratetype: u8,
    /// Blocks by order. The kernel counts no more than 100 000 blocks of each order.
    pub blocks: [u64; NR_ORDERS],
}

/// Pageblocks of one zone by migratetype.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pageblocks {
    /// NUMA node.
    pub node: u16,
    /// Kind of the zone.
    #[serde(with = "crate::zone_name")]
    pub kind: ZoneKind,
    /// Pageblocks by migratetype.
    pub count: [u64; MigrateType::COUNT],
}

impl Pagetypeinfo {
    /// Parses the file's text.
    ///
    /// # Errors
    /// An error if a line has none of the file's forms, or if a migratetype is unknown.
    pub fn parse(text: &str) -> Result<Self, ProcError> {
        let mut info = Self::default();
        let mut columns: Vec<MigrateType> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let error = |problem: String| ProcError::new(FILE, index + 1, problem);
            if let Some(order) = line.strip_prefix("Page block order:") {
                let order = order.trim();
                info.pageblock_order =
                    Some(order.parse().map_err(|_| error(format!("not an order: {}", excerpt(order))))?);
            } else if let Some(names) = line.strip_prefix("Number of blocks type") {
                columns = names
                    .split_whitespace()
                    .map(|name| migratetype(name).ok_or_else(|| error(unknown_type(name))))
                    .collect::<Result<_, _>>()?;
            } else if let Some(owner) = ZoneLine::parse(line) {
                info.zone_line(&owner, &columns, index + 1)?;
            } else if !(line.trim().is_empty()
                || line.starts_with("Pages per block:")
                || line.starts_with("Free pages count per migrate type"))
            {
                return Err(error(format!("unexpected line {}", excerpt(line))));
            }
            if info.free.len() > ZONES_MAX * MigrateType::COUNT || info.pageblocks.len() > ZONES_MAX {
                return Err(error(format!("more than {ZONES_MAX} zones")));
            }
        }
        Ok(info)
    }

    fn zone_line(
        &mut self,
        owner: &ZoneLine<'_>,
        columns: &[MigrateType],
        line: usize,
    ) -> Result<(), ProcError> {
        if let Some(rest) = owner.rest.trim_start().strip_prefix(", type").map(str::trim_start) {
            let (name, counts) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let migratetype =
                migratetype(name).ok_or_else(|| ProcError::new(FILE, line, unknown_type(name)))?;
            let blocks = parse_orders(FILE, line, counts)?;
            if let Some(kind) = owner.kind() {
                self.free.push(TypedFreeBlocks {
                    node: owner.node,
                    kind,
                    migratetype: migratetype.index() as u8,
                    blocks,
                });
            }
            return Ok(());
        }
        let mut count = [0; MigrateType::COUNT];
        for (column, number) in owner.rest.split_whitespace().enumerate() {
            let migratetype = columns
                .get(column)
                .ok_or_else(|| ProcError::new(FILE, line, "more counts than types in the heading"))?;
            count[migratetype.index()] = number
                .parse()
                .map_err(|_| ProcError::new(FILE, line, format!("not a count: {}", excerpt(number))))?;
        }
        if let Some(kind) = owner.kind() {
            self.pageblocks.push(Pageblocks { node: owner.node, kind, count });
        }
        Ok(())
    }

    /// Free blocks of `migratetype` in the zone `kind` of `node`, by order.
    #[must_use]
    pub fn free(&self, node: u16, kind: ZoneKind, migratetype: MigrateType) -> Option<&[u64; NR_ORDERS]> {
        self.free
            .iter()
            .find(|free| {
                free.node == node && free.kind == kind && usize::from(free.migratetype) == migratetype.index()
            })
            .map(|free| &free.blocks)
    }

    /// Pageblocks by migratetype in the zone `kind` of `node`.
    #[must_use]
    pub fn pageblocks(&self, node: u16, kind: ZoneKind) -> Option<&[u64; MigrateType::COUNT]> {
        self.pageblocks.iter().find(|zone| zone.node == node && zone.kind == kind).map(|zone| &zone.count)
    }
}

/// Parses the name of a migratetype. Kernels before 4.4 had a reserve called `Reserve`, which this crate
/// reads as `HighAtomic`.
fn migratetype(name: &str) -> Option<MigrateType> {
    if name == "Reserve" { Some(MigrateType::HighAtomic) } else { MigrateType::from_name(name) }
}

fn unknown_type(name: &str) -> String {
    format!("unknown migratetype {}", excerpt(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10
Node    0, zone    DMA32, type    Unmovable     14      9     10     10      7      7      4      2      2      1      0
Node    0, zone    DMA32, type      Movable >100000     34     19     37      9      1      7      1     28     19     53
Node    0, zone    DMA32, type      Isolate      0      0      0      0      0      0      0      0      0      0      0

Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate
Node 0, zone    DMA32           55          157            4            0            0
";

    #[test]
    fn both_tables_are_read() {
        let info = Pagetypeinfo::parse(TEXT).unwrap();
        assert_eq!(info.pageblock_order, Some(9));
        let movable = info.free(0, ZoneKind::Dma32, MigrateType::Movable).unwrap();
        assert_eq!((movable[0], movable[10]), (100_000, 53));
        assert_eq!(info.pageblocks(0, ZoneKind::Dma32).unwrap(), &[55, 157, 4, 0, 0, 0]);
        assert!(info.free(1, ZoneKind::Dma32, MigrateType::Movable).is_none());
    }

    #[test]
    fn unknown_types_and_lines_are_named() {
        let error = Pagetypeinfo::parse(&TEXT.replace("Isolate      0", "Purple      0")).unwrap_err();
        assert_eq!(error.line, 7);
        assert!(error.problem.contains("Purple"), "{error}");
        assert_eq!(Pagetypeinfo::parse("hello\n").unwrap_err().line, 1);
        assert_eq!(Pagetypeinfo::parse("Node 0, zone DMA 1 2\n").unwrap_err().line, 1);
    }
}
