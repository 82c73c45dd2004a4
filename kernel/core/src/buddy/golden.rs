//! Golden vectors of the free lists. A vector has the decisions of Linux 6.1 or 6.12 in 900 random
//! operations, and the lists at the end.

use std::format;
use std::string::{String, ToString};
use std::sync::Mutex;
use std::vec::Vec;

use super::FallbackMode;
use super::tests::Bench;
use crate::event::{Event, EventSink};
use crate::policy::BuddyRules;
use crate::request::{AllocFlags, Wanted};
use crate::zone::{LockedZone, Watermarks};
use crate::{CpuId, MigrateType, Order};

/// Stores the latest `MmPageAllocExtfrag` event as text, and ignores other events.
#[derive(Default)]
struct Extfrag(Mutex<String>);

impl EventSink for Extfrag {
    fn emit(&self, _: CpuId, event: Event) {
        if let Event::MmPageAllocExtfrag {
            pfn,
            alloc_order,
            fallback_order,
            alloc_migratetype,
            fallback_migratetype,
            change_ownership,
        } = event
        {
            *self.0.lock().unwrap() = format!(
                "{}/{alloc_order}/{fallback_order}/{}/{}/{}",
                pfn.0,
                alloc_migratetype.index(),
                fallback_migratetype.index(),
                u8::from(change_ownership)
            );
        }
    }
}

fn replay(rules: BuddyRules, table: &str) -> Bench {
    let mut bench = Bench::new(8192, rules);
    bench.body.marks.set(Watermarks { min: 0, low: 100, high: 200 });
    bench.body.boost_factor.store(15_000, std::sync::atomic::Ordering::Relaxed);
    let events = Extfrag::default();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |column: usize| cells[column].parse::<u32>().unwrap();
        let order = Order::new(number(2) as u8).unwrap();
        events.0.lock().unwrap().clear();
        if cells[1] == "alloc" {
            let mut zone = LockedZone::new(&mut bench.buddy, &bench.body, &events, CpuId(0));
            let migratetype = MigrateType::from_index(number(3) as usize).unwrap();
            let wanted = Wanted { order, migratetype };
            let got = zone.take(wanted, AllocFlags::empty(), &mut FallbackMode::default());
            if let Some(frame) = got {
                zone.body.frames.mark_allocated(frame, order, migratetype);
            }
            let expected = cells[4].parse::<i64>().ok().filter(|pfn| *pfn >= 0);
            assert_eq!(got.map(i64::from), expected, "{line}");
            assert_eq!(*events.0.lock().unwrap(), cells[5], "{line}");
        } else {
            bench.free(number(4), order);
        }
        assert_eq!(bench.body.gauges.free_pages().to_string(), cells[6], "{line}");
        assert_eq!(bench.body.marks.boost().to_string(), cells[7], "{line}");
    }
    bench
}

fn check_final(bench: &Bench, lists: &str, pageblocks: &str) {
    let mut ours = Vec::new();
    for order in 0..=10 {
        for migratetype in MigrateType::ALL {
            let list: Vec<String> = bench.list(order, migratetype).iter().map(ToString::to_string).collect();
            if !list.is_empty() {
                ours.push(format!("{order},{},{}", migratetype.index(), list.join(" ")));
            }
        }
    }
    assert_eq!(ours, lists.lines().skip(1).collect::<Vec<_>>());
    for line in pageblocks.lines().skip(1) {
        let (pageblock, migratetype) = line.split_once(',').unwrap();
        let frame = pageblock.parse::<u32>().unwrap() * 512;
        assert_eq!(bench.body.frames.pageblock_type(frame).index().to_string(), migratetype, "{line}");
    }
}

#[test]
fn linux_6_1_buddy_equals_the_vectors() {
    let bench = replay(BuddyRules::LINUX_6_1, include_str!("../../tests/vectors/buddy_trace_6_1.csv"));
    check_final(
        &bench,
        include_str!("../../tests/vectors/buddy_trace_6_1_final_freelists.csv"),
        include_str!("../../tests/vectors/buddy_trace_6_1_final_pageblocks.csv"),
    );
}

#[test]
fn linux_6_12_buddy_equals_the_vectors() {
    let bench = replay(BuddyRules::LINUX_6_12, include_str!("../../tests/vectors/buddy_trace_6_12.csv"));
    check_final(
        &bench,
        include_str!("../../tests/vectors/buddy_trace_6_12_final_freelists.csv"),
        include_str!("../../tests/vectors/buddy_trace_6_12_final_pageblocks.csv"),
    );
}
