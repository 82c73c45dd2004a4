//! A page event: a struct of 32 bytes without pointers. Every reader delivers events as this struct, and the
//! native file stores them.
//!
//! The meaning of a field depends on the [`EventKind`]. Some kinds, for example extfrag, contention and bulk
//! allocation, reuse fields for other values. Methods of [`Event`] return many of these other values under
//! their own names.

mod caller;
mod kind;

pub use caller::Caller;
pub use kind::EventKind;

use pageset_core::{CpuId, MigrateType, Order, Pfn};

/// The value of [`Event::pfn`] for a failed allocation. The kernel records `-1UL` for such an allocation.
pub const PFN_NONE: u64 = u64::MAX;

/// The value of [`Event::migratetype`] for an event without a migratetype.
pub const MIGRATETYPE_NONE: i8 = -1;

/// Bits of [`Event::irq_flags`], equal to `common_flags` of every trace event. Source: ftrace prints the
/// names of the bits above its text, and recordings of Linux 6.1 to 6.18 show their numbers.
pub mod irq_flag {
    /// Interrupts were off.
    pub const IRQS_OFF: u8 = 0x01;
    /// The task was asked to reschedule.
    pub const NEED_RESCHED: u8 = 0x04;
    /// The event happened in a hardware interrupt.
    pub const HARDIRQ: u8 = 0x08;
    /// The event happened in a soft interrupt.
    pub const SOFTIRQ: u8 = 0x10;
    /// A reschedule was requested for the next point of preemption.
    pub const PREEMPT_RESCHED: u8 = 0x20;
    /// The event happened in a non-maskable interrupt.
    pub const NMI: u8 = 0x40;
    /// Bottom halves were off.
    pub const BH_OFF: u8 = 0x80;
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Event {
    /// Time in nanoseconds of the trace's clock.
    pub ts_ns: u64,
    /// Page frame number, or the value that [`EventKind`] documents. [`PFN_NONE`] marks a failed allocation.
    pub pfn: u64,
    /// Allocation flags in the numbering of the trace's kernel, or the value that [`EventKind`] documents.
    pub gfp: u32,
    /// Thread that was running; 0 is the idle task.
    pub pid: u32,
    /// CPU that ran the thread. Readers do not compare the CPU's number with the machine, and a damaged or
    /// malicious trace may hold any number.
    pub cpu: u16,
    /// Kind of the event.
    pub kind: EventKind,
    /// Order of the block, or the value that [`EventKind`] documents. Readers do not check the order, and a
    /// damaged or malicious trace may hold any number.
    pub order: u8,
    /// The kernel's migratetype number, or [`MIGRATETYPE_NONE`]. For [`EventKind::ContentionBegin`], this
    /// field and `refill` hold [`Event::call_site`].
    pub migratetype: i8,
    /// The meaning of `refill` depends on the event's kind. [`EventKind::MmPageAllocZoneLocked`]: 1 if a page
    /// set could hold the block. [`EventKind::MmPageAllocExtfrag`]: the fallback order.
    /// [`EventKind::MmPageFreeBatched`]: 1 if no [`EventKind::MmPageFree`] reported the free.
    /// [`EventKind::ContentionBegin`]: a part of the call site. In events of all other kinds, `refill` is 0.
    pub refill: u8,
    /// Interrupt state, bits of [`irq_flag`].
    pub irq_flags: u8,
    /// Preemption depth.
    pub preempt: u8,
}

const _: () = assert!(size_of::<Event>() == 32);

impl Event {
    /// Makes an event of `kind` at `ts_ns` on `cpu`. All other fields get the value that means "unknown".
    #[must_use]
    pub const fn new(kind: EventKind, ts_ns: u64, cpu: u16) -> Self {
        Self {
            ts_ns,
            pfn: 0,
            gfp: 0,
            pid: 0,
            cpu,
            kind,
            order: 0,
            migratetype: MIGRATETYPE_NONE,
            refill: 0,
            irq_flags: 0,
            preempt: 0,
        }
    }

    /// The frame of the event. `None` for a failed allocation and for kinds without a frame.
    #[must_use]
    pub const fn frame(&self) -> Option<Pfn> {
        if self.kind.has_frame() && self.pfn != PFN_NONE { Some(Pfn(self.pfn)) } else { None }
    }

    /// The CPU, as the core's type.
    #[must_use]
    pub const fn cpu_id(&self) -> CpuId {
        CpuId(self.cpu as u32)
    }

    /// The block's order, or `None` if the field is no possible order.
    #[must_use]
    pub const fn block_order(&self) -> Option<Order> {
        Order::new(self.order)
    }

