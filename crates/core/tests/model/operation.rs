//! Random operations. Blocks are named by a random number that the model maps to one it holds.

use pageset_core::{MigrateType, RequestTraits, ZoneKind};
use proptest::prelude::*;

/// One operation, with arguments that may be nonsense.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Alloc(u32, Wish),
    AllocMany(u32, Wish, u16),
    Free { cpu: u32, block: usize, how: How, busy: bool },
    FreeMany { cpu: u32, block: usize, count: u16 },
    FreeFrame { cpu: u32, pfn: u64, order: u8 },
    FreeBatch { cpu: u32, block: usize, count: u8, twice: bool },
    Bulk { cpu: u32, wish: Wish, slots: u8, filled: u8 },
    Exact { cpu: u32, wish: Wish, frames: u64 },
    FreeRange { cpu: u32, block: usize, offset: u64, frames: u64 },
    AllocAt { cpu: u32, zone: usize, offset: u64, wish: Wish },
    Tick(u32, u8),
    DrainCpu(u32, u32),
    DrainZone(u32, u16),
    DrainAll(u32),
    Offline(u32),
    Online(u32),
    Isolate { cpu: u32, zone: usize, offset: u64 },
    Unisolate { cpu: u32, zone: usize, offset: u64, to: MigrateType },
    Fraction(u32),
    MinFree(u64),
    ScaleFactor(u32),
    BoostFactor(u32),
    EndBoost(u32, u16, u64),
    SetReclaim(u16, bool),
    SetBelowHigh(u16, bool),
    SetCacheSlice(u32, u32),
    MarkBad { cpu: u32, zone: usize, offset: u64 },
}

/// How a block is freed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Right,
    Order(u8),
    Inside(u64),
    Twice,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) order: u8,
    pub(crate) migratetype: MigrateType,
    pub(crate) highest: ZoneKind,
    pub(crate) node: Option<(u16, bool)>,
    pub(crate) below: Option<u64>,
    pub(crate) traits: RequestTraits,
}

fn cpu() -> impl Strategy<Value = u32> {
    prop_oneof![12 => 0_u32..4, 1 => Just(4), 1 => Just(u32::MAX)]
}

fn order() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0_u8), 4 => 0_u8..4, 1 => 4_u8..9, 2 => 9_u8..11]
}

fn migratetype() -> impl Strategy<Value = MigrateType> {
    prop_oneof![
        12 => prop::sample::select(&MigrateType::ALL[..3]),
        1 => prop::sample::select(&MigrateType::ALL[3..]),
    ]
}

fn traits() -> impl Strategy<Value = RequestTraits> {
    let ordinary = RequestTraits::WAKE_KSWAPD | RequestTraits::MAY_WAIT;
    let atomic = RequestTraits::WAKE_KSWAPD | RequestTraits::HIGH_PRIORITY;
    prop_oneof![
        5 => Just(ordinary),
        2 => Just(atomic),
        1 => Just(ordinary | RequestTraits::PCP_BUSY),
        1 => Just(ordinary | RequestTraits::NO_WATERMARKS),
        2 => (0..=RequestTraits::all().bits()).prop_map(RequestTraits::from_bits_truncate),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let node = prop_oneof![4 => Just(None), 2 => (0_u16..3, any::<bool>()).prop_map(Some)];
    let below = prop_oneof![9 => Just(None), 1 => (0_u64..60_000).prop_map(Some)];
    let highest = prop::sample::select(&ZoneKind::ALL[..]);
    let highest = prop_oneof![3 => Just(ZoneKind::Movable), 2 => Just(ZoneKind::Normal), 1 => highest];
    (order(), migratetype(), highest, node, below, traits()).prop_map(
        |(order, migratetype, highest, node, below, traits)| Wish {
            order,
            migratetype,
            highest,
            node,
            below,
            traits,
        },
    )
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        8 => Just(How::Right),
        1 => (0_u8..11).prop_map(How::Order),
        1 => (1_u64..1024).prop_map(How::Inside),
        1 => Just(How::Twice),
    ]
}

