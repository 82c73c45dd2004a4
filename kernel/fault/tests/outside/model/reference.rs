//! The simple model has the pages of address spaces with their rights and contents. The engine must give the
//! model's answers. The engine may also answer "out of memory" if memory was short. An engine that answers
//! "out of memory" must have changed no area and no contents.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pageset_core::CpuId;
use pageset_fault::{Access, AddressSpace, Backing, FaultError, Geometry, Prot, SpaceError, Task};

use super::operation::{Operation, Program, Span};
use crate::host::{TestMachine, TestWorld, Threads, machine_with};

type World = TestWorld<Threads>;

/// The largest number of address spaces that exist at one time.
const SPACES_MAX: usize = 4;

/// The model of an address space: its pages by their numbers.
type Pages = BTreeMap<u64, Page>;

#[derive(Clone, Copy, Debug)]
struct Page {
    prot: Prot,
    value: u64,
}

struct Space {
    engine: Arc<AddressSpace<World>>,
    pages: Pages,
}

/// A task of the engine, and the number of the task's address space.
struct Runner {
    engine: Task<World>,
    space: u32,
}

/// The engine and the model, which run side by side.
struct Play {
    program: Program,
    engine: Arc<TestMachine<Threads>>,
    spaces: Vec<Space>,
    tasks: Vec<Runner>,
    /// The value that the next store writes.
    stamp: u64,
}

/// Runs a program to its end, and checks the invariants.
pub(crate) fn play(program: &Program) {
    let engine = machine_with(program.config.cpus, |config| *config = program.config);
    let mut play = Play { program: program.clone(), engine, spaces: Vec::new(), tasks: Vec::new(), stamp: 1 };
    play.new_space(false);
    play.new_task(0, 0);
    for operation in &program.operations {
        play.step(*operation);
    }
    play.end();
}

impl Play {
    fn step(&mut self, operation: Operation) {
        let failures = self.failures();
        match operation {
            Operation::NewSpace { options } => self.new_space(options),
            Operation::EndSpace { space } => self.end_space(space),
            Operation::NewTask { space, cpu } => self.new_task(space, cpu),
            Operation::FailAfter { allocations } => {
                let count = if allocations < 128 { i64::from(allocations) } else { -1 };
                self.engine.world().frames.fail_after(count);
            }
            Operation::KeepContents { keeps } => self.engine.world().memory.keep_contents(keeps),
            Operation::Check => self.check(),
            _ if self.tasks.is_empty() => {}
            Operation::EndTask { task } => {
                let task = self.task(task);
                let ended = self.tasks.swap_remove(task);
                assert_eq!(ended.engine.stats().refused_frees, 0);
            }
            Operation::Map { task, at, prot } => self.map(self.task(task), at, prot),
            Operation::Unmap { task, at } => self.unmap(self.task(task), at, failures),
            Operation::Protect { task, at, prot } => self.protect(self.task(task), at, prot, failures),
            Operation::Load { task, page } => self.load(self.task(task), page, failures),
            Operation::Store { task, page } => self.store(self.task(task), page, failures),
            Operation::Fault { task, page, access } => self.fault(self.task(task), page, access, failures),
            Operation::FaultIn { task, space, page, access } => {
                self.fault_in(self.task(task), space, page, access, failures);
            }
            Operation::Fork { task } => self.fork(self.task(task), failures),
            Operation::Collapse { task, page } => self.collapse(self.task(task), page, failures),
            Operation::Reclaim { task, page } => self.reclaim(self.task(task), page),
            Operation::Schedule { task } => {
                let task = self.task(task);
                self.tasks[task].engine.schedule();
            }
            Operation::Prezero { task, frames } => {
                let task = self.task(task);
                let cleared = self.tasks[task].engine.prezero(usize::from(frames));
                assert!(cleared <= usize::from(frames).min(self.program.config.prezeroed as usize));
            }
        }
    }

