//! Makes the events of a day: allocations and frees of blocks. Every allocator gets the same events.

use std::collections::VecDeque;

use pageset_core::MigrateType;

use super::files::Files;
use super::parameters::Parameters;
use super::random::Random;
use super::slots::{Chain, Slot, Slots};
use super::sources::{Kind, Process, TURN_PAGES, Turn};

/// An event of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event: a CPU allocates a block.
    Alloc {
        /// The CPU that allocates.
        cpu: u32,
        /// The number of the allocated block. The event that frees the block names the block by this number.
        slot: u32,
        /// Order of the block.
        order: u8,
        /// Migratetype of the block.
        migratetype: MigrateType,
        /// The request's urgency.
        urgency: Urgency,
    },
    /// An event: a CPU frees a block.
    Free {
        /// The CPU that frees.
        cpu: u32,
        /// The number of the freed block. The event that allocated the block named the block by this number.
        slot: u32,
    },
}

/// The urgency of a request: whether the caller can wait for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The caller waits until the request gets memory.
    Waits,
    /// The caller is an interrupt handler and cannot wait.
    Atomic,
    /// The request is for a huge page. If no huge page is available at once, the caller takes single pages.
    Huge,
}

const HUGE_ORDER: u8 = 9;
/// Order of the block for a process's stack, and of a block of inodes.
const FOUR_PAGES: u8 = 2;
/// The CPU that the reclaimer runs on.
const RECLAIMER: u32 = 0;
/// Amount of work at night, in thousandths of the amount during the day.
const NIGHT_PERMILLE: u64 = 100;

/// A day in progress.
#[derive(Debug)]
pub struct Day {
    parameters: Parameters,
    random: Random,
    step: u32,
    slots: Slots,
    processes: Vec<Option<Process>>,
    /// For each step of the day, the processes that end in this step.
    ends: Vec<Vec<usize>>,
    /// For each step of the day, the slabs that the kernel frees in this step. The last entry of `slabs` has
    /// the slabs that live longer than the day.
    slabs: Vec<Chain>,
    /// Pages of long-lived slabs.
    long_pages: u64,
    files: Files,
    buffers: VecDeque<(Chain, u32)>,
    buffer_pages: u64,
    /// Pages of network buffers that are in use in this step.
    buffers_now: u64,
    /// For each kind of process, the number of pages that the processes of this kind have now or will get
    /// later.
    planned: [u64; 3],
}

impl Day {
    /// Makes a day that has not begun. The caller must have checked `parameters`.
    #[must_use]
    pub fn new(parameters: &Parameters, seed: u64) -> Self {
        let steps = parameters.steps as usize;
        Self {
            parameters: parameters.clone(),
            random: Random::new(seed),
            step: 0,
            slots: Slots::default(),
            processes: Vec::new(),
            ends: (0..=steps).map(|_| Vec::new()).collect(),
            slabs: vec![Chain::EMPTY; steps + 1],
            long_pages: 0,
            files: Files::default(),
            buffers: VecDeque::new(),
            buffer_pages: 0,
            buffers_now: 0,
            planned: [0; 3],
        }
    }

    /// Number of steps of the day that are done.
    #[must_use]
    pub fn steps_done(&self) -> u32 {
        self.step
    }

    /// Number of frames of all blocks in use.
    #[must_use]
    pub fn live_frames(&self) -> u64 {
        self.slots.frames
    }

    /// Passes the events of the next step to `emit`. Returns `false` if the day is over.
    pub fn step(&mut self, mut emit: impl FnMut(Event)) -> bool {
        if self.step == self.parameters.steps {
            return false;
        }
        let mut turns = self.turns();
        while !turns.is_empty() {
            let at = self.random.below(turns.len() as u64) as usize;
            if !self.take_turn(&mut turns[at], &mut emit) {
                turns.swap_remove(at);
            }
            self.reclaim(&mut emit);
        }
        self.step += 1;
        true
    }

    fn is_day(&self) -> bool {
        // The day is from six in the morning to nine in the evening.
        let (step, steps) = (u64::from(self.step), u64::from(self.parameters.steps));
        (steps / 4..steps * 7 / 8).contains(&step)
    }

    fn busy(&self, amount: u64) -> u64 {
        if self.is_day() { amount } else { amount * NIGHT_PERMILLE / 1000 }
    }

