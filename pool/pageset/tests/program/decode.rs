//! Random programs, and the decoder that makes a program from bytes.

use std::fmt;
use std::time::Duration;

use pageset::{
    Backing, FastPath, Fork, HugePageSize, Numa, Order, PAGE_BYTES, Prezero, Residency, ReturnPolicy, Worker,
};

/// The most steps of a program, so that each program runs in a short time.
const STEPS_MAX: usize = 150;

/// The settings of a pool, and the steps to run.
#[derive(Clone)]
pub(crate) struct Program {
    pub(super) setup: Setup,
    pub(super) steps: Vec<Step>,
}

/// The settings of a pool.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) bytes: usize,
    pub(super) capacity: Option<usize>,
    pub(super) memory: Memory,
    pub(super) numa: Numa,
    pub(super) fork: Fork,
    pub(super) residency: Residency,
    pub(super) fast_path: FastPath,
    pub(super) returns: ReturnPolicy,
    /// Whether the pool is pinned.
    pub(super) is_pinned: bool,
}

/// The memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Of(Backing),
    /// The caller's own memory, filled with a pattern.
    Lent,
}

/// One step of a program. A step selects pages by a number, modulo the number of pages that the step can
/// select.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Alloc {
        order: Order,
    },
    AllocZeroed {
        order: Order,
    },
    Bulk {
        count: usize,
    },
    Exact {
        count: usize,
    },
    Run {
        count: usize,
        zeroed: bool,
    },
    At {
        frame: usize,
        order: Order,
    },
    Free {
        which: usize,
    },
    /// Frees every `nth` of the pages that the program holds.
    FreeSome {
        nth: usize,
    },
    Split {
        which: usize,
        at: usize,
    },
    Discard {
        which: usize,
    },
    Shrink {
        which: usize,
        start: usize,
        count: usize,
    },
    IntoRaw {
        which: usize,
    },
    FromRaw {
        which: usize,
    },
    FromRawChecked {
        which: usize,
    },
    /// Checks pages that were freed.
    CheckFreed {
        which: usize,
    },
    Collect {
        numbers: usize,
    },
    Trim,
    Tick {
        times: usize,
    },
    Resize {
        bytes: usize,
    },
    Populate {
        bytes: usize,
    },
    Stats,
    Validate,
    Backing,
    ReadFile {
        which: usize,
    },
    Fork,
    Threads {
        seed: u64,
        steps: usize,
    },
}

/// Reads the bytes of a program as numbers. When all bytes have been read, every further number is 0.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn word(&mut self) -> usize {
        self.byte() << 8 | self.byte()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.byte() % all.len()]
    }

    /// Reads a byte, and returns `true` for about one of `times` values of the byte.
    fn rarely(&mut self, times: usize) -> bool {
        self.byte() % times == times - 1
    }
}

impl fmt::Debug for Program {
    /// Prints a line for each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.setup)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

impl Program {
    /// Decodes a program from bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut numbers = Numbers(bytes);
        let setup = Setup::decode(&mut numbers);
        let mut steps = Vec::new();
        while !numbers.0.is_empty() && steps.len() < STEPS_MAX {
            steps.push(Step::decode(&mut numbers, setup.bytes));
        }
        Self { setup, steps }
    }
}

