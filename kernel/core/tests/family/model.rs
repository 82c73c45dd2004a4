//! The model of an allocator. The model stores which blocks are in use or out of service, and computes the
//! expected answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pageset_core::{
    AllocError, ConfigError, CpuId, FreeError, MigrateType, NodeChoice, Order, Pfn, Request, ZoneId,
};

use super::machine::{Machine, ZoneShape, order};

/// The state of all blocks.
pub(crate) struct Model {
    pub(crate) machine: Machine,
    /// The blocks in use, by first frame.
    pub(crate) blocks: BTreeMap<u64, Order>,
    /// Isolated pageblocks, as (zone, number of the pageblock).
    pub(crate) isolated: BTreeSet<(ZoneId, u64)>,
    /// The blocks out of service, by first frame.
    pub(crate) leaked: BTreeMap<u64, Order>,
    /// Number of frames that were in use when they went out of service.
    pub(crate) lost_by_users: u64,
    /// CPUs that are offline.
    pub(crate) offline: BTreeSet<CpuId>,
    /// Pageblocks that had holes when the allocator was built.
    ragged: BTreeSet<(ZoneId, u64)>,
}

/// Number of frames in these blocks.
pub(crate) fn frames(blocks: &BTreeMap<u64, Order>) -> u64 {
    blocks.values().map(|order| u64::from(order.frames())).sum()
}

/// The block that contains a frame.
pub(crate) fn around(blocks: &BTreeMap<u64, Order>, pfn: u64) -> Option<(u64, Order)> {
    let (start, order) = blocks.range(..=pfn).next_back()?;
    (pfn < start + u64::from(order.frames())).then_some((*start, *order))
}

/// The largest aligned blocks that make up a range.
pub(crate) fn cut(range: Range<u64>) -> impl Iterator<Item = (u64, Order)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let size =
            (0..=10).rev().find(|size| at.is_multiple_of(1 << size) && at + (1 << size) <= range.end)?;
        let block = (at, order(size));
        at += 1 << size;
        Some(block)
    })
}

impl Model {
    pub(crate) fn new(machine: &Machine) -> Self {
        let mut model = Self {
            machine: machine.clone(),
            blocks: BTreeMap::new(),
            isolated: BTreeSet::new(),
            leaked: BTreeMap::new(),
            lost_by_users: 0,
            offline: BTreeSet::new(),
            ragged: BTreeSet::new(),
        };
        model.ragged = model.pageblocks().filter(|pageblock| !model.is_all_memory(*pageblock)).collect();
        model
    }

    /// Every pageblock of every zone.
    pub(crate) fn pageblocks(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.machine.zones.iter().enumerate().flat_map(|(zone, shape)| {
            let pageblocks = shape.span.start / 512..shape.span.end.div_ceil(512);
            pageblocks.map(move |pageblock| (ZoneId(zone as u16), pageblock))
        })
    }

    /// The frames of a pageblock that are memory, not holes.
    pub(crate) fn memory_of(&self, (zone, pageblock): (ZoneId, u64)) -> impl Iterator<Item = Range<u64>> {
        let whole = pageblock * 512..(pageblock + 1) * 512;
        self.machine.zones[zone.index()].regions.iter().filter_map(move |region| {
            let part = region.start.max(whole.start)..region.end.min(whole.end);
            (part.start < part.end).then_some(part)
        })
    }

    pub(crate) fn is_all_memory(&self, pageblock: (ZoneId, u64)) -> bool {
        self.memory_of(pageblock).map(|part| part.end - part.start).sum::<u64>() == 512
    }

    pub(crate) fn knows(&self, cpu: u32) -> bool {
        (cpu as usize) < self.machine.cpus.len()
    }

