//! Totals of each task: allocated pages, zone visits, waits for zone locks, and pageblocks that changed their
//! migratetype or became mixed.
//!
//! Interrupts are counted separately, because the interrupted task did not cause them. The recorded command's
//! tasks are the task that the recorder's thread forked, and all descendants of this task.

use std::collections::{HashMap, HashSet};

use pageset_trace::{Decision, Event, EventKind, Party, TraceInfo};

use super::zone_lock::WaitSum;

/// Maximum number of tasks that have separate totals. All further tasks have one total together.
const TASKS_MAX: usize = 1 << 20;
/// Number of entries of the table `recent`. A task in this table is found without a search.
const RECENT: usize = 64;

/// Totals of one or more tasks. A total is also 0 if its events were not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTotals {
    /// Number of pages allocated.
    pub allocated_pages: u64,
    /// Number of refills and drains of page sets.
    pub visits: u64,
    /// Number of waits for zone locks.
    pub waits: u64,
    /// Time of the waits in nanoseconds.
    pub wait_ns: u64,
    /// Number of requests after which a whole pageblock changed its migratetype.
    pub pageblocks_changed: u64,
    /// Number of requests that took a part of a pageblock of another migratetype, so that the pageblock
    /// became mixed.
    pub pageblocks_mixed: u64,
}

impl TaskTotals {
    /// Adds the totals of `other`.
    pub const fn add(&mut self, other: &Self) {
        self.allocated_pages = self.allocated_pages.saturating_add(other.allocated_pages);
        self.visits = self.visits.saturating_add(other.visits);
        self.waits = self.waits.saturating_add(other.waits);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.pageblocks_changed = self.pageblocks_changed.saturating_add(other.pageblocks_changed);
        self.pageblocks_mixed = self.pageblocks_mixed.saturating_add(other.pageblocks_mixed);
    }

    /// Number of pageblocks that changed their migratetype or became mixed.
    #[must_use]
    pub const fn pageblocks(&self) -> u64 {
        self.pageblocks_changed.saturating_add(self.pageblocks_mixed)
    }
}

/// The totals of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskShare {
    /// The task's number.
    pub tid: u32,
    /// When the task was first seen. The kernel reuses numbers of tasks, so this time distinguishes tasks
    /// with the same number.
    pub first_ns: u64,
    /// Whether the task belongs to the recorded command, to the recorder, or to neither.
    pub party: Party,
    /// The task's totals.
    pub totals: TaskTotals,
}

/// Totals of all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Tasks with events, in the order of their first events.
    pub tasks: Vec<TaskShare>,
    /// Totals of interrupts.
    pub interrupts: TaskTotals,
    /// The totals of all tasks without separate totals, because there were too many tasks.
    pub unlisted: TaskTotals,
    /// Whether the tasks of the recorded command are known.
    pub is_command_known: bool,
}

impl Who {
    /// The sum of all totals.
    #[must_use]
    pub fn total(&self) -> TaskTotals {
        let mut total = self.interrupts;
        total.add(&self.unlisted);
        self.tasks.iter().for_each(|task| total.add(&task.totals));
        total
    }
}

/// The index of a total, which belongs to a task, to all interrupts, or to all tasks without separate totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskSlot(u32);

impl TaskSlot {
    const INTERRUPTS: Self = Self(0);
    pub(super) const UNLISTED: Self = Self(1);
    const FIRST: usize = 2;
}

/// Counts by task.
#[derive(Debug)]
pub(super) struct WhoCounter {
    who: Who,
    recorder: HashSet<u32>,
    has_command: bool,
    /// Tasks of the command, by number.
    command: HashSet<u32>,
    slots: HashMap<u32, TaskSlot>,
    /// Recently used tasks. The number of a task determines its index in this table. Most events are of few
    /// tasks.
    recent: [Option<(u32, TaskSlot)>; RECENT],
}

