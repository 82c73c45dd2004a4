//! `pageset-fault` handles the page faults, and the processor walks its leaf tables. All CPUs share one
//! address space. The CPUs write to parts of their own and to a common part, and unmap them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ostd::cpu::{CpuId as OstdCpu, CpuSet, num_cpus};
use ostd::mm::fault::inject_user_page_fault_handler;
use ostd::mm::tlb::TlbFlushOp;
use ostd::mm::{
    CachePolicy, FallibleVmRead, FallibleVmWrite, FrameAllocOptions, PAGE_SIZE, PageFlags, PageProperty,
    VmReader, VmSpace, VmWriter,
};
use ostd::prelude::*;
use ostd::smp::inter_processor_call;
use ostd::sync::SpinLock;
use ostd::task::disable_preempt;
use pageset_core::{CpuId, FreeError, Order, Pfn, Platform};
use pageset_fault::{
    Access, AddressSpace, Engine, EngineConfig, FrameSource, FrameUse, Geometry, Memory, Options, Prot,
    Task, World,
};
use pageset_ostd::SpinLock as RawSpinLock;

use super::Test;
use crate::hardware::{self, Directory, LEAF_BYTES};
use crate::{crew, frames};

/// A lock per leaf table, mmap_sem, atomic counters.
pub(crate) const LOCKS: Test =
    Test { name: "fault-engine-P1,V1,R1", counts: "pages", prepare: || prepare("P1,V1,R1"), run, finish };
/// Compare-exchange of words, an epoch, a counter per CPU.
pub(crate) const EXCHANGES: Test =
    Test { name: "fault-engine-P2,V7,R3", counts: "pages", prepare: || prepare("P2,V7,R3"), run, finish };

/// A GiB of addresses. Its first leaf table belongs to OSTD.
pub(crate) const START: usize = 2 << 30;
const ROUNDS: u64 = 8;
/// The numbers of pages of each CPU and of common pages.
const OWN_PAGES: usize = 1024;
const SHARED_PAGES: usize = 512;

struct Guest {
    strategy: &'static str,
    vm: Arc<VmSpace>,
    engine: Arc<Engine<Processor>>,
    space: Arc<AddressSpace<Processor>>,
    tasks: Vec<SpinLock<Task<Processor>>>,
}

static GUEST: SpinLock<Option<Arc<Guest>>> = SpinLock::new(None);

fn guest() -> Arc<Guest> {
    GUEST.lock().clone().expect("the test runs")
}

/// The world of the engine: this machine.
struct Processor {
    directory: Directory,
    shoot_downs: AtomicU64,
}

impl Platform for Processor {
    type RawLock = RawSpinLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

impl World for Processor {
    type Frames = KernelFrames;
    type Memory = AllMemory;

    fn frames(&self) -> &KernelFrames {
        &KernelFrames
    }

    fn memory(&self) -> &AllMemory {
        &AllMemory
    }

    fn link_leaf(&self, _: CpuId, _: u32, start: u64, words: *const AtomicU64) {
        self.directory.link(start as usize, words);
    }

    fn unlink_leaf(&self, _: CpuId, _: u32, start: u64) {
        self.directory.unlink(start as usize);
    }

    fn shoot_down(&self, _: CpuId) {
        self.shoot_downs.fetch_add(1, Relaxed);
        inter_processor_call(&CpuSet::new_full(), || TlbFlushOp::for_all().perform_on_current()).wait();
    }
}

struct KernelFrames;

impl FrameSource for KernelFrames {
    fn span(&self) -> Range<u64> {
        frames::span()
    }

    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn> {
        frames::alloc(cpu, &wanted_for.request(order))
    }

    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        frames::free_block(cpu, pfn, order)
    }
}

struct AllMemory;

impl Memory for AllMemory {
    fn clear(&self, _: CpuId, pfn: Pfn, order: Order, _: u32) {
        (0..u64::from(order.frames())).for_each(|frame| hardware::clear(Pfn(pfn.0 + frame)));
    }

    fn copy(&self, _: CpuId, _: Pfn, _: Pfn) {
        unreachable!("nothing is forked or collapsed");
    }
}

fn shared() -> Range<usize> {
    START + LEAF_BYTES..START + LEAF_BYTES + SHARED_PAGES * PAGE_SIZE
}

fn own(cpu: usize) -> Range<usize> {
    let start = START + (8 + cpu * 4) * LEAF_BYTES;
    start..start + OWN_PAGES * PAGE_SIZE
}