    /// The number of frames in the event's block, or 0 if the field is no possible order.
    #[must_use]
    pub const fn block_pages(&self) -> u64 {
        match self.block_order() {
            Some(order) => order.frames() as u64,
            None => 0,
        }
    }

    /// The migratetype, or `None` if the event has no migratetype or an unknown one.
    #[must_use]
    pub const fn block_type(&self) -> Option<MigrateType> {
        if self.migratetype < 0 || matches!(self.kind, EventKind::ContentionBegin) {
            None
        } else {
            MigrateType::from_index(self.migratetype as usize)
        }
    }

    /// Whether the event is an allocation that failed.
    #[must_use]
    pub const fn is_failed_allocation(&self) -> bool {
        matches!(self.kind, EventKind::MmPageAlloc) && self.pfn == PFN_NONE
    }

    /// Whether the event reports a free that no earlier event reported. Returns true for `mm_page_free`, and
    /// for `mm_pagevec_free` of Linux before 3.3.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        match self.kind {
            EventKind::MmPageFree => true,
            EventKind::MmPageFreeBatched => self.refill != 0,
            _ => false,
        }
    }

    /// Whether a page set could hold the block, for an event about a block taken from a zone.
    #[must_use]
    pub const fn is_pcp_refill(&self) -> bool {
        matches!(self.kind, EventKind::MmPageAllocZoneLocked) && self.refill != 0
    }

    /// Whether the event happened in a soft, hard or non-maskable interrupt.
    #[must_use]
    pub const fn in_interrupt(&self) -> bool {
        self.interrupt_level() > 0
    }

    /// The interrupt level: 0 in a task, 1 in a soft interrupt, 2 in a hard interrupt, 3 in a non-maskable
    /// interrupt.
    #[inline]
    #[must_use]
    pub const fn interrupt_level(&self) -> u8 {
        if self.irq_flags & irq_flag::NMI != 0 {
            3
        } else if self.irq_flags & irq_flag::HARDIRQ != 0 {
            2
        } else if self.irq_flags & irq_flag::SOFTIRQ != 0 {
            1
        } else {
            0
        }
    }

    /// The fields of an event of kind `MmPageAllocExtfrag`. `None` for other kinds.
    #[must_use]
    pub const fn extfrag(&self) -> Option<Extfrag> {
        if !matches!(self.kind, EventKind::MmPageAllocExtfrag) {
            return None;
        }
        Some(Extfrag {
            alloc_order: self.order,
            fallback_order: self.refill,
            alloc_migratetype: self.migratetype,
            fallback_migratetype: self.gfp as u8 as i8,
            change_ownership: self.gfp >> 8 & 1 != 0,
        })
    }

    /// Stores the fields of `extfrag` where [`Event::extfrag`] reads them.
    pub const fn set_extfrag(&mut self, extfrag: Extfrag) {
        self.order = extfrag.alloc_order;
        self.refill = extfrag.fallback_order;
        self.migratetype = extfrag.alloc_migratetype;
        self.gfp = extfrag.fallback_migratetype as u8 as u32 | (extfrag.change_ownership as u32) << 8;
    }

    /// Address of the contended lock, if the event begins or ends a wait. Some text formats print a hash of
    /// the address, or zero.
    #[must_use]
    pub const fn lock_address(&self) -> Option<u64> {
        match self.kind {
            EventKind::ContentionBegin | EventKind::ContentionEnd | EventKind::ContendedRelease => {
                Some(self.pfn)
            }
            _ => None,
        }
    }

    /// The purpose of a wait for a lock, if the event begins a wait and its call chain was recorded.
    #[must_use]
    pub const fn caller(&self) -> Option<Caller> {
        match self.kind {
            EventKind::ContentionBegin => Caller::from_code(self.order),
            _ => None,
        }
    }

    /// The call site of a wait, as an index into [`CallSites::functions`](crate::CallSites::functions).
    /// `None` unless the event begins a wait and its call chain was recorded.
    #[must_use]
    pub const fn call_site(&self) -> Option<u16> {
        if !matches!(self.kind, EventKind::ContentionBegin) || self.migratetype == MIGRATETYPE_NONE {
            return None;
        }
        Some(u16::from_le_bytes([self.refill, self.migratetype as u8]))
    }

    /// Stores a call site where [`Event::call_site`] reads it. A `site` of [`Event::CALL_SITES_MAX`] or more
    /// does not fit, and is not stored.
    pub const fn set_call_site(&mut self, site: u16) {
        if site < Self::CALL_SITES_MAX {
            let [low, high] = site.to_le_bytes();
            self.refill = low;
            self.migratetype = high as i8;
        }
    }

    /// Number of different call sites that an event can store.
    pub const CALL_SITES_MAX: u16 = 0xff00;

    /// Number of frames that a bulk allocation requests (at its beginning) or has allocated (at its end).
    #[must_use]
    pub const fn bulk_frames(&self) -> Option<u64> {
        match self.kind {
            EventKind::BulkAllocEntry | EventKind::BulkAllocReturn => Some(self.pfn),
            _ => None,
        }
    }

    /// Whether the event starts a CPU's periodic work, `vmstat_update`.
    #[must_use]
    pub const fn is_tick(&self) -> bool {
        matches!(self.kind, EventKind::WorkqueueExecuteStart)
            && matches!(self.work(), Some(Work::VmstatUpdate))
    }

    /// The work item that the event starts or ends. `None` for events of other kinds.
    #[must_use]
    pub const fn work(&self) -> Option<Work> {
        match (self.kind, self.order) {
            (EventKind::WorkqueueExecuteStart | EventKind::WorkqueueExecuteEnd, 1) => {
                Some(Work::VmstatUpdate)
            }
            (EventKind::WorkqueueExecuteStart | EventKind::WorkqueueExecuteEnd, 2) => {
                Some(Work::LruAddDrainPerCpu)
            }
            (EventKind::WorkqueueExecuteStart | EventKind::WorkqueueExecuteEnd, _) => Some(Work::Other),
            _ => None,
        }
    }
}

