//! kbuild: the allocations and frees of pages that `make -j N` causes. Short processes run one after another.
//! Each process faults in its memory, opens and writes files, and frees all of its memory when it ends (spec
//! fault.md §4.3).

use std::collections::VecDeque;
use std::sync::Arc;

use pageset_core::{MigrateType, Order};

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};
use crate::slab::{CacheId, LIST_NS, Object, Slabs};
use crate::target::{Block, ChannelId, Fill, Message, Received, Target};

const COMPILER_PAGES: Parameter = Parameter {
    key: "compiler_pages",
    default: 1000,
    min: 1,
    meaning: "anonymous pages of the smallest compiler; the largest has 50 times as many, most are small",
    source: "spec fault.md §4.3: 1000 to 50000 per cc1",
};
/// Memory of the largest compiler process, divided by the memory of the smallest compiler process. Source:
/// spec fault.md §4.3, 50000 divided by 1000.
const LARGEST_BY_SMALLEST: u64 = 50;
/// Number of times that the size of the smallest compiler process must be doubled to reach the size of the
/// largest compiler process, rounded up.
const DOUBLINGS: u64 = LARGEST_BY_SMALLEST.ilog2() as u64 + 1;
const SMALL_PAGES: Parameter = Parameter {
    key: "small_pages",
    default: 400,
    min: 2,
    meaning: "average number of anonymous pages of a process that is no compiler (make, sh, gcc, as)",
    source: "guess",
};
/// User time between two faults of a process, measured on an EPYC with 2 CPUs. The user time between two
/// faults is longer on the slower processors of the published studies. For gcc -O2 on larger files, the user
/// time is longer, too: 51 to 117 us for each minor fault.
const PAGE_NS: Parameter = Parameter {
    key: "page_ns",
    default: 15_000,
    min: 0,
    meaning: "time that a process computes for each page that it faults in, in ns",
    source: "the recording k618_2c_make_lua_j4: 3.587 s of user time (side file), 236898 movable pages (`pageset stat`)",
};

const CACHED: Parameter = Parameter {
    key: "cached_pages",
    default: 8192,
    min: 1,
    meaning: "pages of output, and new files, that each CPU keeps before it frees the oldest",
    source: "guess: keeps memory bounded",
};

const CGROUPS: Parameter = Parameter {
    key: "cgroups",
    default: 1,
    min: 1,
    meaning: "builds that run at once, each in its own memory cgroup with its own LRU lists",
    source: "one build",
};

/// Number of processes of one compilation, without the compiler itself. Guess: one each of make, sh, gcc and
/// as, which spec fault.md §4.3 names.
const SMALL_PROCESSES: u32 = 4;
/// Number of faults between two system calls that allocate memory for a short time. Guess.
const FAULTS_PER_CALL: u64 = 64;
/// Time from the end of a process until its last objects are freed, all at once. The kernel keeps these
/// objects for a grace period (RCU), because readers without a lock may still use the objects. Guess.
const GRACE_NS: u64 = 10_000_000;
/// Percentage of the processes that end on another CPU than their first CPU. Estimated from
/// `pageset stat` on data/traces/k618_2c_make_lua_j4.pgtrace: 4.7 % of the freed blocks were allocated by
/// another CPU. The estimate of 5 % is rough, because the recording counts blocks and not processes, and does
/// not show processes that moved to another CPU and back.
const MOVED_PERCENT: u64 = 5;
/// Number of pages of a kernel stack. The kernel allocates the pages of a stack one by one. Source: spec
/// fault.md §4.3, "4 x order-0 vmalloc stack pages".
const STACK_PAGES: usize = 4;
/// Number of stacks of dead processes that a CPU keeps for new processes. Source: spec fault.md §4.3, "2
/// cached stacks per CPU".
const STACKS_KEPT: usize = 2;
/// Number of page tables of a process for upper levels, stack and libraries. The leaf tables of the process's
/// heap are not included. Guess.
const OTHER_TABLES: u32 = 9;
/// The order of the top level of a process's page tables. Source: spec fault.md §4, "PGD order 0 or 1". The
/// order is 1 if the kernel isolates page tables.
const PGD_ORDER: u8 = 1;
/// Number of pages of the file that a process writes. The file stays in the page cache. Guess.
const OUTPUT_PAGES: u64 = 12;
/// Number of mappings of a process. Guess: an executable, its libraries, heap, stack.
const MAPPINGS: usize = 30;
/// Number of files that a process opens for the first time. Each newly opened file needs a new directory
/// entry and a new inode. Guess.
const NEW_FILES: usize = 6;

/// The benchmark kbuild: `make -j N`, with one compilation on each CPU.
pub(super) const KBUILD: Workload = Workload {
    name: "kbuild",
    summary: "make -j N of a kernel: short processes that fault in memory and free all memory when they end",
    source: "spec fault.md §4.3",
    unit: "processes",
    duration_ms: (400, 1000),
    parameters: &[
        COMPILER_PAGES,
        SMALL_PAGES,
        PAGE_NS,
        CACHED,
        CGROUPS,
        FAULT_NS,
        UNMAP_NS,
        Parameter { default: 15, ..lru::HOLD_NS },
        LIST_NS,
    ],
    build,
};

