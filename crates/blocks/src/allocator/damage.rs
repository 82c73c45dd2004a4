//! Damage to each table that changes, one entry or bit at a time: it is told, by `validate`, by an operation or by a counter, or
//! it does no harm. Nothing panics, hangs, or hands out a frame twice without a word.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

use pageset_core::{
    Config, CpuId, FrameCensus, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneId,
    ZoneKind,
};

use super::{BlockAllocator, FRAMES, Tables};
use crate::atomic::Relaxed;
use crate::cpu_lists::Wanted;
use crate::state::{BlockState, Phase};
use crate::tail_bits::words_of;

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const PAGEBLOCKS: usize = 24;

fn order(order: u8) -> Order {
    Order::new(order).expect("small")
}

fn request(of: u8, migratetype: MigrateType) -> Request {
    Request::new(order(of)).of_type(migratetype).with(RequestTraits::NO_WATERMARKS)
}

/// A machine with pageblocks in every phase, and what its users have.
struct Machine {
    allocator: BlockAllocator<'static>,
    used: BTreeMap<u64, Order>,
}

impl Machine {
    fn new() -> Self {
        // The second pageblock has a hole; the last two are none.
        let frames = (PAGEBLOCKS * FRAMES) as u64;
        let regions = [0..700, 900..frames - 1024];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
        let nodes = [NodeId(0); 2];
        let mut config = Config::new(&zones, &nodes);
        config.min_free_kbytes = Some(0);
        let tables = Tables::on_heap(&config).expect("the zone is possible");
        let allocator = BlockAllocator::new(&config, tables).expect("the zone is possible");
        let allocator = allocator.with_remote_frees(crate::RemoteFrees::Kept);
        let mut machine = Self { allocator, used: BTreeMap::new() };
        machine.use_all_kinds();
        machine
    }

    fn use_all_kinds(&mut self) {
        for (of, count) in [(0, 700), (3, 100), (6, 5), (8, 3), (9, 3), (10, 2)] {
            (0..count).for_each(|_| self.alloc(CPU, of, MigrateType::Movable));
        }
        (0..100).for_each(|_| self.alloc(CPU, 0, MigrateType::Unmovable));
        // A pageblock with blocks of several orders, one out of service, and bad frames in one.
        let allocator = &self.allocator;
        let whole = allocator.alloc(OTHER, &request(9, MigrateType::Movable)).expect("memory enough");
        allocator.free_range(OTHER, whole.0 + 100..whole.0 + 300).expect("in use");
        self.used.extend([(64, 5), (96, 2)].map(|(at, of)| (whole.0 + at, order(of))));
        self.used.insert(whole.0, order(6));
        for (at, of) in [(300, 2), (304, 4), (320, 6), (384, 7)] {
            self.used.insert(whole.0 + at, order(of));
        }
        let last = Pfn(((PAGEBLOCKS - 3) * FRAMES) as u64);
        allocator.mark_bad(OTHER, last).expect("free");
        allocator.isolate_pageblock(OTHER, Pfn(last.0 - FRAMES as u64)).expect("in service");
        // Some come back, here and there: to the owner, and to a CPU that keeps them.
        let freed: Vec<_> = self.used.iter().map(|(pfn, order)| (Pfn(*pfn), *order)).step_by(3).collect();
        for (at, (pfn, order)) in freed.into_iter().enumerate() {
            self.allocator.free([CPU, OTHER][at % 2], pfn, order).expect("in use");
            self.used.remove(&pfn.0);
        }
    }

    fn alloc(&mut self, cpu: CpuId, of: u8, migratetype: MigrateType) {
        let pfn = self.allocator.alloc(cpu, &request(of, migratetype)).expect("memory enough");
        self.used.insert(pfn.0, order(of));
    }

    fn census(&self) -> FrameCensus {
        self.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"))
    }

    /// Whether two users have the same frame.
    fn is_doubled(&self) -> bool {
        let mut end = 0;
        self.used.iter().any(|(pfn, order)| {
            let overlaps = *pfn < end;
            end = pfn + u64::from(order.frames());
            overlaps
        })
    }