impl Default for WhoCounter {
    fn default() -> Self {
        Self::new(&TraceInfo::default())
    }
}

impl WhoCounter {
    pub(super) fn new(info: &TraceInfo) -> Self {
        Self {
            recorder: info.recorder_pids.iter().copied().collect(),
            has_command: !info.command.is_empty(),
            who: Who::default(),
            command: HashSet::new(),
            slots: HashMap::new(),
            recent: [None; RECENT],
        }
    }

    #[inline]
    pub(super) fn record(&mut self, event: &Event) {
        match event.kind {
            EventKind::MmPageAlloc if !event.is_failed_allocation() => {
                self.of_event(event).allocated_pages += event.block_pages();
            }
            EventKind::MmPageAllocExtfrag => {
                let is_change = event.extfrag().is_some_and(|extfrag| extfrag.change_ownership);
                let totals = self.of_event(event);
                let count =
                    if is_change { &mut totals.pageblocks_changed } else { &mut totals.pageblocks_mixed };
                *count += 1;
            }
            EventKind::SchedProcessFork => self.forked(event.pid, event.pfn as u32),
            _ => {}
        }
    }

    pub(super) fn decided(&mut self, decision: &Decision) {
        let slot = self.slot(decision.pid, decision.in_interrupt, decision.first_ns);
        self.totals(slot).visits += 1;
    }

    /// Returns the index of the total that an event counts for.
    pub(super) fn slot_of(&mut self, event: &Event) -> TaskSlot {
        self.slot(event.pid, event.in_interrupt(), event.ts_ns)
    }

    #[inline]
    fn of_event(&mut self, event: &Event) -> &mut TaskTotals {
        let slot = self.slot_of(event);
        self.totals(slot)
    }

    fn forked(&mut self, parent: u32, child: u32) {
        // An ended task may have had the same number.
        self.slots.remove(&child);
        self.recent[child as usize % RECENT] = None;
        let is_first = self.has_command && self.recorder.contains(&parent);
        if is_first || self.command.contains(&parent) {
            if self.command.len() < TASKS_MAX {
                self.command.insert(child);
            }
            self.who.is_command_known = true;
        } else {
            self.command.remove(&child);
        }
    }

    #[inline]
    fn slot(&mut self, tid: u32, in_interrupt: bool, at_ns: u64) -> TaskSlot {
        if in_interrupt {
            return TaskSlot::INTERRUPTS;
        }
        if let Some((recent, slot)) = self.recent[tid as usize % RECENT]
            && recent == tid
        {
            return slot;
        }
        let slot = self.look_up(tid, at_ns);
        self.recent[tid as usize % RECENT] = Some((tid, slot));
        slot
    }

    fn look_up(&mut self, tid: u32, at_ns: u64) -> TaskSlot {
        if let Some(slot) = self.slots.get(&tid) {
            return *slot;
        }
        if self.who.tasks.len() >= TASKS_MAX {
            return TaskSlot::UNLISTED;
        }
        let party = if self.recorder.contains(&tid) {
            Party::Recorder
        } else if self.command.contains(&tid) {
            Party::Command
        } else {
            Party::Rest
        };
        let slot = TaskSlot((self.who.tasks.len() + TaskSlot::FIRST) as u32);
        self.who.tasks.push(TaskShare { tid, first_ns: at_ns, party, totals: TaskTotals::default() });
        self.slots.insert(tid, slot);
        slot
    }

    #[inline]
    fn totals(&mut self, slot: TaskSlot) -> &mut TaskTotals {
        match slot {
            TaskSlot::INTERRUPTS => &mut self.who.interrupts,
            TaskSlot::UNLISTED => &mut self.who.unlisted,
            TaskSlot(index) => &mut self.who.tasks[index as usize - TaskSlot::FIRST].totals,
        }
    }