fn prepare(strategy: &'static str) {
    inject_user_page_fault_handler(super::page_fault::on_fault);
    let vm = Arc::new(VmSpace::new());
    let frame = FrameAllocOptions::new().alloc_frame().expect("memory enough");
    let guard = disable_preempt();
    let mut cursor = vm.cursor_mut(&guard, &(START..START + PAGE_SIZE)).expect("addresses of a user");
    cursor.map(frame.into(), PageProperty::new_user(PageFlags::RW, CachePolicy::Writeback));
    drop(cursor);
    drop(guard);
    let directory = Directory::in_use(Arc::clone(&vm), START);
    let pages = (SHARED_PAGES + num_cpus() * OWN_PAGES) as u64;
    let mut config = EngineConfig::new(Geometry::PAGES_4K, num_cpus() as u32, pages);
    // A freed table is reused only after a grace period, so twice as many tables are needed.
    config.tables *= 2;
    let engine = Engine::new(Processor { directory, shoot_downs: AtomicU64::new(0) }, &config);
    let options = Options::new(strategy.parse().expect("a strategy"));
    let space = AddressSpace::new(&engine, options).expect("memory for a root");
    let task = |cpu| SpinLock::new(Task::new(&space, CpuId(cpu as u32)).expect("as many tasks as CPUs"));
    let tasks = (0..num_cpus()).map(task).collect();
    *GUEST.lock() = Some(Arc::new(Guest { strategy, vm, engine, space, tasks }));
}

/// The page-fault handler for addresses from [`START`] on.
pub(super) fn on_fault(address: usize) -> Result<(), ()> {
    let guest = guest();
    let cpu = u32::from(OstdCpu::current_racy()) as usize;
    let done = guest.tasks[cpu].lock().fault(address as u64, Access::Write);
    done.map(drop).map_err(drop)
}

fn run(cpu: usize) -> u64 {
    let guest = guest();
    guest.vm.activate();
    for round in 1..=ROUNDS {
        map(&guest, cpu, own(cpu));
        if cpu == 0 {
            map(&guest, cpu, shared());
        }
        crew::meet();
        // Each CPU has a word in each page.
        let places = || own(cpu).chain(shared()).step_by(PAGE_SIZE).map(|page| page + cpu * size_of::<u64>());
        for place in places() {
            let word = place as u64 ^ round;
            let mut writer = guest.vm.writer(place, size_of::<u64>()).expect("addresses of a user");
            let written =
                writer.write_fallible(&mut VmReader::from(word.to_ne_bytes().as_slice()).to_fallible());
            assert_eq!(written.expect("the fault is handled"), size_of::<u64>());
        }
        crew::meet();
        for place in places() {
            let mut word = [0; size_of::<u64>()];
            let mut reader = guest.vm.reader(place, size_of::<u64>()).expect("addresses of a user");
            let read = reader.read_fallible(&mut VmWriter::from(word.as_mut_slice()).to_fallible());
            assert_eq!(read.expect("it was written"), size_of::<u64>());
            assert_eq!(u64::from_ne_bytes(word), place as u64 ^ round, "at {place:#x}");
        }
        crew::meet();
        unmap(&guest, cpu, own(cpu));
        if cpu == 0 {
            unmap(&guest, cpu, shared());
        }
        crew::meet();
    }
    Arc::new(VmSpace::new()).activate();
    ROUNDS * (OWN_PAGES + SHARED_PAGES) as u64
}

fn map(guest: &Guest, cpu: usize, range: Range<usize>) {
    let range = range.start as u64..range.end as u64;
    guest.tasks[cpu].lock().map(range, Prot::ReadWrite).expect("nothing is there");
}

fn unmap(guest: &Guest, cpu: usize, range: Range<usize>) {
    guest.tasks[cpu].lock().unmap(range.start as u64..range.end as u64).expect("it is mapped");
}

/// Checks the engine, and prints how often CPUs interrupted each other.
fn finish() {
    let guest = GUEST.lock().take().expect("the test ran");
    let guest = Arc::into_inner(guest).expect("no CPU is at it");
    let (mut faults, mut installed, mut tables) = (0, 0, 0);
    for task in guest.tasks {
        let task = task.lock();
        faults += task.stats().faults;
        installed += task.stats().installed;
        tables += task.stats().tables_alloc;
    }
    let census = guest.engine.check(&[&guest.space]).unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!(census.pages, 0, "everything is unmapped");
    let shoot_downs = guest.engine.world().shoot_downs.load(Relaxed);
    print!(r#"{{"fault_engine":"{}","allocator":"{}","cpus":{},"#, guest.strategy, frames::NAME, num_cpus());
    print!(r#""faults":{},"pages":{},"tables":{},"#, faults, installed, tables);
    println!(r#""shoot_downs":{},"interrupts":{}}}"#, shoot_downs, shoot_downs * (num_cpus() as u64 - 1));
}
