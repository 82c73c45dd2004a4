//! Checks the lock order: a CPU takes a page set's lock before a zone's lock, and holds at most one lock of
//! each of these two kinds.

use std::cell::Cell;

use super::LockClass;

/// Counts the page-set locks and the zone locks that a CPU holds. Only debug builds count held locks.
#[derive(Debug, Default)]
pub(crate) struct Held {
    page_sets: Cell<u32>,
    zones: Cell<u32>,
}

impl Held {
    /// Checks the lock order. A CPU calls this function before it takes, or tries to take, a lock of `class`.
    pub(super) fn check(&self, class: LockClass) {
        match class {
            LockClass::Zone => {
                assert_eq!(
                    self.zones.get(),
                    0,
                    "lock order: a CPU takes a zone's lock while it holds another zone's lock"
                );
            }
            LockClass::PageSet => {
                assert_eq!(
                    self.zones.get(),
                    0,
                    "lock order: a CPU takes a page set's lock while it holds a zone's lock"
                );
                assert_eq!(self.page_sets.get(), 0, "lock order: a CPU holds the locks of two page sets");
            }
            _ => {}
        }
    }

    pub(super) fn took(&self, class: LockClass) {
        self.count(class, 1);
    }

    pub(super) fn gave(&self, class: LockClass) {
        self.count(class, u32::MAX);
    }

    fn count(&self, class: LockClass, by: u32) {
        let counter = match class {
            LockClass::Zone => &self.zones,
            LockClass::PageSet => &self.page_sets,
            _ => return,
        };
        counter.set(counter.get().wrapping_add(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_set_then_zone_is_the_order() {
        let held = Held::default();
        for class in [LockClass::PageSet, LockClass::Zone] {
            held.check(class);
            held.took(class);
        }
        held.gave(LockClass::Zone);
        held.gave(LockClass::PageSet);
        held.check(LockClass::PageSet);
    }

    #[test]
    #[should_panic(expected = "page set's lock while it holds a zone's")]
    fn zone_then_page_set_is_not() {
        let held = Held::default();
        held.took(LockClass::Zone);
        held.check(LockClass::PageSet);
    }

    #[test]
    #[should_panic(expected = "while it holds another zone's lock")]
    fn two_zones_are_not() {
        let held = Held::default();
        held.took(LockClass::Zone);
        held.check(LockClass::Zone);
    }
}