/// The kernel objects of a process: for each kind, the size and the number of objects. The sizes of
/// these kernel structures are guesses, near the sizes in Linux 6.x.
const KINDS: [(u32, usize); 7] = [
    (9_792, 1),          // task
    (1_408, 1),          // address space
    (2_112, 1),          // signal handlers
    (1_152, 1),          // signals
    (704, 1),            // open files
    (192, MAPPINGS),     // mappings
    (256, 2 * MAPPINGS), // open files, credentials, reverse mappings
];
/// Sizes of reclaimable objects: a directory entry and an inode. Guesses.
const FILE_KINDS: [u32; 2] = [192, 640];
/// Buffers that live for one system call: names, arguments, pipe rings. Guess.
const BUFFER_KINDS: [u32; 3] = [4096, 1024, 8192];

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cgroups(&mut plan, setup, setup.get(&CGROUPS));
    let mut slabs = Slabs::new(setup);
    let mut cache = |size, migratetype| slabs.cache(&mut plan, size, migratetype);
    let kinds = KINDS.map(|(size, count)| (cache(size, MigrateType::Unmovable), count));
    let files = FILE_KINDS.map(|size| cache(size, MigrateType::Reclaimable));
    let buffers = BUFFER_KINDS.map(|size| cache(size, MigrateType::Unmovable));
    let slabs = Arc::new(slabs.used_by(setup.cpus as usize));
    let graves: Vec<_> = setup.each_cpu().map(|_| plan.channel(GRAVE_MAX, setup.cpus)).collect();
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let slot = Slot {
            slabs: Arc::clone(&slabs),
            kinds,
            files,
            buffers,
            memory: Mapping::new(setup, Backing::Anonymous, lru, None),
            graves: graves.clone(),
            own_grave: graves[cpu.index()],
            stacks: Vec::new(),
            output: VecDeque::new(),
            kept_files: VecDeque::new(),
            deferred: VecDeque::new(),
            cached_max: setup.get(&CACHED) as usize,
            page_ns: setup.get(&PAGE_NS),
            pages: (setup.get(&COMPILER_PAGES), setup.get(&SMALL_PAGES)),
        };
        plan.work(cpu, move |target| slot.run(target));
    }
    Ok(plan)
}

/// Largest number of dead processes whose last memory waits on one CPU until their parents free this memory.
/// Guess.
const GRAVE_MAX: u32 = 16;

/// One of the N jobs that make runs at a time: a CPU, and the processes that run on this CPU one after
/// another.
struct Slot {
    slabs: Arc<Slabs>,
    kinds: [(CacheId, usize); KINDS.len()],
    files: [CacheId; FILE_KINDS.len()],
    buffers: [CacheId; BUFFER_KINDS.len()],
    memory: Mapping,
    /// Channels to the parents of dead processes. A parent frees the last memory of its child.
    graves: Vec<ChannelId>,
    own_grave: ChannelId,
    stacks: Vec<Vec<Block>>,
    output: VecDeque<Block>,
    kept_files: VecDeque<Object>,
    /// Lists of objects of dead processes, each with the time in ns at which the CPU frees the objects of the
    /// list.
    deferred: VecDeque<(u64, Vec<Object>)>,
    cached_max: usize,
    page_ns: u64,
    pages: (u64, u64),
}

impl Slot {
    fn run(mut self, target: &mut dyn Target) {
        // Each CPU begins at a random point of its build, as if the build had run for a long time.
        let mut turn = (target.random() % u64::from(SMALL_PROCESSES + 1)) as u32;
        while target.running() {
            let pages = if turn == 0 { self.compiler_pages(target) } else { self.small_pages(target) };
            self.live_and_die(target, pages);
            turn = (turn + 1) % (SMALL_PROCESSES + 1);
            target.score(1);
            self.reap(target);
        }
        self.end(target);
    }

    /// Draws the number of pages of a compiler process. Each range of sizes goes from a size to twice this
    /// size. The function draws a range, and then a size within the range. All ranges are equally likely, and
    /// all sizes within a range are equally likely.
    fn compiler_pages(&self, target: &mut dyn Target) -> u64 {
        let smallest = self.pages.0;
        let doubled = smallest << (target.random() % DOUBLINGS);
        (doubled + target.random() % doubled).min(smallest * LARGEST_BY_SMALLEST)
    }

    /// Draws the number of pages of a small process: between 0.5 and 1.5 times the average.
    fn small_pages(&self, target: &mut dyn Target) -> u64 {
        let average = self.pages.1;
        average / 2 + target.random() % average
    }

