//! Tests that a survey of arbitrary events ends, and that its numbers add up.

use pageset_trace::{Event, EventKind, LostEvents, TraceError, TraceInfo, TraceReader};
use proptest::prelude::*;

use super::*;

/// A recording in memory.
struct Events {
    info: TraceInfo,
    left: Vec<Event>,
}

impl TraceReader for Events {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        *events = std::mem::take(&mut self.left);
        Ok(events.len())
    }

    fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
        Ok(self.left.iter().any(Event::is_tick))
    }

    fn lost(&self) -> LostEvents {
        LostEvents::default()
    }
}

fn survey_of(left: Vec<Event>) -> Survey {
    let mut reader = Events { info: TraceInfo::default(), left };
    // Allow five chunks, so that the table becomes full in some tests.
    let options = SurveyOptions { table_bytes_max: 5 * blocks::CHUNK_BYTES };
    survey(&mut reader, &options, |_| ()).expect("expected no error when events in memory are read")
}

/// Generates any event. Most events have one of a few frames and CPUs, so that several events are about the
/// same block.
fn event() -> impl Strategy<Value = Event> {
    let frame =
        prop_oneof![20 => 0_u64..64, 2 => (0_u64..8).prop_map(|chunk| chunk << 12), 1 => any::<u64>()];
    let order = prop_oneof![20 => 0_u8..4, 2 => 0_u8..12, 1 => any::<u8>()];
    let cpu = prop_oneof![20 => 0_u16..3, 1 => any::<u16>()];
    let kind = prop_oneof![8 => 0_usize..2, 2 => 0..EventKind::COUNT];
    let rest = (any::<u64>(), any::<u32>(), 0_u32..3, any::<i8>(), any::<u8>());
    (frame, order, cpu, kind, rest).prop_map(
        |(pfn, order, cpu, kind, (ts_ns, gfp, pid, migratetype, refill))| {
            let pfn = if pfn < 64 { pfn & !((1 << order.min(4)) - 1) } else { pfn };
            Event {
                pfn,
                order,
                gfp,
                pid,
                migratetype,
                refill,
                ..Event::new(EventKind::ALL[kind], ts_ns, cpu)
            }
        },
    )
}

proptest! {
    #[test]
    fn numbers_add_up_whatever_the_events(events in prop::collection::vec(event(), 0..400)) {
        let count = events.len() as u64;
        let survey = survey_of(events);
        prop_assert_eq!(survey.events, count);
        prop_assert_eq!(survey.kinds.iter().map(|(_, count)| count).sum::<u64>(), count);
        prop_assert_eq!(survey.cpus.each.iter().map(|cpu| cpu.events).sum::<u64>(), count);
        let (orders, cpus, lifetimes) = (&survey.orders, &survey.cpus, &survey.lifetimes);
        let matched = cpus.local_blocks + cpus.remote_blocks;
        prop_assert_eq!(lifetimes.ns.total(), matched);
        prop_assert_eq!(cpus.matrix.iter().flatten().sum::<u64>() + cpus.beyond_matrix, matched);
        prop_assert_eq!(orders.freed_pages(), cpus.local_pages + cpus.remote_pages + lifetimes.unmatched_pages);
        let runs = [&survey.bursts.allocations, &survey.bursts.frees].map(|runs| runs.pages.sum);
        prop_assert_eq!(runs, [orders.allocated_pages(), orders.freed_pages()]);
        let is_untroubled = lifetimes.allocated_twice == 0 && lifetimes.not_followed == 0;
        let gone = cpus.local_pages + cpus.remote_pages;
        if is_untroubled {
            prop_assert_eq!(orders.allocated_pages(), gone + lifetimes.alive_pages_at_end);
        }
    }
}

#[test]
fn a_recording_without_events_has_an_empty_survey() {
    let survey = survey_of(Vec::new());
    assert_eq!((survey.events, survey.time), (0, None));
}

#[test]
fn the_second_event_of_a_batched_free_is_no_free() {
    let at = |kind, ts_ns, cpu| Event { pfn: 9, ..Event::new(kind, ts_ns, cpu) };
    let survey = survey_of(vec![
        at(EventKind::MmPageAlloc, 100, 0),
        at(EventKind::MmPageFree, 164, 1),
        at(EventKind::MmPageFreeBatched, 170, 1),
    ]);
    assert_eq!((survey.orders.freed_blocks(), survey.orders.freed_in_batches), (1, 1));
    assert_eq!((survey.cpus.remote_blocks, survey.lifetimes.unmatched_frees), (1, 0));
    assert_eq!(survey.lifetimes.ns.ranges().collect::<Vec<_>>(), [(64, 1)]);
    assert_eq!(survey.time.map(|time| (time.first_ns, time.last_ns, time.duration_ns)), Some((100, 170, 70)));
}
