//! Call sites of zone visits and of waits for zone locks, and the names of other locks that CPUs wait for.
//!
//! A call site is a function that requested or freed pages. The recording contains the function's name.

use std::cmp::Reverse;
use std::collections::HashMap;

use pageset_trace::{CallSites, Counts, LockName, TraceInfo};
use serde::Serialize;

use crate::who::{VISITS_MIN, percent};
use crate::{Survey, ZoneLockWaits};

/// Call sites and locks. A list is `None` if it was not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sites {
    /// Call sites, sorted by visits, largest number first. If visits have no call sites, the list is sorted
    /// by the time of waits. The unknown site comes last.
    pub call_sites: Option<Vec<Site>>,
    /// Spinning locks other than zone locks, sorted by the time of waits, longest time first. The unknown
    /// lock comes last.
    pub other_locks: Option<Vec<Lock>>,
}

/// Visits and waits of one call site. Each percentage is a share of the total of all call sites.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Site {
    /// The function that requested or freed pages. `None` if the function is not known.
    pub function: Option<String>,
    /// Number of visits to zones.
    pub visits: Option<u64>,
    /// The site's visits, in percent of all visits.
    pub visits_percent: Option<f64>,
    /// Number of waits for zone locks.
    pub zone_waits: Option<u64>,
    /// Time of `zone_waits`, in nanoseconds.
    pub zone_wait_ns: Option<u64>,
    /// The time of `zone_waits`, in percent of the time of all waits for zone locks.
    pub zone_wait_percent: Option<f64>,
}

/// Waits for a lock, or for several locks with the same name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lock {
    /// The lock's name, or what is known about the name.
    pub lock: LockName,
    /// The number of waits.
    pub waits: u64,
    /// Time of `waits`, in nanoseconds.
    pub wait_ns: u64,
    /// The time of `waits`, in percent of the time of all waits for locks other than zone locks.
    pub wait_percent: Option<f64>,
}

impl Sites {
    /// Finds the call sites in a recording's description and survey. `None` if the recording has no call
    /// chain.
    #[must_use]
    pub fn new(info: &TraceInfo, survey: &Survey) -> Option<Self> {
        let found = match (&info.counts, &info.call_sites) {
            (Some(counts), _) => Self::of_counts(counts),
            (None, Some(names)) => Self::of_events(names, survey.kernel.zone_locks.waits.as_ref()?),
            (None, None) => return None,
        };
        (found.call_sites.is_some() || found.other_locks.is_some()).then_some(found)
    }

    fn of_counts(counts: &Counts) -> Self {
        let is_enough = counts.visits_counted >= VISITS_MIN;
        let known = counts.sites.iter().filter(|site| is_enough || site.waits.is_some_and(|waits| waits > 0));
        let known = known.collect::<Vec<_>>();
        let sites = known.iter().map(|site| Site {
            function: site.function.clone(),
            visits: site.visits.filter(|_| is_enough),
            visits_percent: None,
            zone_waits: site.waits,
            zone_wait_ns: site.wait_ns,
            zone_wait_percent: None,
        });
        let locks = counts.locks.iter().flatten();
        let locks = locks.map(|lock| (lock.lock.clone(), (lock.waits, lock.wait_ns)));
        Self {
            call_sites: (!known.is_empty()).then(|| shares(sites.collect())),
            other_locks: counts.locks.as_ref().map(|_| ranked(locks)),
        }
    }

