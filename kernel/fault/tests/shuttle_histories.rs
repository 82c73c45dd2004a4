//! Tests linearizability. Several tasks operate on a few pages at the same time. There must be an order of
//! the operations that gives the same answers in a sequential model. In this sequential order, each operation
//! takes effect between its call and its return (Wing and Gong, 1993).
//!
//! An operation on a range counts as one operation on each page, as in any kernel, so the test compares each
//! page by itself. The test compares the answers of loads, stores, map, unmap, protect and fork. Reclaim and
//! collapse also run, and must have no visible effect. At the end, loads of all pages compare the final
//! state.

mod host;
#[path = "host/schedules.rs"]
mod schedules;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use host::{PAGE, TestWorld, engine, strategies};
use pageset_core::CpuId;
use pageset_fault::{Access, AddressSpace, FaultError, Huge, Options, Prot, SpaceError, Task};
use schedules::{Shuttle, check, schedules};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

type ShuttleTask = Task<TestWorld<Shuttle>>;

/// The pages in use: the last two pages of one leaf table, and the first two pages of the next leaf table.
const PAGES: std::ops::Range<u64> = 6..10;

/// An operation on one page, and its result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Load(Result<u64, FaultError>),
    Store(u64, Result<(), FaultError>),
    Map(Result<(), SpaceError>),
    Unmap,
    Protect(Prot, Result<(), SpaceError>),
}

/// An operation, the time of its call, and the time of its return.
#[derive(Clone, Copy, Debug)]
struct Event {
    page: u64,
    called: u64,
    returned: u64,
    deed: Deed,
}

/// The model's state of a page.
type State = Option<(Prot, u64)>;

/// The model's state after an operation, or `None` if the model would give another answer.
fn step(state: State, page: u64, deed: Deed) -> Option<State> {
    let va = page * PAGE;
    let refused = |access| match state {
        None => Some(FaultError::NoArea(va)),
        Some((prot, _)) if !prot.allows(access) => Some(FaultError::NotAllowed(va)),
        Some(_) => None,
    };
    match deed {
        Deed::Load(Err(error)) => (refused(Access::Read) == Some(error)).then_some(state),
        Deed::Load(Ok(value)) => {
            (refused(Access::Read).is_none() && state.map(|(_, held)| held) == Some(value)).then_some(state)
        }
        Deed::Store(_, Err(error)) => (refused(Access::Write) == Some(error)).then_some(state),
        Deed::Store(value, Ok(())) => {
            refused(Access::Write).is_none().then(|| state.map(|(prot, _)| (prot, value)))
        }
        Deed::Map(Ok(())) => state.is_none().then_some(Some((Prot::ReadWrite, 0))),
        Deed::Map(Err(_)) => state.is_some().then_some(state),
        Deed::Unmap => Some(None),
        Deed::Protect(prot, Ok(())) => state.map(|(_, value)| Some((prot, value))),
        Deed::Protect(_, Err(_)) => state.is_none().then_some(state),
    }
}

/// Whether some order of the events agrees with the model.
fn has_an_order(state: State, left: &[Event]) -> bool {
    left.is_empty()
        || (0..left.len()).any(|first| {
            let event = left[first];
            let is_possible = left.iter().all(|other| other.returned >= event.called);
            is_possible
                && step(state, event.page, event.deed).is_some_and(|state| {
                    let rest: Vec<_> = left
                        .iter()
                        .enumerate()
                        .filter(|(index, _)| *index != first)
                        .map(|(_, event)| *event)
                        .collect();
                    has_an_order(state, &rest)
                })
        })
}

/// The history of operations, which all tasks append to.
#[derive(Default)]
struct Record {
    clock: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Record {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, pages: impl IntoIterator<Item = u64>, called: u64, deed: Deed) {
        let returned = self.now();
        let events = pages.into_iter().map(|page| Event { page, called, returned, deed });
        self.events.lock().expect("no panic").extend(events);
    }

    fn load(&self, task: &mut ShuttleTask, page: u64, called: u64) {
        let engine = Arc::clone(task.space().engine());
        let value = task.access(page * PAGE, Access::Read, |found| engine.world().memory.load(found));
        self.note([page], called, Deed::Load(value));
    }

