//! The two lists of all names that the export writes: names of slices, and names of facts about slices. Each
//! sequence of packets has both lists at its start, and refers to a name by the name's number.

/// The name of a slice or a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Refill,
    Drain,
    Tick,
    LruDrain,
    WaitForZoneLock,
    WaitForSpinlock,
    WaitForOtherLock,
    DirectReclaim,
    Kswapd,
    Allocated,
    FreedElsewhere,
    EventsMissing,
    Recording,
}

impl Name {
    pub(super) const ALL: [Self; 13] = [
        Self::Refill,
        Self::Drain,
        Self::Tick,
        Self::LruDrain,
        Self::WaitForZoneLock,
        Self::WaitForSpinlock,
        Self::WaitForOtherLock,
        Self::DirectReclaim,
        Self::Kswapd,
        Self::Allocated,
        Self::FreedElsewhere,
        Self::EventsMissing,
        Self::Recording,
    ];

    /// The number of this name, the same in every sequence of packets. 0 stands for no name.
    pub(super) const fn number(self) -> u64 {
        self as u64 + 1
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Refill => "refill",
            Self::Drain => "drain",
            Self::Tick => "tick",
            Self::LruDrain => "LRU drain",
            Self::WaitForZoneLock => "wait for zone lock",
            Self::WaitForSpinlock => "wait for spinlock",
            Self::WaitForOtherLock => "wait for other lock",
            Self::DirectReclaim => "direct reclaim",
            Self::Kswapd => "kswapd",
            Self::Allocated => "allocated here, freed elsewhere",
            Self::FreedElsewhere => "freed here, allocated elsewhere",
            Self::EventsMissing => "events missing",
            Self::Recording => "recording",
        }
    }
}

/// The name of a fact about a slice. Counts are in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Pages,
    Order,
    Migratetype,
    Reason,
    Thread,
    Lock,
    Holder,
    HolderThread,
    Cpu,
    Pfn,
    Events,
    LostEvents,
    OneAllocationIn,
    Kernel,
    Recorded,
    WrittenBy,
    Process,
}

impl Key {
    pub(super) const ALL: [Self; 17] = [
        Self::Pages,
        Self::Order,
        Self::Migratetype,
        Self::Reason,
        Self::Thread,
        Self::Lock,
        Self::Holder,
        Self::HolderThread,
        Self::Cpu,
        Self::Pfn,
        Self::Events,
        Self::LostEvents,
        Self::OneAllocationIn,
        Self::Kernel,
        Self::Recorded,
        Self::WrittenBy,
        Self::Process,
    ];

    /// The number of this name, the same in every sequence of packets. 0 stands for no name.
    pub(super) const fn number(self) -> u64 {
        self as u64 + 1
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Order => "order",
            Self::Migratetype => "migratetype",
            Self::Reason => "reason",
            Self::Thread => "thread",
            Self::Lock => "lock",
            Self::Holder => "holder_cpu",
            Self::HolderThread => "holder_thread",
            Self::Cpu => "cpu",
            Self::Pfn => "pfn",
            Self::Events => "events",
            Self::LostEvents => "lost_events",
            Self::OneAllocationIn => "flows_follow_one_allocation_in",
            Self::Kernel => "kernel",
            Self::Recorded => "recorded",
            Self::WrittenBy => "written_by",
            Self::Process => "process",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_lists() {
        assert!(Name::ALL.iter().zip(1..).all(|(name, number)| name.number() == number));
        assert!(Key::ALL.iter().zip(1..).all(|(key, number)| key.number() == number));
    }
}
