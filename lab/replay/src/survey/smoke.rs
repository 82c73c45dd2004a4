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

/// Surveys a recording that has all kinds of events.
fn survey_of(left: Vec<Event>) -> Survey {
    let recorded = EventKind::ALL.map(|kind| kind.name().to_owned()).to_vec();
    survey_from(Events { info: TraceInfo { recorded, ..TraceInfo::default() }, left })
}

fn survey_from(mut reader: Events) -> Survey {
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
        let (orders, cpus, lifetimes) = (&survey.orders, &survey.cpus, survey.lifetimes.unwrap());
        let matched = cpus.local_blocks.unwrap() + cpus.remote_blocks.unwrap();
        prop_assert_eq!(lifetimes.ns.total(), matched);
        let in_matrix = cpus.matrix.iter().flatten().flatten().sum::<u64>();
        prop_assert_eq!(in_matrix + cpus.beyond_matrix.unwrap(), matched);
        let gone = cpus.local_pages.unwrap() + cpus.remote_pages.unwrap();
        prop_assert_eq!(orders.freed_pages, Some(gone + lifetimes.unmatched_pages));
        let bursts = survey.bursts.unwrap();
        let runs = [bursts.allocations, bursts.frees].map(|runs| Some(runs.pages.sum));
        prop_assert_eq!(runs, [orders.allocated_pages, orders.freed_pages]);
        let is_untroubled = lifetimes.allocated_twice == 0 && lifetimes.not_followed == 0;
        if is_untroubled {
            prop_assert_eq!(orders.allocated_pages, Some(gone + lifetimes.alive_pages_at_end));
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
    assert_eq!((survey.orders.freed_blocks, survey.orders.freed_in_batches), (Some(1), Some(1)));
    let lifetimes = survey.lifetimes.unwrap();
    assert_eq!((survey.cpus.remote_blocks, lifetimes.unmatched_frees), (Some(1), 0));
    assert_eq!(lifetimes.ns.ranges().collect::<Vec<_>>(), [(64, 1)]);
    assert_eq!(survey.time.map(|time| (time.first_ns, time.last_ns, time.duration_ns)), Some((100, 170, 70)));
}

#[test]
fn figures_are_unknown_if_their_events_were_not_recorded() {
    let allocation = |ts_ns| Event { pfn: 9, ..Event::new(EventKind::MmPageAlloc, ts_ns, 1) };
    let left = vec![allocation(100), allocation(200)];
    let survey = survey_from(Events { info: TraceInfo::default(), left });
    let cpu = CpuTotals { cpu: 1, events: 2, allocated_pages: Some(2), freed_pages: None };
    assert_eq!(survey.cpus, Cpus { each: vec![cpu], ..Cpus::default() });
    assert_eq!((survey.orders.allocated_blocks, survey.orders.failed), (Some(2), Some(0)));
    assert_eq!((survey.orders.freed_blocks, survey.orders.freed_in_batches), (None, None));
    assert_eq!((survey.lifetimes, survey.bursts, survey.allocated_twice), (None, None, 1));
    assert_eq!(survey.kernel, Kernel::default());
    let json = serde_json::to_value(&survey.kernel).unwrap();
    assert!(json.as_object().unwrap().values().all(serde_json::Value::is_null), "{json}");
}