    /// Makes one random operation.
    fn act(&self, task: &mut ShuttleTask, stamp: u64) {
        let mut rng = thread_rng();
        let page = rng.gen_range(PAGES.start..PAGES.end);
        let last = rng.gen_range(page..PAGES.end);
        let (pages, range) = (page..last + 1, page * PAGE..(last + 1) * PAGE);
        let called = self.now();
        match rng.gen_range(0..14) {
            0..=2 => self.load(task, page, called),
            3..=6 => {
                let engine = Arc::clone(task.space().engine());
                let stored = task
                    .access(page * PAGE, Access::Write, |found| engine.world().memory.store(found, stamp));
                self.note([page], called, Deed::Store(stamp, stored));
            }
            7 => {
                // Map one page at a time, because the answer for each page depends on whether it was mapped
                // before.
                let mapped = task.map(page * PAGE..(page + 1) * PAGE, Prot::ReadWrite);
                self.note([page], called, Deed::Map(mapped));
            }
            8 => {
                task.unmap(range).expect("a range of pages");
                self.note(pages, called, Deed::Unmap);
            }
            9 | 10 => {
                let prot = [Prot::None, Prot::Read, Prot::ReadWrite][rng.gen_range(0..3)];
                let done = task.protect(page * PAGE..(page + 1) * PAGE, prot);
                self.note([page], called, Deed::Protect(prot, done));
            }
            11 => drop(task.reclaim(page * PAGE)),
            12 => drop(task.collapse(page * PAGE)),
            _ => {
                let child = task.fork().expect("memory");
                let returned = self.now();
                let mut other = Task::new(&child, task.cpu()).expect("a task is free");
                for page in PAGES {
                    let engine = Arc::clone(child.engine());
                    let value =
                        other.access(page * PAGE, Access::Read, |found| engine.world().memory.load(found));
                    let deed = Deed::Load(value);
                    self.events.lock().expect("no panic").push(Event { page, called, returned, deed });
                }
            }
        }
    }
}

fn history(options: Options, tasks: u32, deeds: u64) {
    let engine = engine::<Shuttle>(tasks);
    let space = AddressSpace::new(&engine, options).expect("memory");
    let record = Arc::new(Record::default());
    let begin = 4 * PAGE..12 * PAGE;
    Task::new(&space, CpuId(0)).expect("a task is free").map(begin, Prot::ReadWrite).expect("free");
    let threads: Vec<_> = (0..tasks)
        .map(|cpu| {
            let (space, record) = (Arc::clone(&space), Arc::clone(&record));
            thread::spawn(move || {
                let mut task = Task::new(&space, CpuId(cpu)).expect("a task is free");
                (1..=deeds).for_each(|deed| record.act(&mut task, 100 * u64::from(cpu + 1) + deed));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut task = Task::new(&space, CpuId(0)).expect("a task is free");
    for page in PAGES {
        let called = record.now();
        record.load(&mut task, page, called);
    }
    drop(task);
    let events = record.events.lock().expect("no panic");
    for page in PAGES {
        let of_page: Vec<_> = events.iter().filter(|event| event.page == page).copied().collect();
        assert!(has_an_order(Some((Prot::ReadWrite, 0)), &of_page), "{options:?}: no order for {of_page:#?}");
    }
    engine.check(&[&space]).expect("the invariants");
    drop(space);
    engine.check(&[]).expect("the invariants");
    assert_eq!(engine.world().memory.slots_in_use(), 0);
}

#[test]
fn every_history_has_an_order() {
    let variants = |strategy| {
        let plain = Options::new(strategy);
        [
            plain,
            Options { huge: Huge::Always, ..plain },
            Options { gang_order: 1, prefault_order: 1, ..plain },
        ]
    };
    let strategies = strategies().into_iter().filter(|strategy| strategy.areas_may_change());
    let cases: Vec<_> = strategies.flat_map(variants).collect();
    let schedules = schedules(cases.len(), 40);
    for options in cases {
        println!("{options:?}");
        check(schedules, move || history(options, 2, 5));
        check(schedules / 4, move || history(options, 3, 3));
    }
}

#[test]
fn a_history_without_an_order_is_found() {
    let event = |called, returned, deed| Event { page: 6, called, returned, deed };
    let lost = [event(0, 1, Deed::Store(5, Ok(()))), event(2, 3, Deed::Load(Ok(0)))];
    let overlapping = [event(0, 3, Deed::Store(5, Ok(()))), event(1, 2, Deed::Load(Ok(0)))];
    assert!(!has_an_order(Some((Prot::ReadWrite, 0)), &lost));
    assert!(has_an_order(Some((Prot::ReadWrite, 0)), &overlapping));
    assert!(!has_an_order(None, &overlapping));
}
