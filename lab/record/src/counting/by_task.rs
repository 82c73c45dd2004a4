//! Divides the counted visits and waits among tasks.

use std::collections::HashMap;

use pageset_trace::{CountedTask, HitEstimate, Party};

use crate::lock_watch::Waited;
use crate::task_watch::TaskWatch;

/// Maximum number of tasks that are distinguished while counting.
const TASKS_MAX: usize = 1 << 16;
/// Maximum number of tasks in a file. All further tasks share one entry.
const LISTED_MAX: usize = 4096;

/// The numbers of a task and its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TaskNumbers {
    pub(crate) tid: u32,
    pub(crate) process: u32,
}

/// Visits by task. Each visit has the inverse of its sampling chance as weight.
#[derive(Debug, Default)]
pub(super) struct VisitsByTask {
    weights: HashMap<TaskNumbers, f64>,
    unlisted: f64,
}

impl VisitsByTask {
    /// Adds the visits of a segment. `chance` is the chance that the segment had of being sampled.
    pub(super) fn add(&mut self, seen: HashMap<TaskNumbers, f64>, chance: f64) {
        for (task, weight) in seen {
            if self.weights.len() < TASKS_MAX || self.weights.contains_key(&task) {
                *self.weights.entry(task).or_default() += weight / chance;
            } else {
                self.unlisted += weight / chance;
            }
        }
    }

    /// Returns all tasks that visited zones or waited for zone locks, sorted by visits, largest number first.
    /// The visits of all tasks add up to the estimate.
    pub(super) fn list(
        self,
        estimate: Option<HitEstimate>,
        waits: HashMap<Option<u32>, Waited>,
        watch: Option<&TaskWatch>,
    ) -> Vec<CountedTask> {
        let own = std::process::id();
        let all = self.weights.values().sum::<f64>() + self.unlisted;
        let of = |weight: f64| {
            let share = if all > 0.0 { weight / all } else { 0.0 };
            (estimate.map_or(0, |estimate| estimate.hits) as f64 * share).round() as u64
        };
        let party = |tid: u32, process: Option<u32>| {
            if process == Some(own) || tid == own {
                Party::Recorder
            } else if watch.is_some_and(|watch| watch.is_of_command(tid)) {
                Party::Command
            } else {
                Party::Rest
            }
        };
        let mut tasks: HashMap<Option<u32>, CountedTask> = HashMap::new();
        let empty = |tid, party| CountedTask { tid, party, visits: 0, waits: 0, wait_ns: 0 };
        for (task, weight) in self.weights {
            let party = party(task.tid, Some(task.process));
            let entry = tasks.entry(Some(task.tid)).or_insert_with(|| empty(Some(task.tid), party));
            entry.visits = entry.visits.saturating_add(of(weight));
        }
        for (tid, waited) in waits {
            let party = tid.map_or(Party::Rest, |tid| party(tid, None));
            let entry = tasks.entry(tid).or_insert_with(|| empty(tid, party));
            (entry.waits, entry.wait_ns) = (waited.waits, waited.wait_ns);
        }
        let mut rest = tasks.remove(&None).unwrap_or_else(|| empty(None, Party::Rest));
        rest.visits = rest.visits.saturating_add(of(self.unlisted));
        let mut tasks: Vec<_> = tasks.into_values().collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse((task.visits, task.wait_ns)), task.tid));
        for task in tasks.drain(LISTED_MAX.min(tasks.len())..) {
            rest.visits = rest.visits.saturating_add(task.visits);
            rest.waits = rest.waits.saturating_add(task.waits);
            rest.wait_ns = rest.wait_ns.saturating_add(task.wait_ns);
        }
        if rest != empty(None, Party::Rest) {
            tasks.push(rest);
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_of_all_tasks_are_the_estimate() {
        let mut visits = VisitsByTask::default();
        let task = |tid| TaskNumbers { tid, process: tid };
        visits.add(HashMap::from([(task(7), 3.0), (task(8), 1.0)]), 0.5);
        visits.add(HashMap::from([(task(8), 2.0)]), 1.0);
        let waits = HashMap::from([
            (Some(8), Waited { waits: 2, wait_ns: 50 }),
            (None, Waited { waits: 1, wait_ns: 9 }),
        ]);
        let estimate = HitEstimate { low: 1, hits: 1000, high: 2000 };
        let tasks = visits.list(Some(estimate), waits, None);
        let shown: Vec<_> = tasks.iter().map(|task| (task.tid, task.visits, task.wait_ns)).collect();
        assert_eq!(shown, [(Some(7), 600, 0), (Some(8), 400, 50), (None, 0, 9)]);
    }

    #[test]
    fn the_list_is_bounded() {
        let mut visits = VisitsByTask::default();
        let seen = (1..=LISTED_MAX as u32 + 9).map(|tid| (TaskNumbers { tid, process: tid }, 1.0));
        visits.add(seen.collect(), 1.0);
        let tasks = visits.list(Some(HitEstimate::exact(LISTED_MAX as u64 + 9)), HashMap::new(), None);
        assert_eq!(
            (tasks.len(), tasks.last().map(|rest| (rest.tid, rest.visits))),
            (LISTED_MAX + 1, Some((None, 9)))
        );
    }
}
