//! The errors of the allocator. Each kind of misuse has its own error, in release builds too.

use core::fmt;

use crate::numa::MAX_NODES;
use crate::{CpuId, MigrateType, Order, Pfn, ZoneId};

/// The reason why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// No eligible zone has a block of this order above its watermark. To succeed, free some memory, ask for
    /// a smaller order, or let the request use reserves.
    OutOfMemory {
        /// The requested order.
        order: Order,
    },
    /// The request's nodes, highest zone and address limit exclude every zone.
    NoEligibleZone,
    /// The CPU does not exist.
    BadCpu(CpuId),
    /// The request names a type that no request can name. Requests name only unmovable, movable and
    /// reclaimable memory.
    BadType(MigrateType),
    /// The bulk interface allocates single pages only.
    BulkOrder(Order),
    /// The frames of an [`alloc_at`](crate::PageAllocator::alloc_at) are not all free.
    NotFree(Pfn),
    /// The frame lies in no zone, or in a hole of a zone.
    Foreign(Pfn),
    /// The first frame is not a multiple of the block's size.
    Misaligned(Pfn, Order),
    /// The number of frames is zero, or larger than the number of frames of the largest block.
    BadCount(u64),
    /// The alignment is not a power of two.
    BadAlign(u64),
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { order } => {
                write!(f, "out of memory: no block of order {order} above the watermark in any eligible zone")
            }
            Self::NoEligibleZone => f.write_str("no zone satisfies the request's address limit and node"),
            Self::BadCpu(cpu) => write!(f, "CPU {} does not exist", cpu.0),
            Self::BadType(migratetype) => write!(f, "{migratetype} memory cannot be asked for"),
            Self::BulkOrder(order) => {
                write!(f, "the bulk interface allocates single pages, not order {order}")
            }
            Self::NotFree(pfn) => write!(f, "frame {pfn} is not free"),
            Self::Foreign(pfn) => write!(f, "frame {pfn} lies in no zone of this allocator"),
            Self::Misaligned(pfn, order) => {
                write!(f, "frame {pfn} is not aligned to a block of order {order}")
            }
            Self::BadCount(frames) => {
                write!(f, "cannot allocate {frames} contiguous frames: use 1 to {}", Order::MAX.frames())
            }
            Self::BadAlign(align) => write!(f, "{align} frames are no alignment: use a power of two"),
        }
    }
}

impl core::error::Error for AllocError {}

/// The reason why a free, a split or a mark as bad was refused. A refused free changes no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The block is free already, or another CPU has just freed it.
    DoubleFree(Pfn),
    /// The block was allocated with another order.
    WrongOrder {
        /// The given frame.
        pfn: Pfn,
        /// The given order.
        given: Order,
        /// The order that the block was allocated with.
        allocated: Order,
    },
    /// The frame lies inside an allocated block, not at its start. Use
    /// [`free_range`](crate::PageAllocator::free_range) to free a part.
    NotABlock(Pfn),
    /// The frame lies in no zone, or in a hole of a zone.
    Foreign(Pfn),
    /// The block is out of service, because it was marked bad or found corrupted.
    Leaked(Pfn),
    /// Another CPU is changing the pageblock (only in `pageset-blocks`). Free the block again.
    Busy(Pfn),
    /// The table of pageblocks with bad frames is full (only in `pageset-blocks`).
    NoRoom(Pfn),
    /// The range has no frames, or its end lies before its start.
    BadRange(Pfn, Pfn),
    /// The CPU does not exist.
    BadCpu(CpuId),
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoubleFree(pfn) => write!(f, "double free of frame {pfn}"),
            Self::WrongOrder { pfn, given, allocated } => {
                write!(f, "frame {pfn} freed as order {given} but allocated as order {allocated}")
            }
            Self::NotABlock(pfn) => write!(f, "frame {pfn} is inside a block, not at its start"),
            Self::Foreign(pfn) => write!(f, "frame {pfn} lies in no zone of this allocator"),
            Self::Leaked(pfn) => {
                write!(f, "frame {pfn} is out of service: it was marked bad or found corrupted")
            }
            Self::NoRoom(pfn) => {
                write!(f, "frame {pfn} stays in service: too many pageblocks have bad frames")
            }
            Self::BadRange(start, end) => {
                write!(f, "frames {start} to {end} are no range: the end must be above the start")
            }
            Self::Busy(pfn) => write!(f, "the pageblock of frame {pfn} is being changed: free it again"),
            Self::BadCpu(cpu) => write!(f, "CPU {} does not exist", cpu.0),
        }
    }
}

impl core::error::Error for FreeError {}

/// The reason why a region of usable frames is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionFault {
    /// The region is empty, or its end lies before its start.
    NoFrames,
    /// The region begins before its zone's span, or ends after the span.
    OutsideZone,
    /// The region begins before the region in front of it ends: regions overlap or are not in ascending
    /// order.
    OverlapsPrevious,
}