    pub(crate) fn around(&self, pfn: u64) -> Option<(u64, Order)> {
        around(&self.blocks, pfn)
    }

    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        [&self.blocks, &self.leaked].iter().any(|blocks| {
            around(blocks, range.start).is_some() || blocks.range(range.clone()).next().is_some()
        })
    }

    /// The zone and number of the frame's pageblock.
    pub(crate) fn pageblock_of(&self, pfn: u64) -> Option<(ZoneId, u64)> {
        let zone = self.machine.zones.iter().position(|zone| zone.span.contains(&pfn))?;
        Some((ZoneId(zone as u16), pfn / 512))
    }

    pub(crate) fn is_isolated(&self, range: &Range<u64>) -> bool {
        let pageblocks = range.start / 512..range.end.div_ceil(512);
        let zone = self.pageblock_of(range.start).map(|(zone, _)| zone);
        zone.is_some_and(|zone| pageblocks.into_iter().any(|block| self.isolated.contains(&(zone, block))))
    }

    pub(crate) fn nth(&self, index: usize) -> Option<(u64, Order)> {
        let nth = index.checked_rem(self.blocks.len())?;
        self.blocks.iter().nth(nth).map(|(start, order)| (*start, *order))
    }

    fn local_node(&self, cpu: u32, request: &Request) -> u16 {
        match request.nodes {
            NodeChoice::Local => self.machine.cpus[cpu as usize],
            NodeChoice::Prefer(node) | NodeChoice::Only(node) => node.0,
        }
    }

    /// Whether a zone may serve a request.
    pub(crate) fn is_eligible(&self, cpu: u32, zone: &ZoneShape, request: &Request) -> bool {
        zone.kind <= request.highest_zone
            && request.zones_below.is_none_or(|limit| zone.span.end <= limit.0)
            && (!matches!(request.nodes, NodeChoice::Only(_)) || zone.node == self.local_node(cpu, request))
    }

    /// Whether a zone has a free block of this order, by the rules of [`is_block_free`](Self::is_block_free).
    pub(crate) fn has_free_block(&self, zone: &ZoneShape, order: Order) -> bool {
        zone.regions.iter().any(|region| {
            let size = u64::from(order.frames());
            let mut at = region.start.next_multiple_of(size);
            while at + size <= region.end {
                if self.is_block_free(at, order) {
                    return true;
                }
                at += size;
            }
            false
        })
    }

    /// Whether the block at this frame is free, and lies in pageblocks that are in service and never had
    /// holes. A single frame may also lie in a pageblock that had holes.
    pub(crate) fn is_block_free(&self, pfn: u64, order: Order) -> bool {
        let range = pfn..pfn + u64::from(order.frames());
        let is_ragged = |pfn: u64| self.pageblock_of(pfn).is_none_or(|block| self.ragged.contains(&block));
        let may_be = order == Order::ZERO || !(is_ragged(range.start) || is_ragged(range.end - 1));
        may_be && self.machine.are_memory(&range) && !self.overlaps(&range) && !self.is_isolated(&range)
    }

    /// The error that this request must get, whatever memory is free. `None` if only the lack of memory may
    /// refuse the request.
    pub(crate) fn refusal(&self, cpu: u32, request: &Request) -> Option<AllocError> {
        if !self.knows(cpu) {
            return Some(AllocError::BadCpu(CpuId(cpu)));
        }
        if request.migratetype.index() >= MigrateType::PCP_COUNT {
            return Some(AllocError::BadType(request.migratetype));
        }
        let bad_node = self.local_node(cpu, request) >= self.machine.nodes();
        let none = !self.machine.zones.iter().any(|zone| self.is_eligible(cpu, zone, request));
        (bad_node || none).then_some(AllocError::NoEligibleZone)
    }

    /// Records frames that the allocator handed out.
    #[track_caller]
    pub(crate) fn obtain(&mut self, range: Range<u64>) {
        assert!(!self.overlaps(&range), "{range:?} was handed out twice");
        assert!(self.machine.are_memory(&range), "{range:?} is not all memory");
        self.blocks.extend(cut(range));
    }

    /// The expected answer to a free.
    pub(crate) fn free_answer(&self, cpu: u32, pfn: u64, given: Order) -> Result<(), FreeError> {
        let frame = Pfn(pfn);
        if !self.knows(cpu) {
            return Err(FreeError::BadCpu(CpuId(cpu)));
        }
        if !self.machine.is_memory(pfn) {
            return Err(FreeError::Foreign(frame));
        }
        match self.around(pfn) {
            None => Err(match around(&self.leaked, pfn) {
                Some((start, _)) if start == pfn => FreeError::Leaked(frame),
                Some(_) => FreeError::NotABlock(frame),
                None => FreeError::DoubleFree(frame),
            }),
            Some((start, _)) if start != pfn => Err(FreeError::NotABlock(frame)),
            Some((_, allocated)) if allocated != given => {
                Err(FreeError::WrongOrder { pfn: frame, given, allocated })
            }
            Some(_) => Ok(()),
        }
    }

    /// The expected answer to a free or split of a range.
    pub(crate) fn range_answer(&self, cpu: u32, range: &Range<u64>) -> Result<(), FreeError> {
        let first_not_ours = range.clone().find(|pfn| self.around(*pfn).is_none());
        if !self.knows(cpu) {
            Err(FreeError::BadCpu(CpuId(cpu)))
        } else if range.is_empty() {
            Err(FreeError::BadRange(Pfn(range.start), Pfn(range.end)))
        } else if let Some(pfn) = first_not_ours {
            Err(if !self.machine.is_memory(pfn) {
                FreeError::Foreign(Pfn(pfn))
            } else if around(&self.leaked, pfn).is_some() {
                FreeError::Leaked(Pfn(pfn))
            } else {
                FreeError::DoubleFree(Pfn(pfn))
            })
        } else {
            Ok(())
        }
    }

    /// The expected answer to an operation that names a CPU.
    pub(crate) fn cpu_answer(&self, cpu: u32) -> Result<(), ConfigError> {
        if self.knows(cpu) { Ok(()) } else { Err(ConfigError::BadCpu(cpu)) }
    }

    /// The expected answer to an operation that names a zone.
    pub(crate) fn zone_answer(&self, zone: u16) -> Result<(), ConfigError> {
        if usize::from(zone) < self.machine.zones.len() {
            Ok(())
        } else {
            Err(ConfigError::BadZone(ZoneId(zone)))
        }
    }

    /// The frame's pageblock, or the error that the operation must give.
    pub(crate) fn pageblock_answer(&self, cpu: u32, pfn: u64) -> Result<(ZoneId, u64), ConfigError> {
        self.cpu_answer(cpu)?;
        self.pageblock_of(pfn).ok_or(ConfigError::Foreign(Pfn(pfn)))
    }

    /// Returns the expected answer to an addition of memory, and adds the memory to the machine.
    pub(crate) fn add_memory(&mut self, cpu: u32, range: &Range<u64>) -> Result<(), ConfigError> {
        self.cpu_answer(cpu)?;
        if range.is_empty() {
            return Err(ConfigError::BadRange(Pfn(range.start), Pfn(range.end)));
        }
        for pfn in range.clone() {
            self.pageblock_of(pfn).ok_or(ConfigError::Foreign(Pfn(pfn)))?;
            if self.machine.is_memory(pfn) {
                return Err(ConfigError::AlreadyManaged(Pfn(pfn)));
            }
        }
        for zone in &mut self.machine.zones {
            zone.add(range.start.max(zone.span.start)..range.end.min(zone.span.end));
        }
        Ok(())
    }
}
