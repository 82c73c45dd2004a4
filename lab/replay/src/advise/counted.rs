//! Findings from a recording of counts. Counts show whether page sets matter, but not which setting would
//! help.

use pageset_trace::{Counts, HitEstimate, TraceInfo, TracepointCount};

use super::findings::{CountedTime, Doubts, Evidence, Waiting};
use super::spending::{Figure, Load, Spending};
use crate::untimed;

/// Makes the findings from counts. A number that was counted for only part of the time is an estimate, and
/// `spending` has its range.
pub(super) fn findings(info: &TraceInfo, counts: &Counts, part_of_machine: Option<String>) -> Evidence {
    let cpus = info.machine.as_ref().map(|machine| machine.cpus).or(info.cpus);
    let all_ns = counts.elapsed_ns.saturating_mul(u64::from(counts.cpus));
    let percent = |part: f64| 100.0 * part / all_ns.max(1) as f64;
    let (visits, moved) = (counts.zone_visits(), counts.moved_blocks());
    let load =
        Load { cpu_time_ns: None, visits: visits.map(figure), moved_pages: moved.map(figure), wait_ns: None };
    // Assume that CPUs hold zone locks only during visits. The time of all visits is then an upper bound for
    // the time that the locks were held.
    let held_ns = Spending::visits_ns_of(info, load).map(|held| held.high);
    let is_never = counts.hits(TracepointCount::CONTENTION).is_some_and(|hits| hits.high == 0);
    let (waiting, wait_ns) = match (counts.zone_waits, held_ns) {
        (Some(waits), _) => {
            let (low, more) = (waits.wait_ns as f64, waits.unknown_wait_ns as f64);
            let measured = Waiting::Measured {
                percent: percent(low + more),
                waits: waits.waits.saturating_add(waits.unknown_waits),
            };
            (Some(measured), Some(Figure { value: low + more / 2.0, low, high: low + more }))
        }
        (None, _) if is_never => {
            (Some(Waiting::Measured { percent: 0.0, waits: 0 }), Some(Figure::exact(0.0)))
        }
        (None, Some(held_ns)) => {
            let most = held_ns * f64::from(counts.cpus.saturating_sub(1));
            (Some(Waiting::AtMost { percent: percent(most) }), Some(Figure::at_most(most)))
        }
        (None, None) => (None, None),
    };
    let hits = |name: &str| counts.hits(name).map(|hits| hits.hits);
    let missing = match (visits, waiting) {
        (None, _) => Some(
            "How many visits to the zones there were is not known: the recording is too short, or its kernel lacks \
             tracepoints. Count for some seconds."
                .to_owned(),
        ),
        (_, None) => Some("How long zone locks were waited for is not known.".to_owned()),
        _ => None,
    };
    let held_at_end = |after: &pageset_trace::Snapshot| {
        let sets = after.zoneinfo.zones.iter().flat_map(|zone| &zone.pagesets);
        sets.map(|set| u64::from(set.count)).sum()
    };
    Evidence {
        is_counted: true,
        counted_time: Some(time(counts)),
        spending: Spending::of_recording(info, Some(all_ns), Load { wait_ns, ..load }),
        cpus,
        seconds: counts.elapsed_ns as f64 / 1e9,
        events: 0,
        lost_events: 0,
        is_cut: false,
        not_recorded: Vec::new(),
        allocated_pages: info.pgalloc_delta,
        zone_pages: None,
        visits: visits.map(|visits| visits.hits),
        waiting,
        other_spin_percent: None,
        other_longest_percent: None,
        remote_percent: None,
        held_pages_peak: None,
        held_pages_end: info.after.as_ref().map(held_at_end),
        managed_pages: info
            .machine
            .as_ref()
            .map(|machine| machine.zones.iter().map(|zone| zone.managed).sum()),
        kswapd_wakes: hits(TracepointCount::KSWAPD_WAKE),
        direct_reclaims: hits(TracepointCount::DIRECT_RECLAIM),
        own_off_percent: None,
        is_own_far_off: false,
        doubts: Doubts {
            not_recorded: missing,
            shortage_not_recorded: Some("Whether memory was short was not counted.".to_owned()),
            setting_changed: untimed(info),
            part_of_machine,
        },
    }
}

fn time(counts: &Counts) -> CountedTime {
    // `elapsed_ns` was read before the last segment ended, so the segments' total may exceed `elapsed_ns`.
    let percent = |ns: u64| 100.0 * (ns as f64 / counts.elapsed_ns.max(1) as f64).min(1.0);
    let moved = |name: &str| counts.tracepoints.iter().find(|tracepoint| tracepoint.name == name);
    let moved = moved(TracepointCount::ZONE_LOCKED).zip(moved(TracepointCount::PCPU_DRAIN));
    CountedTime {
        visits_percent: counts.visits.map(|_| percent(counts.visits_counted_ns)),
        moved_percent: moved.map(|(out, back)| percent(out.counted_ns.min(back.counted_ns))),
    }
}