    /// Makes the call sites of a recording of events. A recording of events has call sites of waits but not
    /// of visits.
    fn of_events(names: &CallSites, locks: &ZoneLockWaits) -> Self {
        let mut sites: HashMap<Option<&str>, (u64, u64)> = HashMap::new();
        for (site, found) in &locks.sites {
            let function = site.and_then(|site| names.function(site));
            let (waits, wait_ns) = sites.entry(function).or_default();
            (*waits, *wait_ns) = (*waits + found.waits, wait_ns.saturating_add(found.wait_ns));
        }
        let sites = sites.into_iter().map(|(function, (waits, wait_ns))| Site {
            function: function.map(str::to_owned),
            visits: None,
            visits_percent: None,
            zone_waits: Some(waits),
            zone_wait_ns: Some(wait_ns),
            zone_wait_percent: None,
        });
        let variables: HashMap<u64, &str> =
            names.locks.iter().map(|lock| (lock.address, lock.name.as_str())).collect();
        let others = locks.others.iter().map(|other| {
            let variable = other.address.and_then(|address| variables.get(&address));
            let function = other.site.and_then(|site| names.function(site));
            let lock = match (variable, function) {
                (Some(name), _) => LockName::Variable((*name).to_owned()),
                (None, Some(function)) => LockName::TakenIn(function.to_owned()),
                (None, None) => LockName::Unknown,
            };
            (lock, (other.waits.waits, other.waits.wait_ns))
        });
        Self { call_sites: Some(shares(sites.collect())), other_locks: Some(ranked(others)) }
    }
}

/// Sorts call sites, and adds their shares.
fn shares(mut sites: Vec<Site>) -> Vec<Site> {
    let sum = |of: fn(&Site) -> Option<u64>| sites.iter().filter_map(of).fold(0, u64::saturating_add);
    let (visits, wait_ns) = (sum(|site| site.visits), sum(|site| site.zone_wait_ns));
    for site in &mut sites {
        site.visits_percent = site.visits.and_then(|part| percent(part, visits));
        site.zone_wait_percent = site.zone_wait_ns.and_then(|part| percent(part, wait_ns));
    }
    sites.sort_by(|a, b| {
        let order = |site: &Site| (site.function.is_none(), Reverse((site.visits, site.zone_wait_ns)));
        order(a).cmp(&order(b)).then_with(|| a.function.cmp(&b.function))
    });
    sites
}

/// Makes the rows of locks. Locks with the same name share a row.
fn ranked(locks: impl Iterator<Item = (LockName, (u64, u64))>) -> Vec<Lock> {
    let mut all: HashMap<LockName, (u64, u64)> = HashMap::new();
    for (lock, (waits, wait_ns)) in locks {
        let sum = all.entry(lock).or_default();
        *sum = (sum.0.saturating_add(waits), sum.1.saturating_add(wait_ns));
    }
    let whole = all.values().fold(0_u64, |sum, (_, wait_ns)| sum.saturating_add(*wait_ns));
    let with_share =
        |(lock, (waits, wait_ns))| Lock { lock, waits, wait_ns, wait_percent: percent(wait_ns, whole) };
    let mut all: Vec<Lock> = all.into_iter().map(with_share).collect();
    all.sort_by(|a, b| {
        let order = |lock: &Lock| (lock.lock == LockName::Unknown, Reverse(lock.wait_ns));
        order(a).cmp(&order(b)).then_with(|| a.lock.cmp(&b.lock))
    });
    all
}

#[cfg(test)]
mod tests {
    use pageset_trace::{
        Caller, CountedLock, CountedSite, Event, EventKind, LostEvents, NamedLock, NativeWriter, OpenOptions,
        WriteOptions,
    };

    use super::*;
    use crate::{SurveyOptions, survey};

    /// The sites of a recording with these waits: address, caller, call site, time.
    fn of_waits(waits: &[(u64, Caller, Option<u16>, u64)], call_sites: Option<CallSites>) -> Option<Sites> {
        let mut events = Vec::new();
        for (at, (lock, caller, site, wait_ns)) in waits.iter().enumerate() {
            let ts_ns = 1000 * at as u64;
            let of = |kind, ts_ns| Event { pfn: *lock, pid: 7, ..Event::new(kind, ts_ns, 0) };
            let mut begin = Event { gfp: 1, order: caller.code(), ..of(EventKind::ContentionBegin, ts_ns) };
            site.iter().for_each(|site| begin.set_call_site(*site));
            events.extend([begin, of(EventKind::ContentionEnd, ts_ns + wait_ns)]);
        }
        let recorded = EventKind::ALL.map(|kind| kind.name().to_owned()).to_vec();
        let info = TraceInfo { call_sites, recorded, ..TraceInfo::default() };
        let mut writer = NativeWriter::new(Vec::new(), &info, WriteOptions::new()).unwrap();
        writer.write(&events).unwrap();
        let (bytes, _) = writer.finish(LostEvents::default()).unwrap();
        let mut reader = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
        let survey = survey(reader.as_mut(), &SurveyOptions::default(), |_| ()).unwrap();
        Sites::new(reader.info(), &survey)
    }