/// The fields of `mm_page_alloc_extfrag`: a request took memory from the free blocks of another migratetype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extfrag {
    /// Requested order.
    pub alloc_order: u8,
    /// Order of the free block that was split.
    pub fallback_order: u8,
    /// Requested migratetype.
    pub alloc_migratetype: i8,
    /// Migratetype of the free block.
    pub fallback_migratetype: i8,
    /// Whether the whole pageblock changed its migratetype.
    pub change_ownership: bool,
}

/// Work items: two items that touch per-CPU page sets, and all other items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `vmstat_update`: the periodic decay of the CPU's page sets.
    VmstatUpdate,
    /// `lru_add_drain_per_cpu`: flushes the CPU's LRU batches, which frees pages.
    LruAddDrainPerCpu,
    /// Any other work item.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_has_no_frame() {
        let mut event = Event::new(EventKind::MmPageAlloc, 1, 0);
        assert_eq!(event.frame(), Some(Pfn(0)));
        event.pfn = PFN_NONE;
        assert_eq!(event.frame(), None);
        assert!(event.is_failed_allocation());
    }

    #[test]
    fn kinds_that_reuse_the_pfn_field_have_no_frame() {
        let mut event = Event::new(EventKind::BulkAllocEntry, 1, 0);
        event.pfn = 4;
        assert_eq!(event.frame(), None);
        assert_eq!(event.bulk_frames(), Some(4));
        assert_eq!(event.lock_address(), None);
    }

    #[test]
    fn extfrag_fields_survive_the_packing() {
        let extfrag = Extfrag {
            alloc_order: 0,
            fallback_order: 10,
            alloc_migratetype: 0,
            fallback_migratetype: 1,
            change_ownership: true,
        };
        let mut event = Event::new(EventKind::MmPageAllocExtfrag, 1, 0);
        event.set_extfrag(extfrag);
        assert_eq!(event.extfrag(), Some(extfrag));
        assert_eq!(event.gfp, 257);
    }

    #[test]
    fn a_call_site_survives_the_packing() {
        let begin = Event::new(EventKind::ContentionBegin, 1, 0);
        assert_eq!(begin.call_site(), None);
        for site in [0, 1, 0xff, 0x100, 0x8000, Event::CALL_SITES_MAX - 1] {
            let mut event = begin;
            event.set_call_site(site);
            assert_eq!(event.call_site(), Some(site));
        }
        let mut event = begin;
        event.set_call_site(Event::CALL_SITES_MAX);
        assert_eq!(event.call_site(), None);
        assert_eq!(Event::new(EventKind::MmPageFree, 1, 0).call_site(), None);
    }

    #[test]
    fn numbers_no_block_can_have_are_none() {
        let mut event = Event::new(EventKind::MmPageFree, 1, 0);
        event.order = 200;
        event.migratetype = 77;
        assert_eq!(event.block_order(), None);
        assert_eq!(event.block_type(), None);
    }
}