    pub(super) fn finish(mut self, waits: HashMap<TaskSlot, WaitSum>) -> Who {
        for (slot, waited) in waits {
            let totals = self.totals(slot);
            totals.waits = totals.waits.saturating_add(waited.waits);
            totals.wait_ns = totals.wait_ns.saturating_add(waited.wait_ns);
        }
        self.who
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Extfrag, irq_flag};

    use super::*;
    use EventKind::{MmPageAlloc, MmPageAllocExtfrag, SchedProcessFork};

    fn event(kind: EventKind, ts_ns: u64, pid: u32) -> Event {
        Event { pid, ..Event::new(kind, ts_ns, 0) }
    }

    fn fork(ts_ns: u64, parent: u32, child: u64) -> Event {
        Event { pfn: child, ..event(SchedProcessFork, ts_ns, parent) }
    }

    fn who(info: &TraceInfo, events: &[Event]) -> Who {
        let mut counter = WhoCounter::new(info);
        events.iter().for_each(|event| counter.record(event));
        counter.finish(HashMap::new())
    }

    fn recorded() -> TraceInfo {
        TraceInfo { recorder_pids: vec![5, 6], command: vec!["make".into()], ..TraceInfo::default() }
    }

    #[test]
    fn children_of_the_command_are_the_commands() {
        let alloc = |ts_ns, pid| event(MmPageAlloc, ts_ns, pid);
        let found = who(
            &recorded(),
            &[alloc(1, 100), fork(2, 5, 100), fork(3, 100, 101), alloc(4, 101), alloc(5, 5), alloc(6, 7)],
        );
        let parties: Vec<_> = found.tasks.iter().map(|task| (task.tid, task.party)).collect();
        let expected = [(100, Party::Rest), (101, Party::Command), (5, Party::Recorder), (7, Party::Rest)];
        assert_eq!(
            parties, expected,
            "the task 100 that allocated before the fork is not the forked task 100"
        );
        assert!(found.is_command_known && found.total().allocated_pages == 4);
    }

    #[test]
    fn a_number_that_is_used_again_changes_its_party() {
        let alloc = |ts_ns| event(MmPageAlloc, ts_ns, 101);
        let found =
            who(&recorded(), &[fork(1, 5, 100), fork(2, 100, 101), alloc(3), fork(4, 1, 101), alloc(5)]);
        let parties: Vec<_> = found.tasks.iter().map(|task| (task.first_ns, task.party)).collect();
        assert_eq!(parties, [(3, Party::Command), (5, Party::Rest)]);
    }

    #[test]
    fn without_a_recorder_or_a_command_nobody_knows() {
        let events = [fork(1, 5, 100), event(MmPageAlloc, 2, 100)];
        for info in [
            TraceInfo { recorder_pids: Vec::new(), ..recorded() },
            TraceInfo { command: Vec::new(), ..recorded() },
        ] {
            let found = who(&info, &events);
            assert!(!found.is_command_known && found.tasks[0].party == Party::Rest);
        }
    }

    #[test]
    fn interrupts_are_charged_to_no_task() {
        let softirq = Event { irq_flags: irq_flag::SOFTIRQ, order: 3, ..event(MmPageAlloc, 1, 9) };
        let found = who(&recorded(), &[softirq]);
        assert_eq!((found.interrupts.allocated_pages, found.tasks.len()), (8, 0));
    }

    #[test]
    fn pageblocks_change_or_become_mixed() {
        let extfrag = |change_ownership| {
            let mut event = event(MmPageAllocExtfrag, 1, 9);
            event.set_extfrag(Extfrag {
                alloc_order: 0,
                fallback_order: 9,
                alloc_migratetype: 0,
                fallback_migratetype: 1,
                change_ownership,
            });
            event
        };
        let found = who(&recorded(), &[extfrag(true), extfrag(false), extfrag(false)]);
        let totals = found.tasks[0].totals;
        assert_eq!((totals.pageblocks_changed, totals.pageblocks_mixed, totals.pageblocks()), (1, 2, 3));
    }
}