    /// Returns the work of this step, divided among the users of memory. The caller then lets the users of
    /// memory work alternately, a part of their work at a time.
    fn turns(&mut self) -> Vec<Turn> {
        let mut turns = Vec::new();
        self.end_processes(&mut turns);
        let dead = std::mem::replace(&mut self.slabs[self.step as usize], Chain::EMPTY);
        let cpu = self.any_cpu();
        turns.push(Turn::Free { cpu, blocks: dead, remote_permille: 1000 });
        self.start_processes();
        for (process, running) in self.processes.iter().enumerate() {
            if let Some(running) = running.as_ref().filter(|running| running.pages_left > 0) {
                turns.push(Turn::Grow { process, pages: running.pace });
            }
        }
        self.other_turns(&mut turns);
        turns
    }

    fn other_turns(&mut self, turns: &mut Vec<Turn>) {
        let parameters = self.parameters.clone();
        let (share, files) = (|permille| parameters.share(permille), &parameters.files);
        let read = share(1) * u64::from(files.read_permille_of_permille) / 1000;
        let (step, steps) = (u64::from(self.step), u64::from(self.parameters.steps));
        let scan_steps = (steps / 20).max(1);
        let scan_from = steps * 9 / 10;
        let is_scan = (scan_from..scan_from + scan_steps).contains(&step);
        let inodes = share(files.scan_permille) / 4 * u64::from(files.inodes_in_slab) / scan_steps;
        let slabs = &parameters.slabs;
        let short = self.busy(share(slabs.short_permille)) as f64 / f64::from(slabs.short_life_steps);
        // Long-lived slabs are allocated for growth, and to replace slabs that are freed.
        let long_most = share(slabs.long_permille);
        let long_now = long_most / 5 + long_most * 4 / 5 * step / steps;
        let replaced = long_now as f64 / f64::from(slabs.long_life_steps);
        let grown = long_now.saturating_sub(self.long_pages);
        self.long_pages = long_now.max(self.long_pages);
        let network = &parameters.network;
        let burst = if self.random.permille(network.burst_permille) { network.burst } else { 1 };
        self.buffers_now = self.busy(share(network.permille)) * u64::from(burst);
        let buffers = (self.buffers_now * u64::from(network.replaced_permille) / 1000)
            .max(self.buffers_now.saturating_sub(self.buffer_pages));
        let (short_life, long_life) = (slabs.short_life_steps, slabs.long_life_steps);
        let (short, replaced) = (self.random.rounded(short), self.random.rounded(replaced));
        turns.push(Turn::Read { pages: self.busy(read) });
        turns.push(Turn::Scan { inodes: if is_scan { inodes } else { 0 } });
        turns.push(Turn::Slabs { pages: short, life_steps: short_life });
        turns.push(Turn::Slabs { pages: replaced + grown, life_steps: long_life });
        turns.push(Turn::Buffers { pages: buffers });
    }

    fn end_processes(&mut self, turns: &mut Vec<Turn>) {
        for index in std::mem::take(&mut self.ends[self.step as usize]) {
            let Some(process) = self.processes[index].take() else { continue };
            self.planned[process.kind as usize] -= process.pages;
            let remote_permille = self.parameters.builds.remote_permille;
            turns.push(Turn::Free { cpu: process.cpu, blocks: process.blocks, remote_permille });
        }
    }

    fn start_processes(&mut self) {
        let parameters = self.parameters.clone();
        let share = |permille| parameters.share(permille);
        let (services, builds, jobs) = (&parameters.services, &parameters.builds, &parameters.jobs);
        let (all, each) = (share(services.permille), share(services.each_permille));
        while self.planned[Kind::Service as usize] + each <= all {
            let life = self.random.exponential(services.life_steps.into()).max(2);
            self.start(Kind::Service, each, life, services.rings_permille, services.huge_permille);
        }
        let most = self.busy(share(builds.permille));
        while self.planned[Kind::Build as usize] < most {
            let pages = self.random.log_uniform(builds.pages_min.into(), builds.pages_max.into());
            let life = self.random.exponential(builds.life_steps.into()).max(2);
            self.start(Kind::Build, pages, life, builds.unmovable_permille, builds.huge_permille);
        }
        let every = (self.parameters.steps / jobs.count.max(1)).max(1);
        if jobs.count > 0 && self.step % every == every / 2 {
            /// The number of processes in one job.
            const PROCESSES: u64 = 32;
            for _ in 0..PROCESSES {
                let (pages, life) = (share(jobs.permille) / PROCESSES, jobs.life_steps.into());
                self.start(Kind::Job, pages, life, builds.unmovable_permille, builds.huge_permille);
            }
        }
    }

