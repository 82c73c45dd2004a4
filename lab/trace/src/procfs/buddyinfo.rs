//! `/proc/buddyinfo`: free blocks by zone and order.

use pageset_core::{NR_ORDERS, ZoneKind};
use serde::{Deserialize, Serialize};

use super::{ProcError, ZONES_MAX, ZoneLine, excerpt};

const FILE: &str = "buddyinfo";

/// Free blocks of every populated zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buddyinfo {
    /// The populated zones, in the file's order.
    pub zones: Vec<FreeBlocks>,
}

/// Free blocks of one zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeBlocks {
    /// NUMA node.
    pub node: u16,
    /// Kind of the zone.
    #[serde(with = "crate::zone_name")]
    pub kind: ZoneKind,
    /// Blocks by order.
    pub blocks: [u64; NR_ORDERS],
}

impl FreeBlocks {
    /// Number of frames in all free blocks.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.blocks
            .iter()
            .enumerate()
            .fold(0, |sum, (order, count)| sum.saturating_add(count.saturating_mul(1 << order)))
    }
}

impl Buddyinfo {
    /// Parses the file's text. A text with more than 11 orders is rejected. The count of a missing order is
    /// 0.
    ///
    /// # Errors
    /// An error if a line is not `Node n, zone NAME` followed by counts.
    pub fn parse(text: &str) -> Result<Self, ProcError> {
        let mut zones = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let owner = ZoneLine::parse(line)
                .ok_or_else(|| ProcError::new(FILE, index + 1, format!("not a zone: {}", excerpt(line))))?;
            let blocks = parse_orders(FILE, index + 1, owner.rest)?;
            // Leave out a zone that this project does not model, such as `Device`.
            if let Some(kind) = owner.kind() {
                zones.push(FreeBlocks { node: owner.node, kind, blocks });
            }
            if zones.len() > ZONES_MAX {
                return Err(ProcError::new(FILE, index + 1, format!("more than {ZONES_MAX} zones")));
            }
        }
        Ok(Self { zones })
    }

    /// The zone `kind` of `node`.
    #[must_use]
    pub fn zone(&self, node: u16, kind: ZoneKind) -> Option<&FreeBlocks> {
        self.zones.iter().find(|zone| zone.node == node && zone.kind == kind)
    }
}

/// Parses counts by order. If the kernel printed a lower bound (`>100000`), the count is this bound.
pub(super) fn parse_orders(
    file: &'static str,
    line: usize,
    text: &str,
) -> Result<[u64; NR_ORDERS], ProcError> {
    let mut blocks = [0; NR_ORDERS];
    for (order, count) in text.split_whitespace().enumerate() {
        let slot = blocks.get_mut(order).ok_or_else(|| {
            ProcError::new(
                file,
                line,
                format!("more than {NR_ORDERS} orders, which this program does not model"),
            )
        })?;
        *slot = count
            .strip_prefix('>')
            .unwrap_or(count)
            .parse()
            .map_err(|_| ProcError::new(file, line, format!("not a count: {}", excerpt(count))))?;
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_by_order() {
        let text = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
                    Node 1, zone   Normal   9127   6087   4758   4243   5067   5745   4476   3017   1661    739   1177 \n";
        let info = Buddyinfo::parse(text).unwrap();
        assert_eq!(info.zone(0, ZoneKind::Dma).unwrap().frames(), 256 + 512 + 3 * 1024);
        assert_eq!(info.zone(1, ZoneKind::Normal).unwrap().blocks[0], 9127);
        assert!(info.zone(0, ZoneKind::Normal).is_none());
    }

    #[test]
    fn twelve_orders_are_refused() {
        let error = Buddyinfo::parse("Node 0, zone DMA 0 1 2 3 4 5 6 7 8 9 10 11").unwrap_err();
        assert!(error.problem.contains("orders"), "{error}");
    }
}
