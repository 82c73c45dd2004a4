//! Decodes machines and operations from bytes, for the fuzz targets.

use arbitrary::{Arbitrary, Result, Unstructured};
use pageset_core::{FreeTraits, MigrateType, RequestTraits, ZoneKind};

use crate::family::machine::{LAYOUTS, Machine, ZoneShape, regions};
use crate::family::operation::{How, Operation, Wish};

/// Largest number of operations in one program.
const OPERATIONS_MAX: usize = 64;

/// Decodes a machine, a program for the machine, and the number of operations between two complete checks. A
/// complete check takes time proportional to the number of frames.
pub(crate) fn program(bytes: &mut Unstructured<'_>) -> Result<(Machine, Vec<Operation>, usize)> {
    let machine = machine(bytes)?;
    let mut operations = Vec::new();
    while !bytes.is_empty() && operations.len() < OPERATIONS_MAX {
        operations.push(operation(bytes)?);
    }
    let frames: u64 = machine.zones.iter().map(|zone| zone.span.end - zone.span.start).sum();
    Ok((machine, operations, 1 + frames as usize / 64))
}

/// Decodes a machine. The zones of a machine are small, so that many programs run. A few machines have a zone
/// that is large enough for a reserve of atomic blocks.
fn machine(bytes: &mut Unstructured<'_>) -> Result<Machine> {
    let layout = *bytes.choose(LAYOUTS)?;
    let mut at = u64::from(bytes.int_in_range(0..=2_u8)?) * 0x10_0001;
    let mut zones = Vec::new();
    for &(node, kind) in layout {
        at += *bytes.choose(&[0, 0, 1, 700, 1024])?;
        let size = match u8::arbitrary(bytes)? {
            0..=80 => bytes.int_in_range(1_u64..=200)?,
            81..=220 => bytes.int_in_range(200_u64..=1400)?,
            221..=254 => bytes.int_in_range(1400_u64..=3300)?,
            255 => 51_300,
        };
        let span = at..at + size;
        at = span.end;
        let mut holes = Vec::new();
        for _ in 0..bytes.int_in_range(0..=4_u8)?.saturating_sub(2) {
            holes.push((bytes.int_in_range(0..=2000)?, bytes.int_in_range(1..=700)?));
        }
        zones.push(ZoneShape { kind, node, regions: regions(span.clone(), holes), span });
    }
    let mut cpus = Vec::new();
    for _ in 0..bytes.int_in_range(1..=4_u8)? {
        cpus.push(bytes.int_in_range(0..=1)?);
    }
    Ok(Machine {
        zones,
        cpus,
        page_bytes: *bytes.choose(&[4096, 4096, 4096, 16_384, 0, 1])?,
        min_free_kbytes: *bytes.choose(&[Some(0), Some(0), Some(60), Some(400), None])?,
        scale_factor: *bytes.choose(&[10, 10, 200, 3000])?,
        boost_factor: *bytes.choose(&[15_000, 15_000, 0])?,
        lowmem_ratio: *bytes.choose(&[256, 32, 1, 0])?,
        high_fraction: *bytes.choose(&[0, 0, 8, 100])?,
        distances: <_>::arbitrary(bytes)?,
    })
}

/// Decodes the number of a CPU, which need not exist on the machine.
fn cpu(bytes: &mut Unstructured<'_>) -> Result<u32> {
    bytes.choose(&[0, 0, 0, 1, 1, 1, 2, 3, 4, u32::MAX]).copied()
}

fn zone(bytes: &mut Unstructured<'_>) -> Result<u16> {
    bytes.int_in_range(0..=3)
}

fn order(bytes: &mut Unstructured<'_>) -> Result<u8> {
    bytes.choose(&[0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 9, 10, 10]).copied()
}

fn migratetype(bytes: &mut Unstructured<'_>) -> Result<MigrateType> {
    use MigrateType::{Cma, HighAtomic, Isolate, Movable, Reclaimable, Unmovable};
    let types =
        [Unmovable, Unmovable, Unmovable, Movable, Movable, Movable, Reclaimable, HighAtomic, Cma, Isolate];
    bytes.choose(&types).copied()
}

fn wish(bytes: &mut Unstructured<'_>) -> Result<Wish> {
    let ordinary = RequestTraits::WAKE_KSWAPD | RequestTraits::MAY_WAIT;
    let atomic = RequestTraits::WAKE_KSWAPD | RequestTraits::HIGH_PRIORITY;
    let traits = match bytes.int_in_range(0..=7_u8)? {
        0..=2 => ordinary,
        3..=4 => atomic,
        5 => ordinary | RequestTraits::NO_WATERMARKS,
        _ => RequestTraits::from_bits_truncate(u16::from(u8::arbitrary(bytes)?)),
    };
    let highest = [ZoneKind::Movable, ZoneKind::Movable, ZoneKind::Normal, ZoneKind::Dma32, ZoneKind::Dma];
    Ok(Wish {
        order: order(bytes)?,
        migratetype: migratetype(bytes)?,
        highest: *bytes.choose(&highest)?,
        node: *bytes.choose(&[None, None, None, Some((0, false)), Some((1, true)), Some((2, false))])?,
        below: if bytes.ratio(1_u8, 16)? { Some(u64::from(u16::arbitrary(bytes)?)) } else { None },
        traits,
    })
}

