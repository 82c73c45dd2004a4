//! Divides the counted visits and waits among call sites.

use std::collections::HashMap;

use pageset_trace::{CountedLock, CountedSite, HitEstimate, LockName};

use crate::lock_watch::Waited;

/// Maximum number of call sites and locks in a file. All further call sites are counted together as unknown.
const LISTED_MAX: usize = 1024;

/// Visits by call site. Each visit has the inverse of its sampling chance as weight. A kernel has fewer call
/// sites than functions, so this table stays small.
#[derive(Debug, Default)]
pub(super) struct VisitsBySite {
    weights: HashMap<Option<u32>, f64>,
}

impl VisitsBySite {
    /// Adds the visits of a segment. `chance` is the chance that the segment had of being sampled.
    pub(super) fn add(&mut self, seen: HashMap<Option<u32>, f64>, chance: f64) {
        for (site, weight) in seen {
            *self.weights.entry(site).or_default() += weight / chance;
        }
    }

    /// Returns all call sites, sorted by visits, largest number first. The visits of all call sites add up to
    /// the estimate. `waits` is `None` if waits were not recorded.
    pub(super) fn list(
        self,
        estimate: Option<HitEstimate>,
        name: impl Fn(u32) -> String,
        waits: Option<HashMap<Option<String>, Waited>>,
    ) -> Vec<CountedSite> {
        let all: f64 = self.weights.values().sum();
        let visits = estimate.filter(|_| all > 0.0).map(|estimate| estimate.hits as f64 / all);
        let new = |function: &Option<String>| CountedSite {
            function: function.clone(),
            visits: visits.map(|_| 0),
            waits: waits.as_ref().map(|_| 0),
            wait_ns: waits.as_ref().map(|_| 0),
        };
        let mut parts: HashMap<Option<String>, f64> = HashMap::new();
        for (site, weight) in self.weights {
            // Call sites with the same function name become one call site.
            *parts.entry(site.map(&name)).or_default() += weight;
        }
        let mut sites: HashMap<Option<String>, CountedSite> = HashMap::new();
        for (function, weight) in parts {
            let site = sites.entry(function.clone()).or_insert_with(|| new(&function));
            site.visits = visits.map(|each| (weight * each).round() as u64);
        }
        for (function, waited) in waits.iter().flatten() {
            let site = sites.entry(function.clone()).or_insert_with(|| new(function));
            (site.waits, site.wait_ns) = (Some(waited.waits), Some(waited.wait_ns));
        }
        let mut sites: Vec<_> = sites.into_values().collect();
        sites.sort_by(|a, b| {
            // The entry without a known function comes last.
            let rank = |site: &CountedSite| (site.function.is_some(), site.visits, site.wait_ns);
            rank(b).cmp(&rank(a)).then_with(|| a.function.cmp(&b.function))
        });
        if sites.len() > LISTED_MAX {
            let mut unknown = new(&None);
            for site in sites.drain(LISTED_MAX..) {
                let add = |sum: &mut Option<u64>, part: Option<u64>| {
                    *sum = sum.zip(part).map(|(sum, part)| sum.saturating_add(part));
                };
                add(&mut unknown.visits, site.visits);
                add(&mut unknown.waits, site.waits);
                add(&mut unknown.wait_ns, site.wait_ns);
            }
            sites.push(unknown);
        }
        sites
    }
}

/// Returns all locks, sorted by the time of waits, longest time first.
pub(super) fn locks(waits: HashMap<LockName, Waited>) -> Vec<CountedLock> {
    let counted =
        |(lock, Waited { waits, wait_ns }): (LockName, Waited)| CountedLock { lock, waits, wait_ns };
    let mut locks: Vec<_> = waits.into_iter().map(counted).collect();
    locks.sort_by(|a, b| (b.wait_ns, &a.lock).cmp(&(a.wait_ns, &b.lock)));
    if locks.len() > LISTED_MAX {
        let mut rest = Waited::default();
        for CountedLock { waits, wait_ns, .. } in locks.drain(LISTED_MAX..) {
            rest.plus(Waited { waits, wait_ns });
        }
        locks.push(counted((LockName::Unknown, rest)));
    }
    locks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(waits: Option<HashMap<Option<String>, Waited>>) -> Vec<CountedSite> {
        let mut visits = VisitsBySite::default();
        visits.add(HashMap::from([(Some(1), 3.0), (None, 5.0)]), 0.5);
        visits.add(HashMap::from([(Some(2), 4.0), (Some(3), 8.0)]), 1.0);
        let name = |site| if site == 3 { "f1".to_owned() } else { format!("f{site}") };
        visits.list(Some(HitEstimate { low: 1, hits: 2800, high: 9000 }), name, waits)
    }

    #[test]
    fn visits_of_all_sites_are_the_estimate_and_what_is_unknown_is_last() {
        let sites = listed(None);
        let shown: Vec<_> = sites.iter().map(|site| (site.function.as_deref(), site.visits)).collect();
        assert_eq!(shown, [(Some("f1"), Some(1400)), (Some("f2"), Some(400)), (None, Some(1000))]);
        assert!(
            sites.iter().all(|site| site.waits.is_none() && site.wait_ns.is_none()),
            "not seen is unknown"
        );
    }

    #[test]
    fn a_site_that_only_waited_is_listed() {
        let waits = HashMap::from([(Some("g".to_owned()), Waited { waits: 2, wait_ns: 9 })]);
        let sites = listed(Some(waits));
        let of = |name: &str| sites.iter().find(|site| site.function.as_deref() == Some(name)).unwrap();
        assert_eq!((of("g").visits, of("g").waits, of("g").wait_ns), (Some(0), Some(2), Some(9)));
        assert_eq!((of("f1").waits, of("f1").wait_ns), (Some(0), Some(0)));
    }

    #[test]
    fn lists_are_bounded() {
        let mut visits = VisitsBySite::default();
        visits.add((0..LISTED_MAX as u32 + 9).map(|site| (Some(site), 1.0)).collect(), 1.0);
        let estimate = Some(HitEstimate::exact(LISTED_MAX as u64 + 9));
        let sites = visits.list(estimate, |site| format!("f{site}"), None);
        assert_eq!((sites.len(), sites[LISTED_MAX].visits), (LISTED_MAX + 1, Some(9)));
        let waited = (0..LISTED_MAX + 9).map(|number| {
            (LockName::TakenIn(number.to_string()), Waited { waits: 1, wait_ns: number as u64 })
        });
        let locks = locks(waited.collect());
        assert_eq!((locks.len(), locks[0].wait_ns, locks[LISTED_MAX].waits), (LISTED_MAX + 1, 1032, 9));
    }
}