fn figure(hits: HitEstimate) -> Figure {
    Figure { value: hits.hits as f64, low: hits.low as f64, high: hits.high as f64 }
}

#[cfg(test)]
mod tests {
    use pageset_trace::ZoneWaits;

    use super::super::spending::tests::cost;
    use super::super::verdict::{Matter, Verdict, Why, find};
    use super::super::wording::sentences;
    use super::*;

    /// Counts of visits and blocks on 4 CPUs in 10 s.
    fn counts(visits: u64, blocks: u64) -> Counts {
        let exact = |hits| Some(HitEstimate::exact(hits));
        let of = |name: &str, hits| TracepointCount {
            name: name.into(),
            hits: exact(hits),
            counted_ns: 10_000_000_000,
            ..TracepointCount::default()
        };
        Counts {
            elapsed_ns: 10_000_000_000,
            cpus: 4,
            tracepoints: vec![
                of(TracepointCount::ZONE_LOCKED, blocks),
                of(TracepointCount::PCPU_DRAIN, 0),
                of(TracepointCount::KSWAPD_WAKE, 0),
                of(TracepointCount::DIRECT_RECLAIM, 0),
            ],
            visits: Some(HitEstimate { low: visits / 2, hits: visits, high: visits * 2 }),
            visits_counted_ns: 900_000_000,
            zone_waits: Some(ZoneWaits::default()),
            ..Counts::default()
        }
    }

    fn found(counts: &Counts, has_cost: bool) -> (Verdict, String) {
        let info = TraceInfo {
            pgalloc_delta: Some(1_000_000),
            busy_ns: Some(20_000_000_000),
            visit_cost: has_cost.then(cost),
            ..TraceInfo::default()
        };
        let findings = findings(&info, counts, None);
        let verdict = find(&findings, &[]);
        (verdict.clone(), sentences(&findings, &[], &verdict, None).join(" "))
    }

    #[test]
    fn few_visits_are_a_no_with_and_without_their_cost() {
        for has_cost in [true, false] {
            let (verdict, said) = found(&counts(100, 5000), has_cost);
            assert_eq!(verdict, Verdict::LeaveAlone, "{said}");
            assert!(said.contains("50 to 200 visits") && said.contains("estimate"), "{said}");
            assert!(
                said.ends_with("This was counted: visits in 9.0 % of the time, moved blocks in 100.0 %."),
                "{said}"
            );
        }
    }

    #[test]
    fn many_visits_are_a_yes_only_with_their_cost() {
        let many = counts(1_000_000, 50_000_000);
        let (verdict, said) = found(&many, true);
        assert_eq!(verdict, Verdict::Matters { matter: Matter::CpuTime }, "{said}");
        assert!(said.starts_with("Yes:") && said.contains("without --counts"), "{said}");
        let (verdict, said) = found(&many, false);
        assert_eq!(verdict, Verdict::Unknown { why: Why::CostNotMeasured }, "{said}");
    }

    #[test]
    fn what_may_or_may_not_matter_takes_events() {
        let (verdict, said) = found(&counts(200_000, 10_000_000), true);
        assert_eq!(verdict, Verdict::Unknown { why: Why::EventsNeeded }, "{said}");
    }

    #[test]
    fn what_was_not_counted_is_unknown() {
        let unknown = Counts { visits: None, ..counts(1, 1) };
        let (verdict, said) = found(&unknown, true);
        assert_eq!(verdict, Verdict::Unknown { why: Why::NotRecorded });
        assert!(said.contains("visits to the zones there were is not known"), "{said}");
        // If the cost of a visit is known, the time that locks were held is an upper bound for the time of
        // waits.
        let no_waits = Counts { zone_waits: None, ..counts(100, 5000) };
        assert_eq!(found(&no_waits, true).0, Verdict::LeaveAlone);
        assert_eq!(found(&no_waits, false).0, Verdict::Unknown { why: Why::NotRecorded });
    }

    #[test]
    fn what_page_sets_hold_at_most_is_not_known_where_memory_is_short() {
        let mut short = counts(100, 5000);
        short.tracepoints[2].hits = Some(HitEstimate::exact(3));
        assert_eq!(found(&short, true).0, Verdict::Unknown { why: Why::EventsNeeded });
    }
}
