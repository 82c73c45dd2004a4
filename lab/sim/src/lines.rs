//! Models the cache lines of an allocator without locks: which CPUs have a line, and when the next CPU gets
//! the line.
//!
//! Atomic operations happen in the order of virtual time. A line belongs to the CPU that wrote it last. A CPU
//! that has read the line after its last write has a copy of the line. To write a line, a CPU needs the only
//! copy of the line. To read a line, a CPU needs any copy. A CPU that lacks the needed copy must fetch the
//! line. CPUs fetch a line one after another, at a cost that grows with distance. So if two CPUs race to
//! compare-exchange one word, the second CPU waits for the line and then fails, as on a real machine.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use pageset_blocks::LineUse;

use crate::engine::{Engine, current};
use crate::footprint::{Footprint, LINE_BYTES};
use crate::recency::Held;

/// The cache lines of an allocator's tables.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The address range of each table, and the number of the table's first line.
    tables: Vec<(Range<usize>, usize)>,
    /// The fields of each [`Line`]. The fields are plain integers, so that the operating system can provide
    /// zeroed memory, and only for pages that are written.
    lines: RefCell<Vec<[u64; 3]>>,
    /// For each line with copies, the set of CPUs that have a copy: one bit for each CPU.
    copies: RefCell<Vec<Box<[Cell<u64>]>>>,
    cpus: usize,
}

/// The state of one cache line.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The [`Footprint`]'s mark of the CPU that wrote the line last. If no CPU has written the line, the mark
    /// of the CPU that read the line first.
    mark: u64,
    /// Time at which the last transfer of the line between CPUs was complete, in picoseconds; 0 before the
    /// first transfer.
    arrives_ps: u64,
    /// Index of the line's set of copies in [`Lines::copies`], plus one; 0 if the line never had copies.
    copies: u64,
}

/// Number of CPUs that have their bits in one word of a set of copies.
const WORD_COPIES: u32 = u64::BITS;

impl Lines {
    /// Makes the model of the cache lines of tables. `tables` has the addresses of each table, and `cpus` is
    /// the number of CPUs.
    pub(crate) fn new(tables: impl IntoIterator<Item = Range<usize>>, cpus: u32) -> Self {
        let mut all = 0;
        let tables = tables.into_iter().map(|addresses| {
            let first = all;
            all += addresses.len().div_ceil(LINE_BYTES as usize);
            (addresses, first)
        });
        let tables = tables.collect();
        Self {
            tables,
            lines: RefCell::new(vec![[0; 3]; all]),
            copies: RefCell::default(),
            cpus: cpus as usize,
        }
    }

    /// Index of the table that holds the word at `address`, and the number of the word's line. `None` if no
    /// table holds the word.
    #[inline]
    fn find(&self, address: usize) -> Option<(usize, usize)> {
        let table = self.tables.iter().position(|(addresses, _)| addresses.contains(&address))?;
        let (addresses, first) = &self.tables[table];
        Some((table, first + (address - addresses.start) / LINE_BYTES as usize))
    }

    #[inline]
    fn get(&self, number: usize) -> Line {
        let [mark, arrives_ps, copies] = self.lines.borrow()[number];
        Line { mark, arrives_ps, copies }
    }

    #[inline]
    fn set(&self, number: usize, Line { mark, arrives_ps, copies }: Line) {
        self.lines.borrow_mut()[number] = [mark, arrives_ps, copies];
    }

