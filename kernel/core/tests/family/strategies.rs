//! Random machines and operations, for proptest.

use pageset_core::{FreeTraits, MigrateType, RequestTraits, ZoneKind};
use proptest::prelude::*;

use crate::family::machine::{LAYOUTS, Machine, ZoneShape, regions};
use crate::family::operation::{How, Operation, Wish};

fn sizes() -> BoxedStrategy<u64> {
    if cfg!(miri) {
        return (1_u64..200).boxed();
    }
    prop_oneof![
        3 => 1_u64..2000,
        4 => 2000_u64..6000,
        3 => 12_000_u64..26_000,
        // A zone of 51 200 frames or more is large enough for a reserve of atomic blocks under Linux 6.12.
        1 => 51_200_u64..53_000,
    ]
    .boxed()
}

/// Makes the parts of a zone: the gap before its span, the number of its frames, and up to two holes.
fn shape() -> impl Strategy<Value = (u64, u64, Vec<(u64, u64)>)> {
    let gaps = prop_oneof![Just(0_u64), 1_u64..5000, Just(1024_u64)];
    let holes = prop_oneof![
        3 => Just(vec![]),
        2 => prop::collection::vec((0_u64..4000, 1_u64..700), 1..3),
    ];
    (gaps, sizes(), holes)
}

/// Makes a random machine.
pub(crate) fn machines() -> impl Strategy<Value = Machine> {
    let layouts = prop::sample::select(LAYOUTS);
    let min_free = prop_oneof![Just(None), (0_u64..400).prop_map(Some), (0_u64..8000).prop_map(Some)];
    (
        layouts,
        prop::collection::vec(shape(), 3),
        prop::collection::vec(0_u16..2, 1..=4),
        prop::sample::select(&[4096_u32, 4096, 16_384, 0, 1][..]),
        min_free,
        prop::sample::select(&[10_u32, 10, 200, 3000][..]),
        prop::sample::select(&[15_000_u32, 15_000, 0][..]),
        0_u64..3,
        (
            prop::sample::select(&[256_u32, 32, 1, 0][..]),
            prop::sample::select(&[0_u32, 0, 8, 100][..]),
            prop::option::weighted(0.3, any::<[u8; 4]>()),
        ),
    )
        .prop_map(
            |(layout, shapes, cpus, page_bytes, min_free_kbytes, scale_factor, boost_factor, start, more)| {
                let (lowmem_ratio, high_fraction, distances) = more;
                let mut at = start * 0x10_0001;
                let zones = layout
                    .iter()
                    .zip(shapes)
                    .map(|(&(node, kind), (gap, size, holes))| {
                        at += gap;
                        let span = at..at + size;
                        at = span.end;
                        ZoneShape { kind, node, regions: regions(span.clone(), holes), span }
                    })
                    .collect();
                Machine {
                    zones,
                    cpus,
                    page_bytes,
                    min_free_kbytes,
                    scale_factor,
                    boost_factor,
                    lowmem_ratio,
                    high_fraction,
                    distances,
                }
            },
        )
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
        1 => Just(ordinary | RequestTraits::BYPASS_PCP),
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

fn free_traits() -> impl Strategy<Value = FreeTraits> {
    prop_oneof![
        8 => Just(FreeTraits::empty()),
        2 => (0..=FreeTraits::all().bits()).prop_map(FreeTraits::from_bits_truncate),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        8 => Just(How::Right),
        1 => (0_u8..11).prop_map(How::Order),
        1 => (1_u64..1024).prop_map(How::Inside),
        1 => Just(How::Twice),
    ]
}

/// Makes an operation that allocates until no memory is left.
fn fill() -> impl Strategy<Value = Operation> {
    let traits = RequestTraits::NO_WATERMARKS | RequestTraits::MAY_WAIT;
    let wish = Wish {
        order: 0,
        migratetype: MigrateType::Movable,
        highest: ZoneKind::Movable,
        node: None,
        below: None,
        traits,
    };
    cpu().prop_map(move |cpu| Operation::Fill(cpu, wish))
}

/// Makes a program that allocates all memory before every operation.
pub(crate) fn dry_programs() -> impl Strategy<Value = Vec<Operation>> {
    let step = (fill(), operations()).prop_map(|(fill, operation)| [fill, operation]);
    prop::collection::vec(step, 1..30).prop_map(|steps| steps.into_iter().flatten().collect())
}

/// Makes a random operation.
pub(crate) fn operations() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let many: u16 = if cfg!(miri) { 8 } else { 900 };
    let block = any::<usize>;
    prop_oneof![
        8 => (cpu(), wish()).prop_map(|(cpu, wish)| Alloc(cpu, wish)),
        3 => (cpu(), wish(), 1_u16..many).prop_map(|(cpu, wish, count)| AllocMany(cpu, wish, count)),
        1 => (cpu(), wish()).prop_map(|(cpu, wish)| Fill(cpu, wish)),
        10 => (cpu(), block(), how(), free_traits())
            .prop_map(|(cpu, block, how, traits)| Free { cpu, block, how, traits }),
        5 => (cpu(), block(), 1_u16..many).prop_map(|(cpu, block, count)| FreeMany { cpu, block, count }),
        1 => (cpu(), prop_oneof![0_u64..60_000, any::<u64>(), Just(u64::MAX)], 0_u8..11)
            .prop_map(|(cpu, pfn, order)| FreeFrame { cpu, pfn, order }),
        3 => (cpu(), block(), any::<u64>(), 0_u8..4)
            .prop_map(|(cpu, block, offset, order)| FreeNear { cpu, block, offset, order }),
        2 => (cpu(), block(), 0_u8..80, any::<bool>())
            .prop_map(|(cpu, block, count, twice)| FreeBatch { cpu, block, count, twice }),
        2 => (cpu(), wish(), 0_u8..90, 0_u8..10)
            .prop_map(|(cpu, wish, slots, filled)| Bulk { cpu, wish, slots, filled }),
        2 => (cpu(), wish(), prop_oneof![0_u64..1030, 1_u64..20])
            .prop_map(|(cpu, wish, frames)| Exact { cpu, wish, frames }),
        3 => (cpu(), block(), 0_u64..1024, prop_oneof![0_u64..9, 0_u64..2000, any::<u64>()])
            .prop_map(|(cpu, block, offset, frames)| FreeRange { cpu, block, offset, frames }),
        1 => (cpu(), block(), 0_u64..1024, prop_oneof![0_u64..9, 0_u64..2000, any::<u64>()])
            .prop_map(|(cpu, block, offset, frames)| SplitRange { cpu, block, offset, frames }),
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
        1 => (0_u16..4, 0_u64..500, prop_oneof![0_u64..200, any::<u64>()])
            .prop_map(|(zone, min, step)| SetWatermarks { zone, min, step }),
        1 => (cpu(), block(), any::<u64>(), any::<bool>())
            .prop_map(|(cpu, zone, offset, drained)| MarkBad { cpu, zone, offset, drained }),
        2 => (cpu(), block(), any::<u64>(), prop_oneof![0_u64..9, 0_u64..1500])
            .prop_map(|(cpu, zone, offset, frames)| AddMemory { cpu, zone, offset, frames }),
        1 => (cpu(), block(), any::<u64>()).prop_map(|(cpu, zone, offset)| Look { cpu, zone, offset }),
    ]
}