fn how(bytes: &mut Unstructured<'_>) -> Result<How> {
    Ok(match bytes.int_in_range(0..=15_u8)? {
        0 => How::Order(bytes.int_in_range(0..=10)?),
        1 => How::Inside(bytes.int_in_range(1..=1023)?),
        2 => How::Twice,
        _ => How::Right,
    })
}

/// Decodes a number of frames: a few, many, or more than any machine has.
fn frames(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.int_in_range(0..=7_u8)? {
        0 => u64::arbitrary(bytes)?,
        1 | 2 => bytes.int_in_range(0..=2000)?,
        _ => bytes.int_in_range(0..=20)?,
    })
}

fn operation(bytes: &mut Unstructured<'_>) -> Result<Operation> {
    use Operation::*;
    let (cpu, block) = (cpu(bytes)?, usize::from(u16::arbitrary(bytes)?));
    let offset = |bytes: &mut Unstructured<'_>| u16::arbitrary(bytes).map(u64::from);
    Ok(match bytes.int_in_range(0..=49_u8)? {
        0..=8 => Alloc(cpu, wish(bytes)?),
        9..=12 => AllocMany(cpu, wish(bytes)?, bytes.int_in_range(1..=100)?),
        13..=19 => {
            let traits = FreeTraits::from_bits_truncate(bytes.int_in_range(0..=15_u8)?.saturating_sub(12));
            Free { cpu, block, how: how(bytes)?, traits }
        }
        20..=22 => FreeMany { cpu, block, count: bytes.int_in_range(1..=100)? },
        23 => FreeFrame { cpu, pfn: frames(bytes)?, order: order(bytes)? },
        24 => FreeBatch { cpu, block, count: bytes.int_in_range(0..=80)?, twice: bytes.arbitrary()? },
        25 => {
            let (slots, filled) = (bytes.int_in_range(0..=90)?, bytes.int_in_range(0..=10)?);
            Bulk { cpu, wish: wish(bytes)?, slots, filled }
        }
        26 | 27 => Exact { cpu, wish: wish(bytes)?, frames: frames(bytes)? },
        28 | 29 => FreeRange { cpu, block, offset: offset(bytes)?, frames: frames(bytes)? },
        30 => SplitRange { cpu, block, offset: offset(bytes)?, frames: frames(bytes)? },
        31 => AllocAt { cpu, zone: block, offset: offset(bytes)?, wish: wish(bytes)? },
        32 => Tick(cpu, bytes.int_in_range(1..=4)?),
        33 => Isolate { cpu, zone: block, offset: offset(bytes)? },
        34 => Unisolate { cpu, zone: block, offset: offset(bytes)?, to: migratetype(bytes)? },
        35 => MarkBad { cpu, zone: block, offset: offset(bytes)?, drained: bytes.arbitrary()? },
        36 => Look { cpu, zone: block, offset: offset(bytes)? },
        38 => Fill(cpu, wish(bytes)?),
        39 | 40 => FreeNear { cpu, block, offset: offset(bytes)?, order: order(bytes)? },
        41 => FreeRange { cpu, block, offset: offset(bytes)?, frames: bytes.int_in_range(1..=12)? },
        42 => SplitRange { cpu, block, offset: offset(bytes)?, frames: bytes.int_in_range(1..=12)? },
        37 => AddMemory { cpu, zone: block, offset: offset(bytes)?, frames: frames(bytes)? },
        _ => administer(bytes, cpu)?,
    })
}

fn administer(bytes: &mut Unstructured<'_>, cpu: u32) -> Result<Operation> {
    use Operation::*;
    Ok(match bytes.int_in_range(0..=13_u8)? {
        0 => DrainCpu(cpu, self::cpu(bytes)?),
        1 => DrainZone(cpu, zone(bytes)?),
        2 => DrainAll(cpu),
        3 => Offline(cpu),
        4 => Online(cpu),
        5 => Fraction(*bytes.choose(&[0, 1, 7, 8, 100, 100_000, u32::MAX])?),
        6 => MinFree(frames(bytes)?),
        7 => ScaleFactor(*bytes.choose(&[0, 10, 3000, 20_000, u32::MAX])?),
        8 => BoostFactor(*bytes.choose(&[0, 15_000, u32::MAX])?),
        9 => EndBoost(cpu, zone(bytes)?, frames(bytes)?),
        10 => SetReclaim(zone(bytes)?, bytes.arbitrary()?),
        11 => SetBelowHigh(zone(bytes)?, bytes.arbitrary()?),
        12 => SetCacheSlice(cpu, bytes.arbitrary()?),
        _ => SetWatermarks { zone: zone(bytes)?, min: frames(bytes)?, step: frames(bytes)? },
    })
}