    fn live_and_die(&mut self, target: &mut dyn Target, pages: u64) {
        let mut kept = Message::default();
        // Fork and exec allocate a stack, kernel structures and page tables.
        let stack = self.stack(target);
        for (kind, count) in self.kinds {
            kept.objects.extend((0..count).filter_map(|_| self.slabs.take(target, kind).ok()));
        }
        let order = Order::new(PGD_ORDER).unwrap_or(Order::ZERO);
        let pgd = target.alloc(order, MigrateType::Unmovable, Fill::Zeroed).ok().map(|pfn| (pfn, order));
        (0..OTHER_TABLES).for_each(|_| self.memory.add_table(target));
        self.open_files(target);
        for fault in 0..pages {
            if !target.running() {
                break;
            }
            target.compute_in_user_mode(self.page_ns);
            self.memory.fault(target);
            if fault % FAULTS_PER_CALL == 0 {
                self.call(target);
                let now_ns = target.now_ns();
                self.free_deferred(target, now_ns);
            }
        }
        self.write_output(target);
        // When a process exits, the kernel frees the pages of the process in lists, then its page tables, and
        // one grace period later its kernel structures.
        let is_moved = target.random() % 100 < MOVED_PERCENT;
        let mut left = Vec::new();
        if is_moved {
            left = self.memory.unmap_for_another(target);
        } else {
            self.memory.unmap(target);
        }
        pgd.into_iter().for_each(|block| target.free(block));
        // The parent frees the first object of the dead process (the task). This CPU frees the other objects
        // after the grace period.
        let others = kept.objects.split_off(kept.objects.len().min(1));
        self.deferred.push_back((target.now_ns() + GRACE_NS, others));
        left.extend(self.stack_kept(stack));
        self.bury(target, Message { blocks: left, ..kept });
    }

    /// Frees objects whose grace periods have ended.
    fn free_deferred(&mut self, target: &mut dyn Target, now_ns: u64) {
        while self.deferred.front().is_some_and(|(end_ns, _)| *end_ns <= now_ns) {
            let objects = self.deferred.pop_front().into_iter().flat_map(|(_, objects)| objects);
            objects.for_each(|object| self.slabs.give(target, object));
        }
    }

    /// Returns a stack for a new process: the stack of a dead process that the CPU keeps, or new single pages
    /// if the CPU keeps no stack.
    fn stack(&mut self, target: &mut dyn Target) -> Vec<Block> {
        self.stacks.pop().unwrap_or_else(|| {
            let page = |target: &mut dyn Target| {
                target.alloc(Order::ZERO, MigrateType::Unmovable, Fill::Zeroed).ok()
            };
            (0..STACK_PAGES).filter_map(|_| page(target)).map(|pfn| (pfn, Order::ZERO)).collect()
        })
    }

    /// Does a system call that allocates buffers and frees them at its end.
    fn call(&self, target: &mut dyn Target) {
        let buffers = self.buffers.map(|buffer| self.slabs.take(target, buffer));
        buffers.into_iter().flatten().for_each(|object| self.slabs.give(target, object));
    }

    fn open_files(&mut self, target: &mut dyn Target) {
        for _ in 0..NEW_FILES {
            for kind in self.files {
                self.kept_files.extend(self.slabs.take(target, kind));
            }
        }
        while self.kept_files.len() > self.cached_max {
            self.kept_files.pop_front().into_iter().for_each(|object| self.slabs.give(target, object));
        }
    }

    fn write_output(&mut self, target: &mut dyn Target) {
        for _ in 0..OUTPUT_PAGES {
            let page = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined);
            self.output.extend(page.map(|pfn| (pfn, Order::ZERO)));
        }
        while self.output.len() > self.cached_max {
            self.output.pop_front().into_iter().for_each(|block| target.free(block));
        }
    }

    /// Keeps the stack of a dead process for a new process. If the CPU already keeps enough stacks, returns
    /// the pages of the stack for freeing.
    fn stack_kept(&mut self, stack: Vec<Block>) -> Vec<Block> {
        if self.stacks.len() >= STACKS_KEPT {
            return stack;
        }
        self.stacks.push(stack);
        Vec::new()
    }

    /// Sends the last memory of a dead process to the process's parent, on a random CPU. The parent frees
    /// this memory.
    fn bury(&self, target: &mut dyn Target, rest: Message) {
        let parent = self.graves[(target.random() % self.graves.len() as u64) as usize];
        if let Err(rest) = target.try_send(parent, rest) {
            self.slabs.release(target, rest);
        }
    }

    fn reap(&self, target: &mut dyn Target) {
        while let Received::Message(dead) = target.try_receive(self.own_grave) {
            self.slabs.release(target, dead);
        }
    }

    fn end(mut self, target: &mut dyn Target) {
        self.graves.iter().for_each(|grave| target.close(*grave));
        while let Some(dead) = target.receive(self.own_grave) {
            self.slabs.release(target, dead);
        }
        self.free_deferred(target, u64::MAX);
        self.kept_files.drain(..).for_each(|object| self.slabs.give(target, object));
        self.stacks.drain(..).flatten().chain(self.output.drain(..)).for_each(|block| target.free(block));
        self.slabs.leave(target);
    }
}
