//! Random programs. A program has the configuration of an engine, and a sequence of operations of its tasks.
//! Any bytes are a valid program, so a fuzzer can write programs.

use pageset_fault::{Access, EngineConfig, Geometry, Huge, Options, Prot, Strategy};

/// A program: a configuration of an engine, and operations on this engine.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) config: EngineConfig,
    /// Two sets of options. A new address space has one of the two sets, and a forked address space has its
    /// parent's options.
    pub(crate) options: [Options; 2],
    pub(crate) operations: Vec<Operation>,
}

/// One operation. An operation names a task or an address space by any number, which is taken modulo the
/// number of existing tasks or spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    NewSpace {
        options: bool,
    },
    EndSpace {
        space: u8,
    },
    NewTask {
        space: u8,
        cpu: u8,
    },
    EndTask {
        task: u8,
    },
    Map {
        task: u8,
        at: Span,
        prot: Prot,
    },
    Unmap {
        task: u8,
        at: Span,
    },
    Protect {
        task: u8,
        at: Span,
        prot: Prot,
    },
    Load {
        task: u8,
        page: u8,
    },
    Store {
        task: u8,
        page: u8,
    },
    Fault {
        task: u8,
        page: u8,
        access: Access,
    },
    FaultIn {
        task: u8,
        space: u8,
        page: u8,
        access: Access,
    },
    Fork {
        task: u8,
    },
    Collapse {
        task: u8,
        page: u8,
    },
    Reclaim {
        task: u8,
        page: u8,
    },
    Schedule {
        task: u8,
    },
    Prezero {
        task: u8,
        frames: u8,
    },
    /// Lets the allocator fail after `allocations` further allocations. If `allocations` is 128 or more, the
    /// allocator does not fail.
    FailAfter {
        allocations: u8,
    },
    /// Sets whether the memory keeps the contents of reclaimed pages.
    KeepContents {
        keeps: bool,
    },
    Check,
}

/// A range of pages. The range may be empty, begin or end inside a page, or reach beyond the address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) page: u8,
    pub(crate) pages: u8,
    /// The numbers of bytes to add to the range's start and end.
    pub(crate) skew: (u8, u8),
}

/// Reads bytes one by one. After the last byte, all further bytes are zero.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn is_even(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn prot(&mut self) -> Prot {
        match self.next() % 8 {
            0 => Prot::None,
            1 | 2 => Prot::Read,
            _ => Prot::ReadWrite,
        }
    }

    fn access(&mut self) -> Access {
        if self.is_even() { Access::Write } else { Access::Read }
    }

    fn span(&mut self) -> Span {
        let (page, pages) = (self.next(), self.next());
        // About one range in 16 does not begin and end at page boundaries.
        let skew = if pages >= 0xF0 { (self.next(), self.next()) } else { (0, 0) };
        Span { page, pages: pages % 20, skew }
    }

    fn config(&mut self) -> EngineConfig {
        let (page_shift, index_bits, levels) =
            [(12, 3, 3), (12, 3, 3), (12, 1, 2), (6, 2, 3), (14, 2, 6), (12, 3, 2), (30, 2, 4), (6, 11, 2)]
                [usize::from(self.next() % 8)];
        let geometry = Geometry::new(page_shift, index_bits, levels).expect("a geometry");
        // Use either so few page tables that the tables run out, or as many page tables as any program can
        // need.
        let tables = match (self.next(), index_bits) {
            (few @ 0..32, _) => u32::from(few),
            (_, 11) => 32,
            _ => 600,
        };
        EngineConfig {
            geometry,
            cpus: 2,
            tasks: 4,
            tables,
            prezeroed: u32::from(self.next() % 4),
            magazine: [0, 0, 1, 5, 32][usize::from(self.next() % 5)],
            lru_lists: u16::from(self.next() % 4),
        }
    }

    fn options(&mut self) -> Options {
        let strategies: Vec<_> = Strategy::all().collect();
        let strategy = strategies[usize::from(self.next()) % strategies.len()];
        let kind = self.next();
        Options {
            strategy,
            huge: if kind % 2 == 1 { Huge::Always } else { Huge::Never },
            gang_order: [0, 0, 1, 2, 3, 200][usize::from(kind / 2 % 6)],
            prefault_order: [0, 0, 1, 3, 200][usize::from(kind / 12 % 5)],
        }
    }

    fn operation(&mut self) -> Operation {
        let kind = self.next() % 40;
        let task = self.next();
        match kind {
            0 => Operation::NewSpace { options: self.is_even() },
            1 => Operation::EndSpace { space: self.next() },
            2 | 3 => Operation::NewTask { space: self.next(), cpu: self.next() },
            4 => Operation::EndTask { task },
            5..=8 => Operation::Map { task, at: self.span(), prot: self.prot() },
            9 | 10 => Operation::Unmap { task, at: self.span() },
            11..=13 => Operation::Protect { task, at: self.span(), prot: self.prot() },
            14..=16 => Operation::Load { task, page: self.next() },
            17..=22 => Operation::Store { task, page: self.next() },
            23..=25 => Operation::Fault { task, page: self.next(), access: self.access() },
            26 | 27 => {
                Operation::FaultIn { task, space: self.next(), page: self.next(), access: self.access() }
            }
            28 | 29 => Operation::Fork { task },
            30..=32 => Operation::Collapse { task, page: self.next() },
            33 | 34 => Operation::Reclaim { task, page: self.next() },
            35 => Operation::Schedule { task },
            36 => Operation::Prezero { task, frames: self.next() % 8 },
            37 => Operation::FailAfter { allocations: self.next() },
            38 => Operation::KeepContents { keeps: self.is_even() },
            _ => Operation::Check,
        }
    }
}

impl Program {
    /// Decodes bytes into a program.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes.iter());
        let config = bytes.config();
        let mut options = [bytes.options(), bytes.options()];
        for options in &mut options {
            if config.geometry.huge_order().is_none() {
                options.huge = Huge::Never;
            }
        }
        let mut operations = Vec::new();
        while !bytes.0.as_slice().is_empty() {
            operations.push(bytes.operation());
        }
        Self { config, options, operations }
    }
}
