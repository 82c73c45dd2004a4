//! The results of one day on one allocator: samples of memory, and counts of work.

use std::cell::Cell;

use pageset_blocks::{BlockAllocator, EveryCpu};
use pageset_core::{
    Config, CpuId, FrameAllocator, MigrateType, NodeId, PageAllocator, Tables, ZoneConfig, ZoneKind,
};

use super::census::Census;
use super::compaction::{Compaction, Scanners};
use super::day::{Day, Event};
use super::memory::Memory;
use super::parameters::Parameters;
use crate::contest::{AllocatorKind, ContestError, Host};

/// Counts of the work that an allocator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that got no memory.
    pub failures: u64,
    /// Number of requests for huge pages.
    pub huge_requests: u64,
    /// Number of requests for huge pages that got single pages instead.
    pub huge_failures: u64,
    /// Number of requests that got memory of another migratetype.
    pub fallbacks: u64,
    /// Number of times that a CPU took the zone's lock. In an allocator without locks, the number of times
    /// that a CPU changed data that all CPUs share.
    pub visits: u64,
    /// Number of pages that compaction moved.
    pub moved_pages: u64,
}

/// The state of memory at one moment of a day.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moment {
    /// Number of steps of the day that are done.
    pub step: u32,
    /// The distribution of pages in use over memory.
    pub census: Census,
    /// Counts of the work since the beginning of the day.
    pub work: Work,
}

/// The results of one day on one allocator: samples of memory, and counts of work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Course {
    /// Samples at equal intervals over the day. The last sample in the list is from the end of the day.
    pub moments: Vec<Moment>,
}

impl Course {
    /// The last sample. If `progress` ended the day early, the last sample is not at the day's end.
    #[must_use]
    pub fn end(&self) -> &Moment {
        self.moments.last().expect("the last sample is at the end of the day")
    }
}

/// Runs a day's events on an allocator. Takes `moments` samples at equal intervals over the day. Calls
/// `progress` at each step, and ends the day early if `progress` returns `false`.
///
/// # Errors
/// Fails if the parameters are impossible, or if the allocator cannot be built.
pub fn play(
    parameters: &Parameters,
    seed: u64,
    entrant: &AllocatorKind,
    compaction: Compaction,
    moments: u32,
    progress: &mut dyn FnMut() -> bool,
) -> Result<Course, ContestError> {
    parameters.check().map_err(ContestError::Layout)?;
    let regions = [0..parameters.frames()];
    let zone =
        ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: regions[0].clone(), regions: &regions };
    let (zones, nodes) = ([zone], vec![NodeId(0); parameters.cpus as usize]);
    let config = Config::new(&zones, &nodes);
    let stage = Stage { parameters, seed, compaction, moments };
    match entrant {
        AllocatorKind::Linux(policy) => {
            let config = config.with_policy(**policy);
            let allocator = PageAllocator::new(Host::default(), &config, Tables::on_heap(&config)?)?;
            Ok(stage.play(&allocator, &|| allocator.platform().fallbacks(), progress))
        }
        AllocatorKind::OwnedBlocks | AllocatorKind::OwnedBlocksStraight => {
            let tables = pageset_blocks::Tables::on_heap(&config)?;
            let allocator = BlockAllocator::new(&config, tables)?;
            let fallbacks = || allocator.counters().fallbacks as u64;
            match entrant {
                AllocatorKind::OwnedBlocksStraight => Ok(stage.play(&allocator, &fallbacks, progress)),
                _ => Ok(stage.play(&EveryCpu::new(&allocator)?, &fallbacks, progress)),
            }
        }
    }
}

struct Stage<'a> {
    parameters: &'a Parameters,
    seed: u64,
    compaction: Compaction,
    moments: u32,
}

impl Stage<'_> {
    fn play(
        &self,
        allocator: &impl FrameAllocator,
        fallbacks: &dyn Fn() -> u64,
        progress: &mut dyn FnMut() -> bool,
    ) -> Course {
        let mut day = Day::new(self.parameters, self.seed);
        let frames = self.parameters.frames();
        let mut memory = Memory::new(allocator, frames, self.compaction != Compaction::None);
        let mut scanners = Scanners::default();
        let every = (self.parameters.steps / self.moments.max(1)).max(1);
        let mut course = Course { moments: Vec::new() };
        while day.step(|event| memory.perform(event)) && progress() {
            for cpu in 0..self.parameters.cpus {
                let ticked = allocator.tick(CpuId(cpu));
                debug_assert!(ticked.is_ok(), "the CPU is one of the machine's");
            }
            self.compaction.run(&mut scanners, &mut memory);
            let step = day.steps_done();
            if step.is_multiple_of(every) || step == self.parameters.steps {
                let mut work = memory.work;
                (work.fallbacks, work.visits) = (fallbacks(), allocator.usage().shared_visits);
                course.moments.push(Moment { step, census: memory.uses.census(), work });
            }
        }
        if course.moments.is_empty() {
            course.moments.push(Moment { step: 0, census: memory.uses.census(), work: memory.work });
        }
        course
    }
}

/// Counts of a day's events. The counts of a day's events do not depend on the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of allocations and frees.
    pub acts: u64,
    /// Number of blocks that the day allocates, by migratetype: unmovable, movable, reclaimable.
    pub blocks: [u64; 3],
    /// Number of pages of the blocks that the day allocates, by migratetype.
    pub pages: [u64; 3],
    /// Largest number of pages in use at one time.
    pub live_peak: u64,
    /// Largest number of pages in use at one time that cannot be moved.
    pub pinned_peak: u64,
    /// A hash of the stream of events.
    pub digest: u64,
}

/// Counts the events of a day, without an allocator.
#[must_use]
pub fn summary(parameters: &Parameters, seed: u64) -> Summary {
    let mut day = Day::new(parameters, seed);
    let mut summary = Summary::default();
    let mut of_slot: Vec<(u8, MigrateType)> = Vec::new();
    let (live, pinned) = (Cell::new(0_u64), Cell::new(0_u64));
    loop {
        let goes_on = day.step(|event| {
            summary.acts += 1;
            let told = match event {
                Event::Alloc { slot, order, migratetype, .. } => {
                    let at = slot as usize;
                    if at >= of_slot.len() {
                        of_slot.resize(at + 1, (0, MigrateType::Movable));
                    }
                    of_slot[at] = (order, migratetype);
                    summary.blocks[migratetype.index()] += 1;
                    summary.pages[migratetype.index()] += 1 << order;
                    live.set(live.get() + (1 << order));
                    if migratetype != MigrateType::Movable {
                        pinned.set(pinned.get() + (1 << order));
                    }
                    u64::from(slot) << 8 | u64::from(order) << 4 | migratetype.index() as u64
                }
                Event::Free { slot, .. } => {
                    let (order, migratetype) = of_slot[slot as usize];
                    live.set(live.get() - (1 << order));
                    if migratetype != MigrateType::Movable {
                        pinned.set(pinned.get() - (1 << order));
                    }
                    u64::from(slot) << 8 | 0xff
                }
            };
            summary.digest = (summary.digest.rotate_left(5) ^ told).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            summary.live_peak = summary.live_peak.max(live.get());
            summary.pinned_peak = summary.pinned_peak.max(pinned.get());
        });
        if !goes_on {
            return summary;
        }
    }
}
