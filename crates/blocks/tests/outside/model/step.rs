//! What programs do with an allocator.

/// CPUs of the machine.
pub(crate) const CPUS: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Alloc { cpu: u32, order: u8, migratetype: usize },
    Bulk { cpu: u32, count: usize },
    Exact { cpu: u32, frames: u64 },
    At { cpu: u32, pfn: u64, order: u8 },
    Free { cpu: u32, which: usize },
    FreeBatch { cpu: u32, which: usize, count: usize },
    FreePart { cpu: u32, which: usize, start: u64, len: u64 },
    Split { cpu: u32, which: usize, start: u64, len: u64 },
    Misuse { cpu: u32, pfn: u64, order: u8 },
    Isolate { cpu: u32, pfn: u64 },
    Unisolate { cpu: u32, pfn: u64, migratetype: usize },
    Bad { cpu: u32, pfn: u64 },
    Tick { cpu: u32 },
    Offline { cpu: u32 },
    Online { cpu: u32 },
    Drain { cpu: u32 },
    DrainAll,
    MinFree { kbytes: u64 },
}

/// Bytes of a step.
const STEP_BYTES: usize = 6;

impl Step {
    /// A program that any bytes are. Frames and orders go a little beyond what there is.
    pub(crate) fn program(bytes: &[u8]) -> Vec<Self> {
        bytes.as_chunks::<STEP_BYTES>().0.iter().map(Self::from_bytes).collect()
    }

    fn from_bytes([kind, cpu, low, high, third, fourth]: &[u8; STEP_BYTES]) -> Self {
        let cpu = u32::from(*cpu) % CPUS;
        let wide = u16::from_le_bytes([*low, *high]);
        let (order, which, pfn) = (third % 11, usize::from(wide), u64::from(wide) % 8000);
        let migratetype = usize::from(*fourth) % 3;
        let aligned = pfn >> order << order;
        let count = 1 + usize::from(u16::from_le_bytes([*third, *fourth])) % 600;
        match kind % 32 {
            0..6 => Self::Alloc { cpu, order, migratetype },
            6..9 => Self::Alloc { cpu, order: order % 3, migratetype },
            9 => Self::Bulk { cpu, count },
            10 => Self::Exact { cpu, frames: 1 + u64::from(wide) % 1024 },
            11..13 => Self::At { cpu, pfn: aligned, order },
            13..19 => Self::Free { cpu, which },
            19 => Self::FreeBatch { cpu, which, count },
            20 => {
                Self::FreePart { cpu, which, start: u64::from(*third) * 3, len: 1 + u64::from(*fourth) * 3 }
            }
            21 => Self::Split { cpu, which, start: u64::from(*third) * 3, len: 1 + u64::from(*fourth) * 3 },
            22 => Self::Misuse { cpu, pfn: if fourth % 2 == 0 { pfn } else { aligned }, order },
            23..25 => Self::Isolate { cpu, pfn },
            25 => Self::Unisolate { cpu, pfn, migratetype },
            26 => Self::Bad { cpu, pfn },
            27 => Self::Offline { cpu },
            28 => Self::Online { cpu },
            29 => Self::Tick { cpu },
            30 => Self::Drain { cpu },
            _ if which.is_multiple_of(2) => Self::DrainAll,
            _ => Self::MinFree { kbytes: u64::from(wide) << (third % 48) },
        }
    }
}
