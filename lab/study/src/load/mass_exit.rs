//! mass-exit: a process on each CPU fills its memory, and all processes end at the same moment.

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};
use crate::target::{ChannelId, Message, Target};

const PAGES: Parameter = Parameter {
    key: "process_pages",
    default: 1024,
    min: 1,
    meaning: "pages of one process",
    source: "guess: 4 MiB, so that each CPU runs several processes in a tenth of a second",
};

/// The benchmark mass-exit: a service stops all of its processes at the same time, and starts new processes.
pub(super) const MASS_EXIT: Workload = Workload {
    name: "mass-exit",
    summary: "a process on each CPU faults in 4 MiB, then all of them end at one moment",
    source: "the RFC of April 2026 names the case; the sizes are guesses",
    unit: "pages",
    duration_ms: (50, 200),
    parameters: &[PAGES, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let pages = setup.get(&PAGES);
    let lrus = Lru::for_cpus(&mut plan, setup);
    let full = plan.channel(setup.cpus, setup.cpus.saturating_sub(1));
    let signals: Vec<_> = (0..setup.cpus).map(|_| plan.channel(1, 1)).collect();
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mapping = Mapping::new(setup, Backing::Anonymous, lru, None);
        let (own, others) = (signals[cpu.index()], signals[1..].to_vec());
        plan.work(cpu, move |target| {
            let process = Process { mapping, pages };
            if cpu.0 == 0 { process.lead(target, full, &others) } else { process.follow(target, full, own) }
        });
    }
    Ok(plan)
}

/// The processes that run on one CPU, one after another. Each process fills its memory, and ends when the
/// processes of all CPUs have filled theirs.
struct Process {
    mapping: Mapping,
    pages: u64,
}

/// Value of `Message::bytes` that tells a CPU to start no more processes. The value 0 tells a CPU to end its
/// process and to start a new process.
const LAST: u64 = 1;

impl Process {
    /// Runs the processes of the first CPU. Each process of the first CPU waits until the processes of all
    /// CPUs have filled their memory, and then tells the other CPUs to end their processes.
    fn lead(mut self, target: &mut dyn Target, full: ChannelId, others: &[ChannelId]) {
        let mut goes_on = true;
        while goes_on {
            self.fill(target);
            for _ in others {
                target.receive(full);
            }
            goes_on = target.running();
            for other in others {
                let bytes = if goes_on { 0 } else { LAST };
                target.send(*other, Message { bytes, ..Message::default() });
            }
            self.mapping.unmap(target);
        }
        others.iter().for_each(|other| target.close(*other));
    }

    /// Runs the processes of a CPU that is not the first CPU. Each process fills its memory, and frees this
    /// memory when the first CPU tells it to end.
    fn follow(mut self, target: &mut dyn Target, full: ChannelId, signal: ChannelId) {
        let mut goes_on = true;
        while goes_on {
            self.fill(target);
            target.send(full, Message::default());
            goes_on = target.receive(signal).is_some_and(|message| message.bytes != LAST);
            self.mapping.unmap(target);
        }
        target.close(full);
    }

    fn fill(&mut self, target: &mut dyn Target) {
        for _ in 0..self.pages {
            if !target.running() {
                break;
            }
            self.mapping.fault(target);
            target.score(1);
        }
    }
}