    fn start(
        &mut self,
        kind: Kind,
        pages: u64,
        life_steps: u64,
        unmovable_permille: u32,
        huge_permille: u32,
    ) {
        let pages = pages.max(1);
        // The process gets its memory in the first quarter of its life.
        let pace = pages / (life_steps / 4).max(1) + 1;
        let huge = (pages * u64::from(huge_permille) / 1000) >> HUGE_ORDER;
        let process = Process {
            cpu: self.any_cpu(),
            kind,
            pages_left: pages,
            huge_left: huge,
            unmovable_left: pages * u64::from(unmovable_permille) / 1000,
            pace,
            unmovable_permille,
            blocks: Chain::EMPTY,
            pages,
        };
        self.planned[kind as usize] += pages;
        let index = self.processes.iter().position(Option::is_none).unwrap_or(self.processes.len());
        if index == self.processes.len() {
            self.processes.push(None);
        }
        self.processes[index] = Some(process);
        if let Some(ends) = self.ends.get_mut((u64::from(self.step) + life_steps) as usize) {
            ends.push(index);
        }
    }

    fn any_cpu(&mut self) -> u32 {
        self.random.below(self.parameters.cpus.into()) as u32
    }

    /// Does a part of a turn, the work of one user of memory in one step. Returns `false` when the turn is
    /// finished.
    fn take_turn(&mut self, turn: &mut Turn, emit: &mut impl FnMut(Event)) -> bool {
        match turn {
            Turn::Grow { process, pages } => self.grow(*process, pages, emit),
            Turn::Read { pages } => self.read(pages, emit),
            Turn::Scan { inodes } => self.scan(inodes, emit),
            Turn::Slabs { pages, life_steps } => self.allocate_slabs(pages, *life_steps, emit),
            Turn::Buffers { pages } => self.replace_buffers(pages, emit),
            Turn::Free { cpu, blocks, remote_permille } => self.free(*cpu, blocks, *remote_permille, emit),
        }
    }

    fn grow(&mut self, index: usize, pages: &mut u64, emit: &mut impl FnMut(Event)) -> bool {
        let Some(process) = self.processes[index].as_mut() else { return false };
        let mut at_turn = TURN_PAGES.min(*pages).min(process.pages_left);
        let cpu = process.cpu;
        let mut alloc = |slots: &mut Slots, blocks: &mut Chain, order, migratetype, urgency| {
            let slot = slots.add(blocks, order);
            emit(Event::Alloc { cpu, slot, order, migratetype, urgency });
        };
        let huge = 1 << HUGE_ORDER;
        let is_huge = self.random.below(process.pages_left) < process.huge_left * TURN_PAGES;
        if is_huge && process.pages_left >= huge {
            process.huge_left -= 1;
            at_turn = huge;
            alloc(&mut self.slots, &mut process.blocks, HUGE_ORDER, MigrateType::Movable, Urgency::Huge);
        } else {
            for _ in 0..at_turn {
                alloc(&mut self.slots, &mut process.blocks, 0, MigrateType::Movable, Urgency::Waits);
            }
        }
        process.pages_left -= at_turn.min(process.pages_left);
        *pages = pages.saturating_sub(at_turn);
        let unmovable =
            self.random.rounded((at_turn * u64::from(process.unmovable_permille)) as f64 / 1000.0);
        for _ in 0..unmovable.min(process.unmovable_left) {
            alloc(&mut self.slots, &mut process.blocks, 0, MigrateType::Unmovable, Urgency::Waits);
        }
        process.unmovable_left -= unmovable.min(process.unmovable_left);
        *pages > 0 && process.pages_left > 0
    }

    fn read(&mut self, pages: &mut u64, emit: &mut impl FnMut(Event)) -> bool {
        let files = &self.parameters.files;
        let (most, folio_permille) = (files.pages_max, files.folio_permille);
        let size = self.random.log_uniform(1, most.into()).min(*pages);
        let cpu = self.any_cpu();
        let (mut chain, mut left) = (Chain::EMPTY, size);
        while left > 0 {
            let order = if left >= 4 && self.random.permille(folio_permille / 4) { FOUR_PAGES } else { 0 };
            let slot = self.slots.add(&mut chain, order);
            let (migratetype, urgency) = (MigrateType::Movable, Urgency::Waits);
            emit(Event::Alloc { cpu, slot, order, migratetype, urgency });
            left -= 1 << order;
        }
        if size > 0 {
            self.add_file(cpu, chain, emit);
        }
        *pages -= size;
        *pages > 0
    }

