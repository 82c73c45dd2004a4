//! A caller's request, and the allocator's internal form of a request while the allocator tries zones.

use bitflags::bitflags;

use crate::{MigrateType, NodeId, Order, Pfn, ZoneKind};

/// One allocation request.
///
/// ```
/// use pageset_core::{Order, Request, ZoneKind};
///
/// let for_a_device = Request::new(Order::ZERO).in_zone(ZoneKind::Dma32);
/// let page_of_a_process = Request::new(Order::ZERO).movable();
/// # let _ = (for_a_device, page_of_a_process);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Size of the block.
    pub order: Order,
    /// The migratetype of the memory: whether the kernel can move or reclaim its contents.
    pub migratetype: MigrateType,
    /// The highest zone that the request may use. The request may use lower zones too.
    pub highest_zone: ZoneKind,
    /// The nodes that may be used.
    pub nodes: NodeChoice,
    /// If `zones_below` is set, the request may use only zones whose whole span lies below the frame
    /// `zones_below`. See [`zones_below`](Self::zones_below).
    pub zones_below: Option<Pfn>,
    /// The urgency of the request, and its permissions.
    pub traits: RequestTraits,
}

/// The nodes that a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// The request tries the CPU's own node first, and then all other nodes, nearest first.
    Local,
    /// The request tries this node first, and then all other nodes, beginning with the node nearest to this
    /// node.
    Prefer(NodeId),
    /// The request tries only this node.
    Only(NodeId),
}

bitflags! {
    /// Urgency and permissions of a request: the kernel's allocation flags, as far as they affect a decision.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RequestTraits: u16 {
        /// The request may wake the reclaimer.
        const WAKE_KSWAPD = 1;
        /// The request may wait for memory: the allocator drains the page sets of all CPUs before the request
        /// fails.
        const MAY_WAIT = 1 << 1;
        /// The request may use a part of the memory below the min watermark.
        const HIGH_PRIORITY = 1 << 2;
        /// The request obeys watermarks, even if the request also has `NO_WATERMARKS` or `OOM_VICTIM`. A
        /// request that also has `HIGH_PRIORITY` may still use a part of the memory below the min watermark.
        const NO_RESERVES = 1 << 3;
        /// The request ignores watermarks, because the caller will free memory soon.
        const NO_WATERMARKS = 1 << 4;
        /// The request comes from the victim of an out-of-memory kill.
        const OOM_VICTIM = 1 << 5;
        /// The request bypasses the page set and takes its block from the free lists. The allocator counts a
        /// request with `BYPASS_PCP` as a request that found the page set's lock taken. An interrupt handler
        /// of a kernel allocates with `BYPASS_PCP` if the handler has interrupted the lock's holder.
        const BYPASS_PCP = 1 << 6;
    }
}

impl Request {
    /// An ordinary request: for unmovable memory from any zone up to `Normal`, with the local node first. The
    /// request may wait.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self {
            order,
            migratetype: MigrateType::Unmovable,
            highest_zone: ZoneKind::Normal,
            nodes: NodeChoice::Local,
            zones_below: None,
            traits: RequestTraits::WAKE_KSWAPD.union(RequestTraits::MAY_WAIT),
        }
    }

    /// Returns the request, changed to movable memory, which may also come from `HighMem` and `Movable`
    /// zones.
    #[must_use]
    pub const fn movable(mut self) -> Self {
        self.migratetype = MigrateType::Movable;
        self.highest_zone = ZoneKind::Movable;
        self
    }

    /// Returns the request with another migratetype.
    #[must_use]
    pub const fn of_type(mut self, migratetype: MigrateType) -> Self {
        self.migratetype = migratetype;
        self
    }

    /// Returns the request, limited to zones up to `kind`.
    #[must_use]
    pub const fn in_zone(mut self, kind: ZoneKind) -> Self {
        self.highest_zone = kind;
        self
    }

    /// Returns the request with the choice `nodes` of nodes.
    #[must_use]
    pub const fn on(mut self, nodes: NodeChoice) -> Self {
        self.nodes = nodes;
        self
    }

    /// Returns the request, limited to zones whose whole span lies below `limit`.
    ///
    /// The limit selects zones, not frames. If the lowest zone ends at 16 MiB, a request with
    /// `zones_below(Pfn(256))` fails with [`NoEligibleZone`](crate::AllocError::NoEligibleZone), although
    /// frames below 1 MiB may be free. Code that starts other CPUs needs a frame below 1 MiB, and can try the
    /// frames one after the other:
    ///
    /// ```
    /// use pageset_core::{AllocError, CpuId, FrameAllocator, Order, Pfn, Request};
    ///
    /// /// The first free frame below `limit`. Frame 0 is left out: many kernels take its address for "none".
    /// fn alloc_frame_below(allocator: &impl FrameAllocator, cpu: CpuId, limit: u64) -> Option<Pfn> {
    ///     let request = Request::new(Order::ZERO);
    ///     (1..limit).map(Pfn).find(|pfn| allocator.alloc_at(cpu, *pfn, &request).is_ok())
    /// }
    /// ```
    #[must_use]
    pub const fn zones_below(mut self, limit: Pfn) -> Self {
        self.zones_below = Some(limit);
        self
    }

    /// Whether this request ignores watermarks.
    pub(crate) const fn ignores_watermarks(&self) -> bool {
        self.traits.contains(RequestTraits::NO_WATERMARKS)
            && !self.traits.contains(RequestTraits::NO_RESERVES)
    }

    /// Returns the request with `traits` in place of the request's own traits.
    #[must_use]
    pub const fn with(mut self, traits: RequestTraits) -> Self {
        self.traits = traits;
        self
    }

    /// Returns the request, changed for a caller that cannot wait and may use reserves, such as an interrupt
    /// handler.
    #[must_use]
    pub const fn atomic(self) -> Self {
        self.with(RequestTraits::WAKE_KSWAPD.union(RequestTraits::HIGH_PRIORITY))
    }
}