    fn task(&self, task: u8) -> usize {
        usize::from(task) % self.tasks.len()
    }

    /// The space of a task.
    fn space(&mut self, task: usize) -> &mut Space {
        let id = self.tasks[task].space;
        self.spaces
            .iter_mut()
            .find(|space| space.engine.id() == id)
            .expect("an address space outlives its tasks")
    }

    fn geometry(&self) -> Geometry {
        self.program.config.geometry
    }

    /// The number of the page that an operation's byte stands for. Bytes below 192 give pages near the
    /// beginning of the address space, and larger bytes give pages around the end.
    fn page(&self, page: u8) -> u64 {
        let pages = self.geometry().end() >> self.geometry().page_shift();
        match u64::from(page) {
            near @ 0..192 => near % 64 % pages,
            far => (pages + 2).saturating_sub(far - 191),
        }
    }

    fn address(&self, page: u8) -> u64 {
        (self.page(page) << self.geometry().page_shift()) + u64::from(page % 2)
    }

    fn range(&self, at: Span) -> Range<u64> {
        let (first, shift) = (self.page(at.page), self.geometry().page_shift());
        let end = first + u64::from(at.pages);
        (first << shift) + u64::from(at.skew.0)..(end << shift) + u64::from(at.skew.1)
    }

    /// The numbers of the pages in a range, or `None` if the range is invalid.
    fn pages(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let geometry = self.geometry();
        let is_page = |va: u64| va.is_multiple_of(geometry.page_bytes());
        let is_sane = range.start < range.end
            && range.end <= geometry.end()
            && is_page(range.start)
            && is_page(range.end);
        is_sane.then(|| range.start >> geometry.page_shift()..range.end >> geometry.page_shift())
    }

    fn failures(&self) -> u64 {
        self.engine.world().frames.failures()
    }

    /// Asserts that memory was short: the allocator has refused a frame, or the engine has few tables.
    fn assert_is_short(&self, failures: u64) {
        assert!(
            self.failures() > failures || self.program.config.tables <= 32,
            "the engine says that memory is short, and it is not"
        );
    }

    fn new_space(&mut self, second: bool) {
        if self.spaces.len() == SPACES_MAX {
            return;
        }
        let failures = self.failures();
        match AddressSpace::new(&self.engine, self.program.options[usize::from(second)]) {
            Ok(engine) => self.spaces.push(Space { engine, pages: Pages::new() }),
            Err(error) => {
                assert_eq!(error, SpaceError::OutOfMemory);
                self.assert_is_short(failures);
            }
        }
    }

    fn end_space(&mut self, space: u8) {
        if self.spaces.is_empty() {
            return;
        }
        let ended = self.spaces.swap_remove(usize::from(space) % self.spaces.len());
        self.tasks.retain(|task| task.space != ended.engine.id());
    }

    fn new_task(&mut self, space: u8, cpu: u8) {
        if self.spaces.is_empty() {
            return;
        }
        let space = &self.spaces[usize::from(space) % self.spaces.len()];
        let cpu = u32::from(cpu) % 3;
        let expected = if cpu >= self.program.config.cpus {
            Some(SpaceError::BadCpu)
        } else {
            (self.tasks.len() == self.program.config.tasks as usize).then_some(SpaceError::TooManyTasks)
        };
        let task = Task::new(&space.engine, CpuId(cpu));
        assert_eq!(task.as_ref().err(), expected.as_ref());
        self.tasks.extend(task.map(|engine| Runner { space: engine.space().id(), engine }));
    }

    fn map(&mut self, task: usize, at: Span, prot: Prot) {
        let range = self.range(at);
        let pages = self.pages(&range);
        let answer = self.tasks[task].engine.map(range, prot);
        let space = self.space(task);
        let Some(pages) = pages else { return assert_eq!(answer, Err(SpaceError::BadRange)) };
        if space.pages.range(pages.clone()).next().is_some() {
            return assert_eq!(answer, Err(SpaceError::Occupied));
        }
        assert_eq!(answer, Ok(()));
        space.pages.extend(pages.map(|page| (page, Page { prot, value: 0 })));
    }