impl Setup {
    fn decode(numbers: &mut Numbers<'_>) -> Self {
        let pages = numbers.one_of(&[512, 1024, 2048, 4096, 1, 37, 1027, 3000, 0]);
        let mut bytes = pages * PAGE_BYTES;
        if numbers.rarely(64) {
            bytes += numbers.word();
        }
        let memory = match numbers.byte() {
            250.. => Memory::Of(Backing::Hugetlb(numbers.one_of(&[HugePageSize::Mib2, HugePageSize::Gib1]))),
            // Only small pools get lent memory, because filling the memory takes time.
            230.. if pages <= 1024 => Memory::Lent,
            180.. => Memory::Of(Backing::Thp),
            90.. => Memory::Of(Backing::Memfd),
            _ => Memory::Of(Backing::Plain),
        };
        let has_capacity = numbers.byte() % 4 == 3;
        Self {
            bytes,
            capacity: has_capacity.then(|| numbers.word() % (pages + 2) * PAGE_BYTES),
            memory,
            numa: match numbers.byte() {
                ..200 => Numa::FirstTouch,
                200..220 => Numa::Bind(0),
                220..240 => Numa::Interleave(1),
                240..248 => Numa::Bind(numbers.word() as u16),
                _ => Numa::Interleave(numbers.word() as u64),
            },
            fork: numbers.one_of(&[Fork::Copy, Fork::Copy, Fork::Hide]),
            // Only small pools are locked, because locking touches all memory.
            residency: if pages <= 1024 && numbers.rarely(32) {
                Residency::Locked
            } else {
                Residency::Pageable
            },
            fast_path: numbers.one_of(&[FastPath::Auto, FastPath::Locks]),
            returns: Self::returns(numbers),
            is_pinned: numbers.rarely(32),
        }
    }

    fn returns(numbers: &mut Numbers<'_>) -> ReturnPolicy {
        let mut returns = ReturnPolicy::default();
        returns.interval = Duration::from_millis(1);
        returns.bytes_per_second = numbers.one_of(&[4 << 30, 0, 2 << 30, u64::MAX]);
        returns.keep_bytes = numbers.one_of(&[None, Some(0), Some(2 << 20), Some(5 << 20), Some(u64::MAX)]);
        returns.worker = if numbers.rarely(16) { Worker::Thread } else { Worker::None };
        returns.prezero = numbers.one_of(&[Prezero::Off, Prezero::Off, Prezero::Off, Prezero::Blocks(1)]);
        returns
    }
}

impl Step {
    fn decode(numbers: &mut Numbers<'_>, pool_bytes: usize) -> Self {
        let pages = pool_bytes / PAGE_BYTES;
        let order = |numbers: &mut Numbers<'_>| {
            Order::new(numbers.one_of(&[0, 0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 9, 10])).unwrap()
        };
        match numbers.byte() {
            ..60 => Self::Alloc { order: order(numbers) },
            60..80 => Self::AllocZeroed { order: order(numbers) },
            80..90 => Self::Bulk { count: numbers.one_of(&[0, 1, 7, 64, 250, 600, 5000, usize::MAX]) },
            90..97 => Self::Exact { count: numbers.word() % 1200 },
            97..100 => Self::Run { count: numbers.word() % (pages + 2), zeroed: numbers.rarely(2) },
            100..110 => Self::At { frame: numbers.word() % (pages + 8), order: order(numbers) },
            110..150 => Self::Free { which: numbers.word() },
            150..160 => Self::FreeSome { nth: 1 + numbers.byte() % 5 },
            160..164 => Self::Split { which: numbers.word(), at: numbers.word() },
            164..166 => Self::Discard { which: numbers.word() },
            166..175 => Self::Shrink { which: numbers.word(), start: numbers.word(), count: numbers.word() },
            175..180 => Self::IntoRaw { which: numbers.word() },
            180..184 => Self::FromRaw { which: numbers.word() },
            184..188 => Self::FromRawChecked { which: numbers.word() },
            188..192 => Self::CheckFreed { which: numbers.word() },
            192..196 => Self::Collect { numbers: numbers.word() },
            196..206 => Self::Trim,
            206..218 => Self::Tick { times: 1 + numbers.byte() % 12 },
            218..228 => Self::Resize { bytes: numbers.word() % (pages + 600) * PAGE_BYTES + numbers.byte() },
            228..231 => Self::Populate { bytes: numbers.word() * 64 },
            231..239 => Self::Stats,
            239..244 => Self::Validate,
            244 if numbers.rarely(8) => Self::Backing,
            245..250 => Self::ReadFile { which: numbers.word() },
            250 if numbers.rarely(2) => Self::Fork,
            251 if numbers.rarely(8) => {
                Self::Threads { seed: numbers.word() as u64, steps: numbers.byte() * 4 }
            }
            _ => Self::Alloc { order: Order::ZERO },
        }
    }
}