    /// Uses all memory, in all ways, and gives everything back.
    fn use_up(&mut self) -> Course {
        let (mut is_doubled, mut is_refused) = (false, false);
        let frames = PAGEBLOCKS * FRAMES;
        let types = [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable];
        for (round, of) in [3, 10, 9, 7, 0].into_iter().enumerate() {
            for cpu in [CPU, OTHER] {
                for _ in 0..if of == 0 { frames } else { 4 } {
                    let Ok(pfn) = self.allocator.alloc(cpu, &request(of, types[round % 3])) else { break };
                    is_doubled |= self.used.insert(pfn.0, order(of)).is_some();
                }
            }
        }
        for pfn in (0..frames as u64).step_by(97) {
            if self.allocator.alloc_at(OTHER, Pfn(pfn), &request(0, MigrateType::Movable)).is_ok() {
                is_doubled |= self.used.insert(pfn, Order::ZERO).is_some();
            }
            let _ = self.allocator.owner_of(Pfn(pfn));
            let _ = self.allocator.pageblock_type(Pfn(pfn));
        }
        is_doubled |= self.is_doubled();
        for (at, (pfn, order)) in core::mem::take(&mut self.used).into_iter().enumerate() {
            let cpu = [CPU, OTHER][at % 2];
            let is_freed = match at % 5 {
                0 => self.allocator.free_range(cpu, pfn..pfn + u64::from(order.frames())).is_ok(),
                1 => self.allocator.free_batch(cpu, &[(Pfn(pfn), order)]).is_ok(),
                _ => self.allocator.free(cpu, Pfn(pfn), order).is_ok(),
            };
            is_refused |= !is_freed;
        }
        for cpu in [CPU, OTHER, CPU, OTHER] {
            self.allocator.tick(cpu).expect("it is a CPU");
        }
        self.allocator.drain_all();
        let _ = self.allocator.zones().count();
        let counters = self.allocator.counters();
        let is_told = is_refused || counters.double_frees > 0 || counters.damaged > 0;
        Course { is_doubled, is_told }
    }

    /// After all that can go wrong, nobody waits for anybody.
    fn put_out_of_service(&self) {
        for pfn in (0..PAGEBLOCKS * FRAMES).step_by(FRAMES / 2) {
            let _ = self.allocator.isolate_pageblock(CPU, Pfn(pfn as u64));
            let _ = self.allocator.unisolate_pageblock(CPU, Pfn(pfn as u64), MigrateType::Movable);
            let _ = self.allocator.mark_bad(OTHER, Pfn(pfn as u64 + 7));
            let _ = self.allocator.add_memory(OTHER, pfn as u64..pfn as u64 + 3);
        }
    }
}

/// How it went.
#[derive(Debug, PartialEq, Eq)]
struct Course {
    /// A frame had two users.
    is_doubled: bool,
    /// An operation or a counter said that something is wrong.
    is_told: bool,
}

