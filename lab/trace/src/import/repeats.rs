//! Removes the second event of a free that the kernel reports twice.
//!
//! Linux 2.6.32 has two calls of the tracepoint `mm_page_free_direct` in the path of a single page, so one
//! free has two events, microseconds apart. Source:
//! <https://lore.kernel.org/all/20100113144917.GA11934@xhl/>, which shows a trace.

use std::collections::HashMap;

use crate::event::Event;

/// Largest time between the two events. The time is ample, because only a function call lies between the
/// events.
const APART_NS_MAX: u64 = 50_000;

/// The last free on each CPU, in a text with the old name of the tracepoint.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: HashMap<u16, Event>,
}

impl Repeats {
    /// Whether `event` reports the same free as the CPU's previous event. `is_direct` is true if the event's
    /// tracepoint has the old name.
    pub(super) fn is_repeated(&mut self, event: &Event, is_direct: bool) -> bool {
        if !is_direct {
            if !self.last.is_empty() {
                self.last.remove(&event.cpu);
            }
            return false;
        }
        let Some(last) = self.last.insert(event.cpu, *event) else { return false };
        let is_repeated = (last.pfn, last.order, last.pid) == (event.pfn, event.order, event.pid)
            && event.ts_ns.saturating_sub(last.ts_ns) <= APART_NS_MAX;
        if is_repeated {
            // A third event would report another free.
            self.last.remove(&event.cpu);
        }
        is_repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    #[test]
    fn the_second_of_two_equal_frees_is_left_out() {
        let mut repeats = Repeats::default();
        let free = |ts_ns, cpu, pfn| Event { pfn, ..Event::new(EventKind::MmPageFree, ts_ns, cpu) };
        let old = true;
        let expected = [
            (free(1000, 0, 7), old, false),
            (free(1500, 1, 8), old, false),
            (free(3000, 0, 7), old, true),
            (free(3100, 0, 7), old, false),
            (free(3200, 0, 9), old, false),
            (free(3300, 0, 5), false, false),
            (free(3400, 0, 9), old, false),
            (free(90_000_000, 0, 9), old, false),
        ];
        for (event, is_direct, is_repeated) in expected {
            assert_eq!(repeats.is_repeated(&event, is_direct), is_repeated, "{event:?}");
        }
    }
}
