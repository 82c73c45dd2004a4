//! Workloads with CPUs that allocate pages and other CPUs that free these pages. In `producer-consumer`, each
//! producer has its own consumer. In `purger`, a few CPUs free the pages of all other CPUs.

use pageset_core::{CpuId, MigrateType, Order};

use super::mapping::{FAULT_NS, UNMAP_NS};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Block, ChannelId, Fill, Message, Target};

const MESSAGE_PAGES: Parameter = Parameter {
    key: "message_pages",
    default: 64,
    min: 1,
    meaning: "pages that a producer passes on at once",
    source: "guess: 256 KiB, a large write",
};
const FILL_NS: Parameter = Parameter {
    key: "fill_ns",
    default: 500,
    min: 0,
    meaning: "the producer's work for each page, without writing the page, in ns",
    source: "guess: 8 GB/s",
};
const PURGERS: Parameter = Parameter {
    key: "purgers",
    default: 4,
    min: 1,
    meaning: "CPUs that free the pages of all other CPUs; at most half of the CPUs",
    source: "guess: the RFC of April 2026 says \"a few\"",
};
const RANGE_PAGES: Parameter = Parameter {
    key: "range_pages",
    default: 512,
    min: 1,
    meaning: "pages that are given to a purger at once",
    source: "guess: 2 MiB, as allocators of programs give memory back",
};
const USER_NS: Parameter = Parameter {
    key: "user_ns",
    default: 10_000,
    min: 0,
    meaning: "work of the program for each page outside the kernel, in ns",
    source: "guess: four purgers keep up with some hundred CPUs",
};
const LARGEST_MESSAGE_PAGES: u64 = 1 << 16;
/// Largest number of messages that wait for a receiver. Guess: with room for 16 messages, a short pause of
/// the receiver's CPU does not stop the sender's CPU, and a short pause of the sender's CPU does not stop the
/// receiver's CPU.
const WAITING: u32 = 16;

/// The benchmark producer-consumer, with pairs of CPUs. The first CPU of a pair fills pages, and the second
/// CPU reads and frees these pages.
pub(super) const PRODUCER_CONSUMER: Workload = Workload {
    name: "producer-consumer",
    summary: "pairs of CPUs: one CPU fills single pages, the other reads and frees these pages",
    source: "the RFC of April 2026 names the case; the sizes are guesses",
    unit: "pages",
    duration_ms: (50, 200),
    parameters: &[MESSAGE_PAGES, FILL_NS],
    build: build_pairs,
};

/// The benchmark purger: a few CPUs free the pages that all other CPUs have faulted in.
pub(super) const PURGER: Workload = Workload {
    name: "purger",
    summary: "four CPUs free the pages that all other CPUs fault in",
    parameters: &[PURGERS, RANGE_PAGES, USER_NS, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    unit: "faults",
    build: build_purgers,
    ..PRODUCER_CONSUMER
};

fn build_pairs(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let pages = setup.at_most(&MESSAGE_PAGES, LARGEST_MESSAGE_PAGES)?;
    let fill_ns = setup.get(&FILL_NS);
    for (producer, consumer) in setup.each_pair()? {
        let pipe = plan.channel(WAITING, 1);
        plan.work(producer, move |target| {
            while target.running() {
                let blocks = (0..pages).filter_map(|_| filled_page(target, fill_ns)).collect();
                target.send(pipe, Message { blocks, ..Message::default() });
            }
            target.close(pipe);
        });
        plan.work(consumer, move |target| {
            while let Some(message) = target.receive(pipe) {
                for block in message.blocks {
                    target.touch(block.0, PAGE_BYTES.into(), Access::Read);
                    target.free(block);
                    target.score(1);
                }
            }
        });
    }
    Ok(plan)
}

fn filled_page(target: &mut dyn Target, fill_ns: u64) -> Option<Block> {
    let pfn = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined).ok()?;
    target.touch(pfn, PAGE_BYTES.into(), Access::Write);
    target.compute(fill_ns);
    Some((pfn, Order::ZERO))
}

fn build_purgers(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    if setup.cpus < 2 {
        return Err(PlanError::TooFewCpus { needed: 2 });
    }
    let mut plan = Plan::default();
    let purgers = setup.get(&PURGERS).min(u64::from(setup.cpus / 2)) as u32;
    let faulting = setup.cpus - purgers;
    let lrus = Lru::for_cpus(&mut plan, setup);
    let heaps: Vec<_> = (0..purgers).map(|_| plan.channel(WAITING, faulting)).collect();
    let range_pages = setup.at_most(&RANGE_PAGES, LARGEST_MESSAGE_PAGES)? as usize;
    let (user_ns, fault_ns, unmap_ns) = (setup.get(&USER_NS), setup.get(&FAULT_NS), setup.get(&UNMAP_NS));
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        if cpu.0 < faulting {
            let heaps = heaps.clone();
            let program = Program { lru, heaps, range_pages, user_ns, fault_ns };
            plan.work(cpu, move |target| program.run(target, cpu));
        } else {
            let heap = heaps[(cpu.0 - faulting) as usize];
            plan.work(cpu, move |target| purge(target, lru, heap, unmap_ns));
        }
    }
    Ok(plan)
}

/// The program of a CPU that is not a purger. The program faults in pages.
struct Program {
    lru: Lru,
    heaps: Vec<ChannelId>,
    range_pages: usize,
    user_ns: u64,
    fault_ns: u64,
}

impl Program {
    fn run(mut self, target: &mut dyn Target, cpu: CpuId) {
        // Each program begins at a random point of its cycle, as if it had run for a long time.
        let mut left = (target.random() % self.range_pages as u64) as usize + 1;
        let mut turn = cpu.index();
        while target.running() {
            let wanted = std::mem::replace(&mut left, self.range_pages);
            let mut blocks = Vec::with_capacity(wanted);
            while blocks.len() < wanted && target.running() {
                blocks.extend(self.fault(target));
            }
            self.lru.flush(target);
            target.send(self.heaps[turn % self.heaps.len()], Message { blocks, ..Message::default() });
            turn += 1;
        }
        self.heaps.iter().for_each(|heap| target.close(*heap));
    }

    fn fault(&mut self, target: &mut dyn Target) -> Option<Block> {
        target.compute_in_user_mode(self.user_ns);
        target.compute(self.fault_ns);
        let pfn = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Zeroed).ok()?;
        self.lru.add(target);
        target.score(1);
        Some((pfn, Order::ZERO))
    }
}

/// Does the work of a purger: frees each range of pages as one list.
fn purge(target: &mut dyn Target, lru: Lru, heap: ChannelId, unmap_ns: u64) {
    while let Some(mut message) = target.receive(heap) {
        target.compute(unmap_ns * message.blocks.len() as u64);
        lru.remove(target, message.blocks.len() as u32);
        target.free_list(&mut message.blocks);
    }
}
