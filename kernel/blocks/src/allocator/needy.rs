//! A request for a block of a zone, with the data that all attempts need.

use pageset_core::{CpuId, MigrateType, NodeChoice, Request, ZoneId};

use super::BlockAllocator;
use crate::access::Access;
use crate::cpu_share::{CpuHome, CpuShare, Wanted};

/// A request for a block of a zone, and the CPU that makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needy<'l> {
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) share: &'l CpuShare,
    pub(super) wanted: Wanted,
    pub(super) highatomic: Highatomic,
    pub(super) places: Places,
}

/// The places where a request looks for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// Only units that suit the request's type.
    Suiting,
    /// All units, suitable units first.
    All,
}

/// Whether a request may take the whole pageblocks of a zone's highatomic reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Highatomic {
    Closed,
    Open,
}

impl Needy<'_> {
    pub(super) fn is_movable(self) -> bool {
        self.wanted.migratetype == MigrateType::Movable
    }
}

impl<A: Access> BlockAllocator<'_, A> {
    /// The zone that a request tries first, if the table `homes` tells it. Returns `None` if the zone must be
    /// looked up in the zonelists.
    #[inline(always)]
    pub(super) fn home_zone(&self, cpu: CpuId, request: &Request) -> Option<ZoneId> {
        let home = self.homes.get(cpu.index())?;
        let is_at_home = match request.nodes {
            NodeChoice::Local => true,
            NodeChoice::Prefer(node) => node == home.node,
            NodeChoice::Only(_) => false,
        };
        let zone = home.zones[request.highest_zone.index()];
        let is_simple = is_at_home && request.zones_below.is_none() && request.migratetype.is_mergeable();
        (is_simple && zone != CpuHome::NO_ZONE).then_some(zone)
    }

    /// Collects the data of a CPU's request in a zone.
    pub(super) fn needy(
        &self,
        zone: ZoneId,
        cpu: CpuId,
        request: &Request,
        highatomic: Highatomic,
    ) -> Needy<'_> {
        Needy {
            zone,
            cpu,
            share: self.share_at(zone, cpu),
            wanted: Wanted::of(request),
            highatomic,
            places: Places::All,
        }
    }
}

impl Wanted {
    #[inline]
    pub(super) const fn of(request: &Request) -> Self {
        Self { order: request.order, migratetype: request.migratetype }
    }
}