    /// Returns the CPUs that have copies of a line.
    fn holders(&self, line: Line) -> Vec<u32> {
        let mut holders = Vec::new();
        if let Some(place) = line.copies.checked_sub(1) {
            for (word, first) in
                self.copies.borrow()[place as usize].iter().zip((0..).step_by(WORD_COPIES as usize))
            {
                let mut bits = word.get();
                while bits != 0 {
                    holders.push(first + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
        holders
    }

    #[inline]
    fn has_copy(&self, line: Line, cpu: u32) -> bool {
        line.copies.checked_sub(1).is_some_and(|place| {
            let word = &self.copies.borrow()[place as usize][(cpu / WORD_COPIES) as usize];
            word.get() >> (cpu % WORD_COPIES) & 1 == 1
        })
    }

    #[inline]
    fn has_copies(&self, line: Line) -> bool {
        let copies = self.copies.borrow();
        line.copies
            .checked_sub(1)
            .is_some_and(|place| copies[place as usize].iter().any(|word| word.get() != 0))
    }

    fn add_copy(&self, line: &mut Line, cpu: u32) {
        let mut copies = self.copies.borrow_mut();
        if line.copies == 0 {
            copies.push(vec![Cell::new(0); self.cpus.div_ceil(WORD_COPIES as usize)].into());
            line.copies = copies.len() as u64;
        }
        let word = &copies[line.copies as usize - 1][(cpu / WORD_COPIES) as usize];
        word.set(word.get() | 1 << (cpu % WORD_COPIES));
    }

    fn drop_copies(&self, line: Line) {
        if let Some(place) = line.copies.checked_sub(1) {
            self.copies.borrow()[place as usize].iter().for_each(|word| word.set(0));
        }
    }
}

/// Receives each atomic operation of an allocator without locks, and charges the running virtual CPU.
pub(crate) fn observe(address: usize, how: LineUse) {
    current::with(|engine| {
        if let Some(engine) = engine {
            engine.use_word(address, how);
        }
    });
}

impl Engine {
    /// Charges the running CPU for the atomic operation that the CPU is about to do on a word of the
    /// allocator.
    #[inline]
    fn use_word(&self, address: usize, how: LineUse) {
        let Some((table, number)) = self.lines.find(address) else { return };
        self.sync();
        let me = self.cpu_index();
        let line = self.lines.get(number);
        let owner = Footprint::cpu_of(line.mark);
        let is_here = match how {
            LineUse::Read => owner == Some(me) || self.lines.has_copy(line, me),
            LineUse::Write | LineUse::Exchange => owner == Some(me) && !self.lines.has_copies(line),
        };
        if !is_here {
            return self.get_line(table, number, how);
        }
        if owner == Some(me) {
            self.use_own(number, line, me);
        }
        if how == LineUse::Exchange {
            let included = &self.cpu().scratch.exchanges_included;
            match included.get().checked_sub(1) {
                Some(left) => included.set(left),
                None => self.charge(self.prices.atomic),
            }
        }
    }

    /// Charges the running CPU for using a line that this CPU wrote last. The cost depends on the number of
    /// other lines that the CPU has used since it last used this line.
    #[inline]
    fn use_own(&self, number: usize, line: Line, me: u32) {
        let mut footprint = self.footprint.borrow_mut();
        let held = footprint.held(line.mark);
        self.lines.set(number, Line { mark: footprint.renew(line.mark, me, 1), ..line });
        self.charge(self.price_of_own(held));
    }

    #[inline]
    fn price_of_own(&self, held: Held) -> u64 {
        match held {
            Held::Near => 0,
            Held::Shared => self.prices.metadata[1],
            Held::Nowhere => self.prices.metadata[2],
        }
    }

    /// Fetches a line for the running CPU from memory or from other CPUs. A CPU that writes a line must
    /// invalidate all other copies of the line. So a writing CPU sends requests to all CPUs that have a copy,
    /// and waits for the slowest answer.
    fn get_line(&self, table: usize, number: usize, how: LineUse) {
        let (me, cpu) = (self.cpu_index(), self.cpu());
        let mut line = self.lines.get(number);
        let is_write = how != LineUse::Read;
        let from_owner = Footprint::cpu_of(line.mark).filter(|owner| *owner != me).map(|owner| {
            match self.footprint.borrow().held(line.mark) {
                Held::Nowhere => self.prices.metadata[2],
                Held::Near | Held::Shared => self.variation.of(self.line(owner, me)),
            }
        });
        let copies = if is_write { self.lines.holders(line) } else { Vec::new() };
        let from_copies =
            copies.into_iter().filter(|cpu| *cpu != me).map(|cpu| self.variation.of(self.line(cpu, me)));
        let pass = from_owner.into_iter().chain(from_copies).max();
        let now = cpu.clock.get();
        let begins = now.max(line.arrives_ps);
        let exchange = if how == LineUse::Exchange { self.prices.atomic } else { 0 };
        let done = begins.saturating_add(pass.unwrap_or(self.prices.metadata[2]) + exchange);
        cpu.clock.set(done);
        if pass.is_some() {
            line.arrives_ps = done;
            self.tally.borrow_mut().lines.passed(table, done - now, begins - now);
        }
        if is_write || line.mark == 0 {
            self.lines.drop_copies(line);
            line.mark = self.footprint.borrow_mut().renew(line.mark, me, 1);
        } else {
            self.lines.add_copy(&mut line, me);
        }
        self.lines.set(number, line);
        self.note(done ^ number as u64);
    }
}