    fn scan(&mut self, inodes: &mut u64, emit: &mut impl FnMut(Event)) -> bool {
        let at_turn = TURN_PAGES.min(*inodes);
        let cpu = self.any_cpu();
        for _ in 0..at_turn {
            self.add_file(cpu, Chain::EMPTY, emit);
        }
        *inodes -= at_turn;
        *inodes > 0
    }

    fn add_file(&mut self, cpu: u32, pages: Chain, emit: &mut impl FnMut(Event)) {
        let slots = &mut self.slots;
        self.files.add(pages, self.parameters.files.inodes_in_slab, |chain| {
            let slot = slots.add(chain, FOUR_PAGES);
            let (migratetype, urgency) = (MigrateType::Reclaimable, Urgency::Waits);
            emit(Event::Alloc { cpu, slot, order: FOUR_PAGES, migratetype, urgency });
        });
    }

    fn allocate_slabs(&mut self, pages: &mut u64, life_steps: u32, emit: &mut impl FnMut(Event)) -> bool {
        let slabs = &self.parameters.slabs;
        let (pairs, eights) = (slabs.pairs_permille, slabs.eights_permille);
        let cpu = self.any_cpu();
        let mut at_turn = TURN_PAGES;
        while at_turn > 0 && *pages > 0 {
            let drawn = self.random.below(1000);
            let order = match drawn {
                _ if drawn < u64::from(eights) => 3,
                _ if drawn < u64::from(eights + pairs) => 1,
                _ => 0,
            };
            let dies = u64::from(self.step) + 1 + self.random.exponential(life_steps.into());
            let last = self.slabs.len() - 1;
            let slot = self.slots.add(&mut self.slabs[last.min(dies as usize)], order);
            let (migratetype, urgency) = (MigrateType::Unmovable, Urgency::Waits);
            emit(Event::Alloc { cpu, slot, order, migratetype, urgency });
            *pages = pages.saturating_sub(1 << order);
            at_turn = at_turn.saturating_sub(1 << order);
        }
        *pages > 0
    }

    fn replace_buffers(&mut self, pages: &mut u64, emit: &mut impl FnMut(Event)) -> bool {
        let network = self.parameters.network.clone();
        let cpu = self.any_cpu();
        let mut at_turn = TURN_PAGES;
        while at_turn > 0 && *pages > 0 {
            let order = if self.random.permille(network.eights_permille) { 3 } else { 0 };
            let mut block = Chain::EMPTY;
            let slot = self.slots.add(&mut block, order);
            let urgency =
                if self.random.permille(network.atomic_permille) { Urgency::Atomic } else { Urgency::Waits };
            emit(Event::Alloc { cpu, slot, order, migratetype: MigrateType::Unmovable, urgency });
            self.buffers.push_back((block, cpu));
            self.buffer_pages += 1 << order;
            *pages = pages.saturating_sub(1 << order);
            at_turn = at_turn.saturating_sub(1 << order);
            while self.buffer_pages > self.buffers_now
                && let Some((mut block, cpu)) = self.buffers.pop_front()
            {
                self.buffer_pages -= self.slots.order_pages(&block);
                self.free(cpu, &mut block, network.remote_permille, emit);
            }
        }
        *pages > 0
    }

    fn free(
        &mut self,
        cpu: u32,
        blocks: &mut Chain,
        remote_permille: u32,
        emit: &mut impl FnMut(Event),
    ) -> bool {
        let cpu = if self.random.permille(remote_permille) { self.any_cpu() } else { cpu };
        for _ in 0..TURN_PAGES {
            let Some(slot) = self.slots.pop(blocks) else { return false };
            emit(Event::Free { cpu, slot });
        }
        true
    }

    /// Drops cached files until enough memory is free.
    fn reclaim(&mut self, emit: &mut impl FnMut(Event)) {
        let used_again = self.parameters.files.used_again_permille;
        let most = self.parameters.frames() - self.parameters.share(self.parameters.free_permille);
        let mut free = |slot: Slot| emit(Event::Free { cpu: RECLAIMER, slot });
        while self.slots.frames > most
            && self.files.drop_one(&mut self.slots, &mut self.random, used_again, &mut free)
        {}
    }
}