/// The block that a request wants from one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    /// The type of the block. The type differs from the requested type if the zone does not group pageblocks
    /// by mobility.
    pub(crate) migratetype: MigrateType,
}

bitflags! {
    /// The flags of an attempt to allocate, named as in Linux (spec §1.11).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct AllocFlags: u16 {
        const KSWAPD = 1;
        const NON_BLOCK = 1 << 1;
        const MIN_RESERVE = 1 << 2;
        const HIGH_ATOMIC = 1 << 3;
        const OOM = 1 << 4;
        const CMA = 1 << 5;
        const NO_FRAGMENT = 1 << 6;
        const NO_WATERMARKS = 1 << 7;
        const BYPASS_PCP = 1 << 8;
        /// Flags that permit the reserve of high-order atomic blocks.
        const RESERVES = Self::NON_BLOCK.bits() | Self::MIN_RESERVE.bits() | Self::HIGH_ATOMIC.bits()
            | Self::OOM.bits();
    }
}

impl AllocFlags {
    fn common(request: &Request) -> Self {
        let mut flags = Self::empty();
        flags.set(Self::KSWAPD, request.traits.contains(RequestTraits::WAKE_KSWAPD));
        flags.set(Self::CMA, request.migratetype == MigrateType::Movable);
        flags.set(Self::BYPASS_PCP, request.traits.contains(RequestTraits::BYPASS_PCP));
        flags
    }

    /// Flags of the first attempt.
    #[inline]
    pub(crate) fn fast(request: &Request) -> Self {
        Self::common(request)
    }

    /// Flags of later attempts (spec §1.11, "request flags in the slow path").
    pub(crate) fn slow(request: &Request) -> Self {
        let mut flags = Self::common(request);
        let has = |traits| request.traits.contains(traits);
        if has(RequestTraits::HIGH_PRIORITY) {
            flags |= Self::MIN_RESERVE;
        }
        if !has(RequestTraits::MAY_WAIT) && !has(RequestTraits::NO_RESERVES) {
            flags |= Self::NON_BLOCK;
            if request.order > Order::ZERO && flags.contains(Self::MIN_RESERVE) {
                flags |= Self::HIGH_ATOMIC;
            }
        }
        flags
    }

    /// Adds the flag that lets this request use reserves. Returns `None` if the request may not use reserves.
    pub(crate) fn reserves(self, request: &Request) -> Option<Self> {
        if request.traits.contains(RequestTraits::NO_RESERVES) {
            None
        } else if request.traits.contains(RequestTraits::NO_WATERMARKS) {
            Some(self | Self::NO_WATERMARKS)
        } else if request.traits.contains(RequestTraits::OOM_VICTIM) {
            Some(self | Self::OOM)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_high_order_atomic_request_reaches_its_reserve() {
        let flags = |order, traits| AllocFlags::slow(&Request::new(Order::new(order).unwrap()).with(traits));
        let atomic = RequestTraits::HIGH_PRIORITY;
        assert!(flags(1, atomic).contains(AllocFlags::HIGH_ATOMIC));
        assert!(!flags(0, atomic).contains(AllocFlags::HIGH_ATOMIC));
        assert!(!flags(1, atomic | RequestTraits::MAY_WAIT).contains(AllocFlags::HIGH_ATOMIC));
        assert!(!flags(1, atomic | RequestTraits::NO_RESERVES).intersects(AllocFlags::NON_BLOCK));
    }
}