/// Any operation.
pub(crate) fn operations() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let many: u16 = if cfg!(miri) { 8 } else { 900 };
    let block = any::<usize>;
    prop_oneof![
        8 => (cpu(), wish()).prop_map(|(cpu, wish)| Alloc(cpu, wish)),
        3 => (cpu(), wish(), 1_u16..many).prop_map(|(cpu, wish, count)| AllocMany(cpu, wish, count)),
        10 => (cpu(), block(), how(), proptest::bool::weighted(0.2))
            .prop_map(|(cpu, block, how, busy)| Free { cpu, block, how, busy }),
        5 => (cpu(), block(), 1_u16..many).prop_map(|(cpu, block, count)| FreeMany { cpu, block, count }),
        1 => (cpu(), prop_oneof![0_u64..60_000, any::<u64>(), Just(u64::MAX)], 0_u8..11)
            .prop_map(|(cpu, pfn, order)| FreeFrame { cpu, pfn, order }),
        2 => (cpu(), block(), 0_u8..80, any::<bool>())
            .prop_map(|(cpu, block, count, twice)| FreeBatch { cpu, block, count, twice }),
        2 => (cpu(), wish(), 0_u8..90, 0_u8..10)
            .prop_map(|(cpu, wish, slots, filled)| Bulk { cpu, wish, slots, filled }),
        2 => (cpu(), wish(), prop_oneof![0_u64..1030, 1_u64..20])
            .prop_map(|(cpu, wish, frames)| Exact { cpu, wish, frames }),
        3 => (cpu(), block(), 0_u64..1024, prop_oneof![0_u64..9, 0_u64..2000, any::<u64>()])
            .prop_map(|(cpu, block, offset, frames)| FreeRange { cpu, block, offset, frames }),
        2 => (cpu(), block(), any::<u64>(), wish())
            .prop_map(|(cpu, zone, offset, wish)| AllocAt { cpu, zone, offset, wish }),
        2 => (cpu(), 1_u8..5).prop_map(|(cpu, times)| Tick(cpu, times)),
        1 => (cpu(), cpu()).prop_map(|(cpu, owner)| DrainCpu(cpu, owner)),
        1 => (cpu(), 0_u16..4).prop_map(|(cpu, zone)| DrainZone(cpu, zone)),
        1 => cpu().prop_map(DrainAll),
        1 => cpu().prop_map(Offline),
        1 => cpu().prop_map(Online),
        2 => (cpu(), block(), any::<u64>()).prop_map(|(cpu, zone, offset)| Isolate { cpu, zone, offset }),
        2 => (cpu(), block(), any::<u64>(), migratetype())
            .prop_map(|(cpu, zone, offset, to)| Unisolate { cpu, zone, offset, to }),
        1 => prop::sample::select(&[0_u32, 1, 7, 8, 100, 100_000, u32::MAX][..]).prop_map(Fraction),
        1 => prop_oneof![0_u64..2000, 0_u64..100_000, Just(1 << 40)].prop_map(MinFree),
        1 => prop::sample::select(&[0_u32, 10, 3000, 20_000][..]).prop_map(ScaleFactor),
        1 => prop::sample::select(&[0_u32, 15_000, u32::MAX][..]).prop_map(BoostFactor),
        1 => (cpu(), 0_u16..4, prop_oneof![0_u64..2000, any::<u64>()])
            .prop_map(|(cpu, zone, frames)| EndBoost(cpu, zone, frames)),
        1 => (0_u16..4, any::<bool>()).prop_map(|(zone, active)| SetReclaim(zone, active)),
        1 => (0_u16..4, any::<bool>()).prop_map(|(zone, below)| SetBelowHigh(zone, below)),
        1 => (cpu(), any::<u32>()).prop_map(|(cpu, kib)| SetCacheSlice(cpu, kib)),
        1 => (cpu(), block(), any::<u64>()).prop_map(|(cpu, zone, offset)| MarkBad { cpu, zone, offset }),
    ]
}