    fn unmap(&mut self, task: usize, at: Span, failures: u64) {
        let range = self.range(at);
        let pages = self.pages(&range);
        let answer = self.tasks[task].engine.unmap(range);
        let Some(pages) = pages else { return assert_eq!(answer, Err(SpaceError::BadRange)) };
        if answer == Err(SpaceError::OutOfMemory) {
            return self.assert_is_short(failures);
        }
        assert_eq!(answer, Ok(()));
        self.space(task).pages.retain(|page, _| !pages.contains(page));
    }

    fn protect(&mut self, task: usize, at: Span, prot: Prot, failures: u64) {
        let range = self.range(at);
        let pages = self.pages(&range);
        let answer = self.tasks[task].engine.protect(range, prot);
        let Some(pages) = pages else { return assert_eq!(answer, Err(SpaceError::BadRange)) };
        if answer == Err(SpaceError::OutOfMemory) {
            return self.assert_is_short(failures);
        }
        let held = &mut self.space(task).pages;
        if held.range(pages.clone()).count() as u64 != pages.end - pages.start {
            return assert_eq!(answer, Err(SpaceError::NoArea));
        }
        assert_eq!(answer, Ok(()));
        held.range_mut(pages).for_each(|(_, page)| page.prot = prot);
    }

    /// The expected result of an access to a page: its contents, or an error.
    fn expected(&self, pages: &Pages, va: u64, access: Access) -> Result<u64, FaultError> {
        match pages.get(&(va >> self.geometry().page_shift())) {
            None => Err(FaultError::NoArea(va)),
            Some(page) if !page.prot.allows(access) => Err(FaultError::NotAllowed(va)),
            Some(page) => Ok(page.value),
        }
    }

    fn assert_answer(
        &self,
        answer: Result<u64, FaultError>,
        expected: Result<u64, FaultError>,
        failures: u64,
    ) {
        if let (Err(FaultError::OutOfMemory(_)), Ok(_)) = (answer, expected) {
            return self.assert_is_short(failures);
        }
        assert_eq!(answer, expected);
    }

    fn load(&mut self, task: usize, page: u8, failures: u64) {
        let (va, engine) = (self.address(page), Arc::clone(&self.engine));
        let read = |page| engine.world().memory.load(page);
        let answer = self.tasks[task].engine.access(va, Access::Read, read);
        let pages = self.space(task).pages.clone();
        self.assert_answer(answer, self.expected(&pages, va, Access::Read), failures);
    }

    fn store(&mut self, task: usize, page: u8, failures: u64) {
        let (va, engine, stamp) = (self.address(page), Arc::clone(&self.engine), self.stamp);
        self.stamp += 1;
        let mut before = 0;
        let write = |page| {
            before = engine.world().memory.load(page);
            engine.world().memory.store(page, stamp);
        };
        let answer = self.tasks[task].engine.access(va, Access::Write, write).map(|()| before);
        let pages = self.space(task).pages.clone();
        self.assert_answer(answer, self.expected(&pages, va, Access::Write), failures);
        if answer.is_ok() {
            let page = self.page(page);
            self.space(task).pages.get_mut(&page).expect("it was allowed").value = stamp;
        }
    }

    fn fault(&mut self, task: usize, page: u8, access: Access, failures: u64) {
        let va = self.address(page);
        let answer = self.tasks[task].engine.fault(va, access);
        let pages = self.space(task).pages.clone();
        self.assert_backing(answer, &pages, va, access, failures);
    }

    fn fault_in(&mut self, task: usize, space: u8, page: u8, access: Access, failures: u64) {
        let va = self.address(page);
        let other = &self.spaces[usize::from(space) % self.spaces.len()];
        let answer = self.tasks[task].engine.fault_in(&other.engine, va, access);
        self.assert_backing(answer, &other.pages, va, access, failures);
    }