    fn names() -> CallSites {
        let lock = NamedLock { address: 9, name: "tasklist_lock".to_owned() };
        let functions = ["do_anonymous_page", "folio_lruvec_lock_irqsave"].map(str::to_owned).to_vec();
        CallSites { functions, locks: vec![lock] }
    }

    #[test]
    fn waits_in_a_file_of_events_have_call_sites_and_locks_have_names() {
        let waits = [
            (1, Caller::Refill, Some(0), 30),
            (2, Caller::Drain, None, 70),
            (8, Caller::Elsewhere, Some(1), 5),
            (7, Caller::Elsewhere, Some(1), 5),
            (9, Caller::Elsewhere, Some(1), 6),
            (6, Caller::Elsewhere, None, 84),
        ];
        let found = of_waits(&waits, Some(names()))
            .expect("expected call sites, because the recording has call chains");
        let sites = found.call_sites.expect("expected call sites of waits for zone locks");
        let shown: Vec<_> = sites
            .iter()
            .map(|site| (site.function.as_deref(), site.visits, site.zone_wait_percent))
            .collect();
        assert_eq!(shown, [(Some("do_anonymous_page"), None, Some(30.0)), (None, None, Some(70.0))]);
        let locks = found.other_locks.expect("expected waits for locks other than zone locks");
        let shown: Vec<_> =
            locks.into_iter().map(|lock| (lock.lock, lock.waits, lock.wait_percent)).collect();
        assert_eq!(
            shown,
            [
                (LockName::TakenIn("folio_lruvec_lock_irqsave".to_owned()), 2, Some(10.0)),
                (LockName::Variable("tasklist_lock".to_owned()), 1, Some(6.0)),
                (LockName::Unknown, 1, Some(84.0)),
            ]
        );
        assert_eq!(of_waits(&waits, None), None, "a file of an older version has no names of call sites");
    }

    #[test]
    fn counts_have_visits_by_call_site() {
        let site = |function: Option<&str>, visits| CountedSite {
            function: function.map(str::to_owned),
            visits: Some(visits),
            ..CountedSite::default()
        };
        let counts = Counts {
            sites: vec![site(None, 60), site(Some("a"), 10), site(Some("b"), 30)],
            visits_counted: VISITS_MIN,
            locks: Some(vec![CountedLock { lock: LockName::Unknown, waits: 1, wait_ns: 5 }]),
            ..Counts::default()
        };
        let found = Sites::of_counts(&counts);
        let shown: Vec<_> = found
            .call_sites
            .iter()
            .flatten()
            .map(|site| (site.function.as_deref(), site.visits_percent, site.zone_waits))
            .collect();
        assert_eq!(
            shown,
            [(Some("b"), Some(30.0), None), (Some("a"), Some(10.0), None), (None, Some(60.0), None)]
        );
        assert_eq!(found.other_locks.map(|locks| locks.len()), Some(1));
        let few = Counts { visits_counted: VISITS_MIN - 1, ..counts };
        assert_eq!(
            Sites::of_counts(&few).call_sites,
            None,
            "expected no call sites, because too few visits were seen"
        );
        let old = Sites::of_counts(&Counts::default());
        assert_eq!(
            (old.call_sites, old.other_locks),
            (None, None),
            "a file of an older version has neither call sites nor locks"
        );
    }
}