impl fmt::Display for RegionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFrames => "has no frames: it is empty, or its end lies before its start",
            Self::OutsideZone => "lies outside the zone's span",
            Self::OverlapsPrevious => {
                "begins before the end of the region in front of it: regions are ascending and do not overlap"
            }
        })
    }
}

/// The reason why an allocator could not be built, or refused a call that concerns settings, CPUs or the
/// range of its memory. A refused call has no effect, except in a race that
/// [`add_memory`](crate::PageAllocator::add_memory) describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A table has the wrong length. Holds the table's name and the required number of entries.
    TableLength(&'static str, usize),
    /// No zone was given.
    NoZones,
    /// A zone's span is empty, or too large for [`FrameCounts::for_span`](crate::FrameCounts::for_span).
    BadZoneSpan(usize),
    /// Two zones' spans overlap, or zones are not in ascending order of (node, kind, first frame).
    ZonesOverlap(usize, usize),
    /// A region of usable frames is impossible.
    BadRegion {
        /// Index of the zone in [`Config::zones`](crate::Config::zones).
        zone: usize,
        /// Index of the region in [`ZoneConfig::regions`](crate::ZoneConfig::regions).
        region: usize,
        /// The reason why the region is impossible.
        why: RegionFault,
    },
    /// A CPU or a zone names a node above 255.
    BadNode(u16),
    /// No CPU was given.
    NoCpus,
    /// The matrix of distances does not have a row and a column for each node. Holds the required number of
    /// entries.
    BadDistances(usize),
    /// `percpu_pagelist_high_fraction` must be 0 or at least 8. The old value stays. Source of the limit:
    /// spec §2.5.
    BadFraction(u32),
    /// The CPU does not exist.
    BadCpu(u32),
    /// The zone does not exist.
    BadZone(ZoneId),
    /// The frame lies in no zone.
    Foreign(Pfn),
    /// The frame's pageblock is out of service already.
    AlreadyIsolated(Pfn),
    /// The frame's pageblock is in service.
    NotIsolated(Pfn),
    /// The allocator already has the frame.
    AlreadyManaged(Pfn),
    /// A pageblock cannot return to service with the given type.
    BadType(MigrateType),
    /// The range has no frames, or its end lies before its start.
    BadRange(Pfn, Pfn),
    /// The heap, or the memory lent by the caller, has fewer bytes than a table needs. Holds the number of
    /// bytes that the table needs.
    OutOfMemory(usize),
    /// The named rule of the policy needs the feature `lab`, but this crate was built without `lab`.
    NeedsLab(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableLength(table, entries) => {
                write!(f, "the {table} table has the wrong length: it needs {entries} entries")
            }
            Self::NoZones => f.write_str("an allocator needs at least one zone"),
            Self::BadZoneSpan(zone) => write!(f, "zone {zone} spans no frames, or too many"),
            Self::ZonesOverlap(a, b) => {
                write!(
                    f,
                    "zones {a} and {b} overlap, or are not in ascending order of node, kind and first frame"
                )
            }
            Self::BadRegion { zone, region, why } => write!(f, "region {region} of zone {zone} {why}"),
            Self::BadNode(node) => write!(f, "node {node} is too high: nodes are 0 to {}", MAX_NODES - 1),
            Self::NoCpus => f.write_str("an allocator needs at least one CPU"),
            Self::BadDistances(entries) => {
                write!(f, "the distances of nodes must be a square matrix of {entries} entries")
            }
            Self::BadFraction(fraction) => {
                write!(f, "percpu_pagelist_high_fraction must be 0 or at least 8, not {fraction}")
            }
            Self::BadCpu(cpu) => write!(f, "CPU {cpu} does not exist"),
            Self::BadZone(zone) => write!(f, "zone {} does not exist", zone.0),
            Self::Foreign(pfn) => write!(f, "frame {pfn} lies in no zone of this allocator"),
            Self::AlreadyIsolated(pfn) => write!(f, "the pageblock of frame {pfn} is isolated already"),
            Self::AlreadyManaged(pfn) => write!(f, "frame {pfn} is the allocator's already"),
            Self::NotIsolated(pfn) => write!(f, "the pageblock of frame {pfn} is not isolated"),
            Self::BadType(migratetype) => write!(f, "a pageblock in service cannot be {migratetype}"),
            Self::BadRange(start, end) => {
                write!(f, "frames {start} to {end} are no range: the end must be above the start")
            }
            Self::OutOfMemory(bytes) => write!(f, "out of memory: no {bytes} bytes for a table"),
            Self::NeedsLab(rule) => {
                write!(f, "the policy's rule `{rule}` needs the feature `lab` of pageset-core")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;

    /// Tests the text of each variant of an error. If a new variant has no line here, the `match` does not
    /// compile.
    macro_rules! texts {
        ($error:ident: $($variant:ident: $value:expr, $text:expr;)*) => {
            $({
                let error: $error = $value;
                assert!(matches!(error, $error::$variant { .. }), "{error:?} has the text of another variant");
                assert_eq!(error.to_string(), $text);
            })*
            let _is_complete = |error| match error {
                $($error::$variant { .. } => (),)*
            };
        };
    }

    const PFN: Pfn = Pfn(0x1234);

    fn order(order: u8) -> Order {
        Order::new(order).unwrap()
    }

    #[test]
    fn allocation_errors_say_what_is_wrong() {
        use AllocError::*;
        texts! { AllocError:
            OutOfMemory: OutOfMemory { order: order(4) },
                "out of memory: no block of order 4 above the watermark in any eligible zone";
            NoEligibleZone: NoEligibleZone, "no zone satisfies the request's address limit and node";
            BadCpu: BadCpu(CpuId(9)), "CPU 9 does not exist";
            BadType: BadType(MigrateType::Cma), "CMA memory cannot be asked for";
            BulkOrder: BulkOrder(order(3)), "the bulk interface allocates single pages, not order 3";
            NotFree: NotFree(PFN), "frame 0x1234 is not free";
            Foreign: Foreign(PFN), "frame 0x1234 lies in no zone of this allocator";
            Misaligned: Misaligned(PFN, order(5)), "frame 0x1234 is not aligned to a block of order 5";
            BadCount: BadCount(0), "cannot allocate 0 contiguous frames: use 1 to 1024";
            BadAlign: BadAlign(3), "3 frames are no alignment: use a power of two";
        }
    }

    #[test]
    fn free_errors_say_what_is_wrong() {
        use FreeError::*;
        texts! { FreeError:
            DoubleFree: DoubleFree(PFN), "double free of frame 0x1234";
            WrongOrder: WrongOrder { pfn: PFN, given: order(2), allocated: order(3) },
                "frame 0x1234 freed as order 2 but allocated as order 3";
            NotABlock: NotABlock(PFN), "frame 0x1234 is inside a block, not at its start";
            Foreign: Foreign(PFN), "frame 0x1234 lies in no zone of this allocator";
            Leaked: Leaked(PFN), "frame 0x1234 is out of service: it was marked bad or found corrupted";
            Busy: Busy(PFN), "the pageblock of frame 0x1234 is being changed: free it again";
            NoRoom: NoRoom(PFN), "frame 0x1234 stays in service: too many pageblocks have bad frames";
            BadRange: BadRange(Pfn(10), Pfn(5)),
                "frames 0xa to 0x5 are no range: the end must be above the start";
            BadCpu: BadCpu(CpuId(9)), "CPU 9 does not exist";
        }
    }

    #[test]
    fn configuration_errors_say_what_is_wrong() {
        use ConfigError::*;
        texts! { ConfigError:
            TableLength: TableLength("cpus", 4), "the cpus table has the wrong length: it needs 4 entries";
            NoZones: NoZones, "an allocator needs at least one zone";
            BadZoneSpan: BadZoneSpan(1), "zone 1 spans no frames, or too many";
            ZonesOverlap: ZonesOverlap(0, 1),
                "zones 0 and 1 overlap, or are not in ascending order of node, kind and first frame";
            BadRegion: BadRegion { zone: 2, region: 7, why: RegionFault::OutsideZone },
                "region 7 of zone 2 lies outside the zone's span";
            BadNode: BadNode(300), "node 300 is too high: nodes are 0 to 255";
            NoCpus: NoCpus, "an allocator needs at least one CPU";
            BadDistances: BadDistances(9), "the distances of nodes must be a square matrix of 9 entries";
            BadFraction: BadFraction(5), "percpu_pagelist_high_fraction must be 0 or at least 8, not 5";
            BadCpu: BadCpu(7), "CPU 7 does not exist";
            BadZone: BadZone(ZoneId(3)), "zone 3 does not exist";
            Foreign: Foreign(PFN), "frame 0x1234 lies in no zone of this allocator";
            AlreadyIsolated: AlreadyIsolated(PFN), "the pageblock of frame 0x1234 is isolated already";
            NotIsolated: NotIsolated(PFN), "the pageblock of frame 0x1234 is not isolated";
            AlreadyManaged: AlreadyManaged(PFN), "frame 0x1234 is the allocator's already";
            BadType: BadType(MigrateType::Isolate), "a pageblock in service cannot be Isolate";
            BadRange: BadRange(Pfn(10), Pfn(5)),
                "frames 0xa to 0x5 are no range: the end must be above the start";
            OutOfMemory: OutOfMemory(4096), "out of memory: no 4096 bytes for a table";
            NeedsLab: NeedsLab("counting"),
                "the policy's rule `counting` needs the feature `lab` of pageset-core";
        }
    }

    #[test]
    fn faults_of_regions_say_what_is_wrong() {
        use RegionFault::*;
        texts! { RegionFault:
            NoFrames: NoFrames, "has no frames: it is empty, or its end lies before its start";
            OutsideZone: OutsideZone, "lies outside the zone's span";
            OverlapsPrevious: OverlapsPrevious,
                "begins before the end of the region in front of it: regions are ascending and do not overlap";
        }
    }
}