    fn assert_backing(
        &self,
        answer: Result<Backing, FaultError>,
        pages: &Pages,
        va: u64,
        access: Access,
        failures: u64,
    ) {
        if access == Access::Write {
            assert_ne!(answer, Ok(Backing::ZeroPage), "the zero page cannot be written");
        }
        let answer = answer.map(|backing| self.engine.world().memory.load(backing));
        self.assert_answer(answer, self.expected(pages, va, access), failures);
    }

    fn fork(&mut self, task: usize, failures: u64) {
        if self.spaces.len() == SPACES_MAX {
            return;
        }
        match self.tasks[task].engine.fork() {
            Ok(engine) => {
                let pages = self.space(task).pages.clone();
                self.spaces.push(Space { engine, pages });
            }
            Err(error) => {
                assert_eq!(error, SpaceError::OutOfMemory);
                self.assert_is_short(failures);
            }
        }
    }

    fn collapse(&mut self, task: usize, page: u8, failures: u64) {
        let (va, geometry) = (self.address(page), self.geometry());
        let answer = self.tasks[task].engine.collapse(va);
        if geometry.huge_order().is_none() {
            return assert_eq!(answer, Err(SpaceError::NoHugePages));
        }
        match answer {
            // The collapse succeeded, so one area must cover the leaf table's whole range.
            Ok(()) => {
                let first = self.page(page) / u64::from(geometry.entries()) * u64::from(geometry.entries());
                let pages = &self.space(task).pages;
                let prot = pages[&first].prot;
                let span = first..first + u64::from(geometry.entries());
                assert!(prot != Prot::None && span.clone().all(|page| pages[&page].prot == prot));
            }
            Err(SpaceError::OutOfMemory) => self.assert_is_short(failures),
            Err(error) => assert_eq!(error, SpaceError::NotEligible),
        }
    }

    fn reclaim(&mut self, task: usize, page: u8) {
        let (va, number) = (self.address(page), self.page(page));
        let keeps = self.engine.world().memory.keeps_contents();
        match self.tasks[task].engine.reclaim(va) {
            Ok(()) => assert!(keeps && self.space(task).pages.contains_key(&number)),
            Err(SpaceError::NoSwap) => assert!(!keeps && self.space(task).pages.contains_key(&number)),
            Err(error) => assert_eq!(error, SpaceError::NotEligible),
        }
    }

    /// Ends all tasks and checks the invariants.
    fn check(&mut self) {
        for task in self.tasks.drain(..) {
            assert_eq!(task.engine.stats().refused_frees, 0);
        }
        let spaces: Vec<_> = self.spaces.iter().map(|space| &space.engine).collect();
        self.engine.check(&spaces).unwrap_or_else(|violation| panic!("{violation}"));
    }

    /// Checks the invariants and compares all contents with the model. After the comparison, drops all tasks
    /// and address spaces, and checks that no frame is in use.
    fn end(mut self) {
        self.check();
        self.engine.world().frames.fail_after(-1);
        for index in 0..self.spaces.len() {
            self.new_task(index as u8, 0);
            let pages: Vec<_> = self.spaces[index].pages.keys().copied().collect();
            for page in pages {
                let failures = self.failures();
                let va = page << self.geometry().page_shift();
                let engine = Arc::clone(&self.engine);
                let read = |page| engine.world().memory.load(page);
                let answer = self.tasks[0].engine.access(va, Access::Read, read);
                let expected = self.expected(&self.spaces[index].pages, va, Access::Read);
                self.assert_answer(answer, expected, failures);
            }
            self.tasks.clear();
        }
        self.check();
        self.spaces.clear();
        self.check();
        assert_eq!(self.engine.world().memory.slots_in_use(), 0);
    }
}
