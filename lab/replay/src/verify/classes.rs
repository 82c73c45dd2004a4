//! Classes of mismatches. Eleven classes are known reasons for a difference from the kernel's decision, and
//! the last class has all other mismatches.

use serde::{Serialize, Serializer, ser::SerializeMap};

/// The reason why a prediction differs from the kernel's event. Most reasons are facts that the recording
/// does not show, or does not show exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// A bulk allocation took pages. Pages of bulk allocations have no separate events.
    BulkAllocation = 0,
    /// Pages were allocated or freed without any event.
    UnseenTraffic,
    /// The page set's lock was busy, so pages went past the page set.
    FailedTrylock,
    /// An interrupt came after a task took a page, but before the event that reports the allocation.
    EventOrder,
    /// The list of a freed page had to be guessed, because the migratetype of its pageblock was not known.
    PageblockType,
    /// Frees of a batch reached the page set later than their events show.
    BatchedCommit,
    /// A state from before the recording was not yet known.
    HiddenAtStart,
    /// The model had to guess whether the zone was below its high watermark, or being reclaimed.
    ZonePressure,
    /// A drain that ends with a huge page takes up to 511 pages too many.
    HugeOvershoot,
    /// A drain ended after a whole slice although more slices were due, while another CPU visited the same
    /// zone. No recorded event shows why the drain ended.
    EndedEarly,
    /// The recorded kernel follows a rule that its policy does not have.
    KernelRule,
    /// The mismatch belongs to none of the other classes.
    Unexplained,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 12;
    /// All classes, in the order of the tables.
    pub const ALL: [Self; Self::COUNT] = [
        Self::BulkAllocation,
        Self::UnseenTraffic,
        Self::FailedTrylock,
        Self::EventOrder,
        Self::PageblockType,
        Self::BatchedCommit,
        Self::HiddenAtStart,
        Self::ZonePressure,
        Self::HugeOvershoot,
        Self::EndedEarly,
        Self::KernelRule,
        Self::Unexplained,
    ];

    /// The name of the class in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BulkAllocation => "bulk-allocation",
            Self::UnseenTraffic => "unseen-traffic",
            Self::FailedTrylock => "failed-trylock",
            Self::EventOrder => "event-order",
            Self::PageblockType => "pageblock-type",
            Self::BatchedCommit => "batched-commit",
            Self::HiddenAtStart => "hidden-at-start",
            Self::ZonePressure => "zone-pressure",
            Self::HugeOvershoot => "huge-overshoot",
            Self::EndedEarly => "ended-early",
            Self::KernelRule => "kernel-rule",
            Self::Unexplained => "unexplained",
        }
    }

    /// The class called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// Mismatches by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatches([u64; Class::COUNT]);

impl Mismatches {
    /// The number of mismatches of this class.
    #[must_use]
    pub const fn get(&self, class: Class) -> u64 {
        self.0[class as usize]
    }

    /// The number of all mismatches.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, class: Class) {
        self.0[class as usize] += 1;
    }
}

/// Serialises only the classes that have mismatches.
impl Serialize for Mismatches {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for class in Class::ALL.into_iter().filter(|class| self.get(*class) > 0) {
            map.serialize_entry(class.name(), &self.get(class))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_their_distinct_names() {
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!((class as usize, Class::named(class.name())), (index, Some(class)));
        }
        assert_eq!(Class::named("bad-luck"), None);
    }

    #[test]
    fn mismatches_add_up() {
        let mut mismatches = Mismatches::default();
        mismatches.add(Class::EventOrder);
        mismatches.add(Class::EventOrder);
        mismatches.add(Class::Unexplained);
        assert_eq!((mismatches.get(Class::EventOrder), mismatches.total()), (2, 3));
    }
}