/// Damages one thing. It is told, by an operation at the latest; by `validate`, before a frame gets a second user; or it is
/// harmless: everything comes back. Returns whether it was told.
#[track_caller]
fn damage(name: &str, damage: impl FnOnce(&BlockAllocator<'_>)) -> bool {
    let mut machine = Machine::new();
    let before = machine.census();
    damage(&machine.allocator);
    let is_told_at_once = machine.allocator.validate() != Ok(before);
    let course = machine.use_up();
    let after = machine.allocator.validate();
    let all = before.free + before.cached + before.allocated;
    let is_whole = after.is_ok_and(|after| (after.free, after.allocated) == (all, 0));
    machine.put_out_of_service();
    assert!(is_told_at_once || !course.is_doubled, "{name}: a frame has two users");
    assert!(is_told_at_once || course.is_told || is_whole, "{name}: {after:?} of {before:?}");
    is_told_at_once || course.is_told
}

#[test]
fn without_damage_all_is_well() {
    let mut machine = Machine::new();
    let before = machine.census();
    assert_eq!(machine.use_up(), Course { is_doubled: false, is_told: false });
    let after = machine.census();
    assert_eq!((after.allocated, after.cached, after.leaked), (0, 0, before.leaked));
    // Every kind of pageblock is there to be damaged.
    let machine = Machine::new();
    let has = |is: &dyn Fn(&BlockState) -> bool| machine.allocator.states.iter().any(is);
    for phase in
        [Phase::Absent, Phase::Whole, Phase::Spare, Phase::Handed, Phase::Idle, Phase::Current, Phase::Inner]
    {
        assert!(has(&|state| state.get().phase() == phase), "{phase:?}");
    }
    assert!(has(&|state| state.get().is_mixed()) && has(&|state| state.get().is_holed()));
    assert!(has(&|state| state.get().is_isolated()) && has(&|state| state.get().has_bad()));
    assert!(has(&|state| state.get().is_linked()) && machine.allocator.kept_in(ZoneId(0)) > 16);
}

/// Pageblocks of which no two have the same state, but for their frames.
fn kinds() -> Vec<usize> {
    let states = Machine::new().allocator.states;
    let is_new = |block: &usize| states[..*block].iter().all(|other| other.get() != states[*block].get());
    (0..PAGEBLOCKS).filter(is_new).collect()
}

#[test]
fn any_bit_of_any_state() {
    let mut told = 0;
    for block in kinds() {
        for bit in 0..32 {
            let flip = |allocator: &BlockAllocator<'_>| allocator.states[block].flip(bit);
            told += usize::from(damage(&format!("bit {bit} of state {block}"), flip));
        }
    }
    // Three bits are the phase, and nearly all pageblocks are something else without one of them.
    assert!(told > 3 * kinds().len(), "{told} told");
}

#[test]
fn any_phase_instead_of_any_other() {
    for block in kinds() {
        for phase in [Phase::Absent, Phase::Whole, Phase::Spare, Phase::Handed, Phase::Changing, Phase::Inner]
        {
            damage(&format!("pageblock {block} {phase:?}"), |allocator| {
                let state = allocator.states[block].get();
                allocator.states[block].set(state.in_phase(phase));
            });
        }
    }
}

#[test]
fn free_bits_and_tail_bits_of_any_pageblock() {
    for block in 0..PAGEBLOCKS {
        for frame in [0, 5, 63, 64, 200, 301, 511] {
            let (word, bit) = words_of(frame..frame + 1).next().expect("one word");
            damage(&format!("free bit {frame} of {block}"), |allocator| {
                let free = &allocator.free[block];
                free.set(word, free.word(word) ^ bit);
            });
            damage(&format!("tail bit {frame} of {block}"), |allocator| {
                let tails = &allocator.tails[block];
                if tails.is_tail(frame) {
                    _ = tails.mark_head(frame)
                } else {
                    tails.mark_tails(frame..frame + 1)
                }
            });
        }
        damage(&format!("free bits of {block}"), |allocator| {
            allocator.free[block].open(0..crate::free_bits::WORDS)
        });
        damage(&format!("tail bits of {block}"), |allocator| allocator.tails[block].mark_tails(0..FRAMES));
        damage(&format!("bad bits of {block}"), |allocator| {
            if let Some(bad) = crate::bad_bits::BadBits::of(&allocator.bad, block) {
                bad.mark(0..FRAMES);
            }
        });
    }
}

#[test]
fn links_of_stacks() {
    let wrong = [0, 1, 3, PAGEBLOCKS as u32, PAGEBLOCKS as u32 + 1, u32::MAX];
    for block in 0..PAGEBLOCKS {
        // Itself: a list without an end.
        for next in wrong.into_iter().chain([block as u32 + 1]) {
            damage(&format!("pageblock {next} after {block}"), |allocator| {
                allocator.states[block].next.store(next, Relaxed);
            });
        }
    }
}

#[test]
fn which_pageblocks_are_whole() {
    for block in 0..PAGEBLOCKS {
        damage(&format!("whole bit of {block}"), |allocator| {
            if !allocator.whole.claim_at(block, 1) {
                allocator.whole.put(block, 1);
            }
        });
    }
}

/// Some number is another one.
type Change = Box<dyn FnOnce(&BlockAllocator<'_>)>;

#[test]
fn counts_of_zones_and_cpus() {
    for number in [0_u32, 1, 7, 100, u32::MAX] {
        let wide = number as usize;
        let all: Vec<(&str, Change)> = std::vec![
            ("managed", Box::new(move |a| a.zones[0].managed.store(wide, Relaxed))),
            ("whole", Box::new(move |a| a.zones[0].add_whole(wide))),
            ("less whole", Box::new(move |a| a.zones[0].remove_whole(wide))),
            ("idle", Box::new(move |a| a.zones[0].add_idle(number))),
            ("surplus", Box::new(move |a| a.lists_at(ZoneId(0), CPU).surplus.set(number))),
            ("outlook", Box::new(move |a| a.lists_at(ZoneId(0), CPU).outlook.set(number))),
            ("unassigned", Box::new(move |a| a.zones[0].unassigned().store(wide, Relaxed))),
            ("near", Box::new(move |a| a.lists_at(ZoneId(0), CPU).near.store(number, Relaxed))),
            (
                "claim size",
                Box::new(move |a| {
                    a.lists_at(ZoneId(0), CPU).spares.claim_size.store(number, Relaxed);
                })
            ),
            ("limit", Box::new(move |a| a.lists_at(ZoneId(0), CPU).budget.set_limit(number))),
        ];
        for (name, change) in all {
            damage(&format!("{name} {number}"), change);
        }
        for block in 0..PAGEBLOCKS {
            damage(&format!("{number} counted of {block}"), |allocator| {
                allocator.states[block].counted.store(number, Relaxed);
            });
        }
    }
}

#[test]
fn hints_are_only_hints() {
    for block in [0, 1, 3, 12, PAGEBLOCKS - 1, PAGEBLOCKS, 1 << 20] {
        for wanted in Wanted::all().step_by(5) {
            damage(&format!("at hand {block} for {wanted:?}"), |allocator| {
                allocator.lists_at(ZoneId(0), CPU).cursor(wanted).at_hand.replace(Some(block));
            });
            damage(&format!("freed to {block} of {wanted:?}"), |allocator| {
                allocator.lists_at(ZoneId(0), CPU).cursor(wanted).note_freed(block, 3);
            });
        }
        for place in [0, 1, 5] {
            damage(&format!("spare {block} at {place}"), |allocator| {
                allocator.lists_at(ZoneId(0), OTHER).spares.replace(place, block);
            });
        }
    }
}

#[test]
fn kept_blocks() {
    let all = crate::kept::Kept::new();
    for at in 0..all.numbers().count() {
        for number in [0, 1, 3, 17, 5000, u32::MAX] {
            damage(&format!("kept number {at} is {number}"), |allocator| {
                let lists = allocator.lists_at(ZoneId(0), OTHER);
                if let Some(entry) = lists.kept.numbers().nth(at) {
                    entry.store(number, Relaxed);
                }
            });
        }
    }
}

/// A number of a frame that somebody else uses cannot be told by looking: the bit says that it is in use, and so it is.
#[test]
fn frames_that_no_cpu_can_keep() {
    let all = crate::kept::Kept::new();
    let machine = Machine::new();
    let is_no_block = |frame: &u32| {
        let state = machine.allocator.states.get(*frame as usize / FRAMES).map(BlockState::get);
        !state.is_some_and(|state| state.is_open())
    };
    let frames: Vec<u32> = (0..PAGEBLOCKS as u32 + 1).map(|block| block * FRAMES as u32 + 3).collect();
    for frame in frames.into_iter().filter(is_no_block).chain([u32::MAX]) {
        for at in 0..all.first_frames().count() {
            damage(&format!("kept frame {at} is {frame}"), |allocator| {
                let lists = allocator.lists_at(ZoneId(0), OTHER);
                if let Some(entry) = lists.kept.first_frames().nth(at) {
                    entry.store(frame, Relaxed);
                }
            });
        }
    }
}

/// What is told where: by a name, so that a rule of `validate` that is lost is noticed.
#[test]
fn rules() {
    let told = |name: &str, change: Change| -> String {
        let machine = Machine::new();
        change(&machine.allocator);
        match machine.allocator.validate() {
            Err(violation) => violation.rule.into(),
            Ok(_) => panic!("{name} is not told"),
        }
    };
    let first = |allocator: &BlockAllocator<'_>, is: &dyn Fn(&BlockState) -> bool| {
        allocator.states.iter().position(is).expect("there is one")
    };
    let cases: [(&str, &str, Change); 6] = [
        (
            "a stack without an end",
            "a stack has an end",
            Box::new(move |a| {
                let linked = first(a, &|state| state.get().is_linked());
                a.states[linked].next.store(linked as u32 + 1, Relaxed);
            }),
        ),
        (
            "a pageblock that left its stack",
            "a stack has pageblocks of its zone that say so",
            Box::new(move |a| {
                let linked = first(a, &|state| state.get().is_linked());
                a.states[linked].set(a.states[linked].get().linked(false));
            }),
        ),
        (
            "a pageblock in no stack",
            "every pageblock that says so is in a stack, once",
            Box::new(move |a| {
                let other = first(a, &|state| state.get().phase() == Phase::Idle && !state.get().is_linked());
                a.states[other].set(a.states[other].get().linked(true));
            }),
        ),
        (
            "a pageblock at nobody's hand",
            "a pageblock that a CPU allocates from is at hand for it",
            Box::new(move |a| {
                let current = first(a, &|state| state.get().phase() == Phase::Current);
                let state = a.states[current].get();
                let wanted = Wanted::of_split(state).expect("split");
                a.lists_at(ZoneId(0), state.owner()).cursor(wanted).at_hand.replace(None);
            }),
        ),
        (
            "a second half without a first",
            "the second half of a block of two pageblocks has a first one",
            Box::new(move |a| {
                let handed = first(a, &|state| {
                    state.get().order() == Order::MAX && state.get().phase() == Phase::Handed
                });
                a.states[handed].set(a.states[handed].get().of_order(Order::PAGEBLOCK));
            }),
        ),
        (
            "kept blocks that are not there",
            "a CPU keeps as many blocks as it counts",
            Box::new(move |a| {
                let kept = &a.lists_at(ZoneId(0), OTHER).kept;
                kept.numbers().nth(1).expect("frames").store(3, Relaxed);
            }),
        ),
    ];
    for (name, rule, change) in cases {
        assert_eq!(told(name, change), rule, "{name}");
    }
}
