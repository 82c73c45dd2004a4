//! Operations, including misuse. An operation names a block by any number, and the model maps the number to a
//! block in use.

use pageset_core::{FreeTraits, MigrateType, RequestTraits, ZoneKind};

/// One operation. The arguments of an operation may be invalid.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Alloc(u32, Wish),
    AllocMany(u32, Wish, u16),
    /// Allocates until no memory is left.
    Fill(u32, Wish),
    Free {
        cpu: u32,
        block: usize,
        how: How,
        traits: FreeTraits,
    },
    FreeMany {
        cpu: u32,
        block: usize,
        count: u16,
    },
    FreeFrame {
        cpu: u32,
        pfn: u64,
        order: u8,
    },
    /// Frees a frame in or beside a block in use.
    FreeNear {
        cpu: u32,
        block: usize,
        offset: u64,
        order: u8,
    },
    FreeBatch {
        cpu: u32,
        block: usize,
        count: u8,
        twice: bool,
    },
    Bulk {
        cpu: u32,
        wish: Wish,
        slots: u8,
        filled: u8,
    },
    Exact {
        cpu: u32,
        wish: Wish,
        frames: u64,
    },
    FreeRange {
        cpu: u32,
        block: usize,
        offset: u64,
        frames: u64,
    },
    SplitRange {
        cpu: u32,
        block: usize,
        offset: u64,
        frames: u64,
    },
    AllocAt {
        cpu: u32,
        zone: usize,
        offset: u64,
        wish: Wish,
    },
    Tick(u32, u8),
    DrainCpu(u32, u32),
    DrainZone(u32, u16),
    DrainAll(u32),
    Offline(u32),
    Online(u32),
    Isolate {
        cpu: u32,
        zone: usize,
        offset: u64,
    },
    Unisolate {
        cpu: u32,
        zone: usize,
        offset: u64,
        to: MigrateType,
    },
    Fraction(u32),
    MinFree(u64),
    ScaleFactor(u32),
    BoostFactor(u32),
    EndBoost(u32, u16, u64),
    SetReclaim(u16, bool),
    SetBelowHigh(u16, bool),
    SetCacheSlice(u32, u32),
    SetWatermarks {
        zone: u16,
        min: u64,
        step: u64,
    },
    AddMemory {
        cpu: u32,
        zone: usize,
        offset: u64,
        frames: u64,
    },
    MarkBad {
        cpu: u32,
        zone: usize,
        offset: u64,
        drained: bool,
    },
    Look {
        cpu: u32,
        zone: usize,
        offset: u64,
    },
}

/// The arguments of a free: right arguments, a wrong order, a frame inside the block, or right arguments in
/// two frees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Right,
    Order(u8),
    Inside(u64),
    Twice,
}

/// The parts of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) order: u8,
    pub(crate) migratetype: MigrateType,
    pub(crate) highest: ZoneKind,
    pub(crate) node: Option<(u16, bool)>,
    pub(crate) below: Option<u64>,
    pub(crate) traits: RequestTraits,
}
