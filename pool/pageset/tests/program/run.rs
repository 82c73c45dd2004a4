//! Runs a program on the pool and on the model, and compares the pool's answers with the model's answers.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use allocator_api2::vec::Vec as PagesVec;
use pageset::{
    AllocError, Backing, BuildError, Fork, Numa, Order, PAGE_BYTES, PageCollections, Pages, Pool, Populated,
    RawPages, Residency, Stats, Worker,
};

use super::decode::{Memory, Program, Setup, Step};
use super::model::Model;
use super::others;
use super::owned::{Owned, Pattern, check_zero};

/// Steps between two validations.
const STEPS_PER_VALIDATION: usize = 16;
/// The most freed values that the run remembers.
const FREED_MAX: usize = 64;

impl Program {
    /// Runs the program. Panics if the pool and the model disagree.
    pub(crate) fn run(&self) {
        // The function drops `lent` after the pool.
        let lent = (self.setup.memory == Memory::Lent).then(|| Lent::new(self.setup.bytes));
        match self.setup.build(lent.as_ref()) {
            Ok(pool) => Run::new(&self.setup, &pool).run(&self.steps),
            Err(error) => self.setup.check_refusal(&error),
        }
    }
}

/// Memory that the program lends to a pool, filled with a pattern.
struct Lent {
    start: NonNull<u8>,
    layout: Layout,
}

impl Lent {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), 4 << 20).unwrap();
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the memory was just allocated with this size.
        unsafe { start.write_bytes(0xa5, layout.size()) };
        Self { start, layout }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout, and the pool on it was dropped.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Setup {
    fn build(&self, lent: Option<&Lent>) -> Result<Pool, BuildError> {
        let mut builder = Pool::builder().size(self.bytes);
        match (self.memory, lent) {
            (Memory::Of(backing), _) => builder = builder.backing(backing),
            // SAFETY: the memory is initialised and outlives the pool. Only the pool uses the memory until
            // the pool is dropped.
            (Memory::Lent, Some(lent)) => builder = unsafe { builder.region(lent.start, self.bytes) },
            (Memory::Lent, None) => unreachable!("the caller has allocated it"),
        }
        if let Some(bytes) = self.capacity {
            builder = builder.capacity(bytes);
        }
        let builder = builder.numa(self.numa).fork(self.fork).residency(self.residency);
        let builder = builder.fast_path(self.fast_path).returns(self.returns);
        if self.is_pinned { builder.pinned().build() } else { builder.build() }
    }

    /// A pool may be refused only for a known reason.
    fn check_refusal(&self, error: &BuildError) {
        let is_hugetlb = matches!(self.memory, Memory::Of(Backing::Hugetlb(_)));
        let is_right = match error {
            BuildError::BadSize { multiple_of, .. } => {
                self.bytes == 0 || !self.bytes.is_multiple_of(*multiple_of)
            }
            BuildError::BadNodes { numa, .. } => *numa == self.numa && *numa != Numa::FirstTouch,
            BuildError::LockLimit { .. } => self.residency == Residency::Locked,
            BuildError::HugetlbShortage { .. } | BuildError::NoSuchHugePages { .. } => is_hugetlb,
            BuildError::CopyOfHugetlb => is_hugetlb && self.fork == Fork::Copy,
            _ => false,
        };
        assert!(is_right && !error.to_string().is_empty(), "{error:?}");
    }
}

/// The state of a running program.
pub(super) struct Run<'p> {
    pub(super) setup: &'p Setup,
    pub(super) pool: &'p Pool,
    pub(super) held: Vec<Owned<'p>>,
    /// Pages that the program holds as `RawPages`, without an owner in Rust.
    raw: Vec<(RawPages, Pattern)>,
    freed: Vec<RawPages>,
    model: Model,
    patterns: u64,
}

impl<'p> Run<'p> {
    fn new(setup: &'p Setup, pool: &'p Pool) -> Self {
        let model = Model::new(setup.bytes, setup.capacity);
        Self { setup, pool, held: Vec::new(), raw: Vec::new(), freed: Vec::new(), model, patterns: 0 }
    }

    fn run(mut self, steps: &[Step]) {
        assert_eq!(self.pool.page_count(), self.model.frames());
        for (count, step) in steps.iter().enumerate() {
            self.step(*step);
            if count % STEPS_PER_VALIDATION == STEPS_PER_VALIDATION - 1 {
                self.pool.validate().unwrap();
            }
        }
        self.held.iter().for_each(Owned::check);
        self.check_stats();
        self.pool.validate().unwrap();
        while !self.raw.is_empty() {
            self.take_back(0);
        }
        self.free_some(1);
        let _ = self.pool.resize(self.setup.bytes);
        let _ = self.model.resize(self.setup.bytes);
        self.trim();
        self.check_stats();
        self.pool.validate().unwrap();
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Alloc { order } => drop(self.alloc(order, self.pool.alloc(order))),
            Step::AllocZeroed { order } => {
                if let Some(index) = self.alloc_zeroed(order) {
                    self.held[index].check();
                }
            }
            Step::Bulk { count } => self.alloc_bulk(count),
            Step::Exact { count } => self.alloc_exact(count),
            Step::Run { count, zeroed } => self.alloc_run(count, zeroed),
            Step::At { frame, order } => {
                let expected = self.model.alloc_at(frame, order);
                let outcome = self.pool.alloc_at(frame, order);
                self.hold(expected, outcome);
            }
            Step::Free { which } => {
                if let Some(owned) = remove(&mut self.held, which) {
                    self.free(owned);
                }
            }
            Step::FreeSome { nth } => self.free_some(nth),
            Step::Split { which, at } => self.split(which, at),
            Step::Discard { which } => {
                if let Some(owned) = remove(&mut self.held, which) {
                    self.model.put(owned.first(), owned.count());
                    let _ = owned.pages.discard();
                }
            }
            Step::Shrink { which, start, count } => self.shrink(which, start, count),
            Step::IntoRaw { which } => {
                if let Some(Owned { pages, pattern }) = remove(&mut self.held, which) {
                    self.raw.push((pages.into_raw(), pattern));
                }
            }
            Step::FromRaw { which } => self.take_back(which),
            Step::FromRawChecked { which } => self.take_back_checked(which),
            Step::CheckFreed { which } => self.check_freed(which),
            Step::Collect { numbers } => self.collect(numbers),
            Step::Trim => self.trim(),
            Step::Tick { times } => {
                for _ in 0..times {
                    let _ = self.pool.tick();
                }
            }
            Step::Resize { bytes } => {
                assert_eq!(self.pool.resize(bytes), self.model.resize(bytes), "bytes in service");
            }
            Step::Populate { bytes } => {
                let go_on = |_| ControlFlow::Continue(());
                let outcome = self.pool.populate(bytes, NonZeroUsize::new(2).unwrap(), go_on);
                assert_eq!(outcome.unwrap(), Populated::All);
            }
            Step::Stats => {
                self.check_stats();
            }
            Step::Validate => self.pool.validate().unwrap(),
            Step::Backing => {
                let report = self.pool.backing().unwrap();
                assert_eq!(report.mapped_bytes, self.setup.bytes as u64);
            }
            Step::ReadFile { which } => self.read_file(which),
            Step::Fork => others::fork(self),
            Step::Threads { seed, steps } => others::threads(self.pool, seed, steps),
        }
        if matches!(
            step,
            Step::Fork | Step::Threads { .. } | Step::Trim | Step::Tick { .. } | Step::Resize { .. }
        ) {
            self.held.iter().for_each(Owned::check);
        }
    }

    /// Compares the outcome of an allocation of a block with the model's outcome.
    fn alloc(&mut self, order: Order, outcome: Result<Pages<'p>, AllocError>) -> Option<usize> {
        self.alloc_frames(order, order.frames() as usize, outcome)
    }

    /// Compares the outcome of an allocation of `frames` frames with the model's outcome. The frames fit into
    /// a block of this order.
    fn alloc_frames(
        &mut self,
        order: Order,
        frames: usize,
        outcome: Result<Pages<'p>, AllocError>,
    ) -> Option<usize> {
        let expected = match &outcome {
            // `hold` checks whether the pages were free.
            Ok(_) => Ok(()),
            Err(_) => {
                self.model.note_drained();
                self.model.alloc_frames(order, frames)
            }
        };
        self.hold(expected, outcome)
    }

    fn alloc_zeroed(&mut self, order: Order) -> Option<usize> {
        let outcome = self.pool.alloc_zeroed(order);
        if let Ok(pages) = &outcome {
            check_zero(pages, self.patterns);
        }
        self.alloc(order, outcome)
    }

    /// Holds the pages, if the model expects any. Returns the index of the new pages among the held pages.
    fn hold(
        &mut self,
        expected: Result<(), AllocError>,
        outcome: Result<Pages<'p>, AllocError>,
    ) -> Option<usize> {
        assert_eq!(
            outcome.as_ref().map(|_| ()).map_err(|error| *error),
            expected,
            "the model has {} frames free",
            self.model.available()
        );
        let pages = outcome.ok()?;
        let (first, count) = (pages.pfn().0 as usize, pages.page_count());
        self.model.take(first, count);
        assert_eq!(pages.as_ptr().addr().get(), self.pool.start().addr() + pages.offset());
        assert_eq!((pages.offset(), pages.len()), (first * PAGE_BYTES, count * PAGE_BYTES));
        let is_block = Order::holding(count as u64).is_some() && count.is_power_of_two();
        assert!(!is_block || first.is_multiple_of(count), "{pages:?} are not aligned");
        self.patterns += 1;
        self.held.push(Owned::take(pages, self.patterns));
        Some(self.held.len() - 1)
    }

    fn alloc_bulk(&mut self, count: usize) {
        let mut pages = Vec::new();
        let outcome = self.pool.alloc_bulk(count, &mut pages);
        let expected = count.min(self.model.available());
        if expected == 0 && count > 0 && outcome.is_err() {
            self.model.note_drained();
            assert_eq!(outcome, self.model.alloc(Order::ZERO).map(|()| 0));
        } else if self.model.may_exceed() {
            assert!(outcome.is_ok_and(|got| got == pages.len() && (expected..=count).contains(&got)));
        } else {
            assert_eq!((outcome, pages.len()), (Ok(expected), expected));
        }
        for page in pages {
            assert_eq!(page.page_count(), 1);
            self.hold(Ok(()), Ok(page));
        }
    }

    fn alloc_exact(&mut self, count: usize) {
        let outcome = self.pool.alloc_exact(count);
        match Order::holding(count as u64) {
            None => self.take_run(count, outcome),
            Some(order) => {
                assert!(outcome.as_ref().is_ok_and(|pages| pages.page_count() == count) || outcome.is_err());
                self.alloc_frames(order, count, outcome);
            }
        }
    }

    fn alloc_run(&mut self, count: usize, zeroed: bool) {
        let outcome = match zeroed {
            true => self.pool.alloc_run_zeroed(count * PAGE_BYTES),
            // Ask for a number of bytes that needs only a part of the last page.
            false => self.pool.alloc_run((count * PAGE_BYTES).saturating_sub(7)),
        };
        if let (true, Ok(pages)) = (zeroed, &outcome) {
            check_zero(pages, self.patterns);
        }
        match Order::holding(count as u64) {
            Some(order) => drop(self.alloc_frames(order, count, outcome)),
            None => self.take_run(count, outcome),
        }
    }

    /// Does the same as [`alloc_frames`](Self::alloc_frames) for 0 frames, or for more frames than a block
    /// has.
    fn take_run(&mut self, count: usize, outcome: Result<Pages<'p>, AllocError>) {
        let expected = match &outcome {
            Ok(_) => Ok(()),
            Err(_) if count == 0 => Err(AllocError::BadCount),
            Err(_) => {
                self.model.note_drained();
                self.model.alloc_run(count)
            }
        };
        self.hold(expected, outcome);
    }

    fn split(&mut self, which: usize, at: usize) {
        let Some(mut owned) = remove(&mut self.held, which) else { return };
        let (first, all) = (owned.first(), owned.count());
        if all > 1 {
            let at = 1 + at % (all - 1);
            let rest = owned.pages.split_off(at);
            let rest = Owned { pages: rest, pattern: owned.pattern };
            assert_eq!(
                (owned.first(), owned.count(), rest.first(), rest.count()),
                (first, at, first + at, all - at)
            );
            rest.check();
            self.held.push(rest);
        }
        owned.check();
        self.held.push(owned);
    }

    fn free(&mut self, owned: Owned<'p>) {
        owned.check();
        self.model.put(owned.first(), owned.count());
        let raw = owned.pages.into_raw();
        self.freed.push(raw);
        if self.freed.len() > FREED_MAX {
            self.freed.swap_remove(0);
        }
        // SAFETY: the pages were just given up, and are taken back only once.
        drop(unsafe { Pages::from_raw(self.pool, raw) });
    }

    fn free_some(&mut self, nth: usize) {
        let (freed, held): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.held).into_iter().enumerate().partition(|(index, _)| index % nth == 0);
        self.held = held.into_iter().map(|(_, owned)| owned).collect();
        freed.into_iter().for_each(|(_, owned)| self.free(owned));
    }

    fn shrink(&mut self, which: usize, start: usize, count: usize) {
        let Some(mut owned) = remove(&mut self.held, which) else { return };
        let (first, all) = (owned.first(), owned.count());
        let start = start % all;
        let end = start + 1 + count % (all - start);
        owned.pages.shrink_to(start..end);
        assert_eq!((owned.first(), owned.count()), (first + start, end - start));
        if start > 0 {
            self.model.put(first, start);
        }
        if end < all {
            self.model.put(first + end, all - end);
        }
        owned.check();
        self.held.push(owned);
    }

    fn take_back(&mut self, which: usize) {
        let Some((raw, pattern)) = remove(&mut self.raw, which) else { return };
        // SAFETY: the pages come from `into_raw`, and are taken back only once.
        let pages = unsafe { Pages::from_raw(self.pool, raw) };
        self.note_taken_back(raw, pages, pattern);
    }

    fn take_back_checked(&mut self, which: usize) {
        let Some((raw, pattern)) = remove(&mut self.raw, which) else { return };
        // SAFETY: the pages come from `into_raw`, and are taken back only once.
        let pages = unsafe { Pages::from_raw_checked(self.pool, raw) };
        self.note_taken_back(raw, pages.expect("the pages are allocated"), pattern);
    }

    fn note_taken_back(&mut self, raw: RawPages, pages: Pages<'p>, pattern: Pattern) {
        let owned = Owned { pages, pattern };
        assert_eq!((owned.first(), owned.count()), (raw.frame(), raw.page_count()));
        owned.check();
        self.held.push(owned);
    }

    /// `from_raw_checked` refuses free pages.
    fn check_freed(&mut self, which: usize) {
        let Some(raw) = remove(&mut self.freed, which) else { return };
        // The pool's thread sometimes isolates free blocks. An isolated block looks like a block in use.
        let may_be_seen = self.setup.returns.worker == Worker::None;
        if may_be_seen && !self.model.are_used(raw.frame(), raw.page_count()) {
            // SAFETY: some of these pages are free, so the check must refuse them.
            let pages = unsafe { Pages::from_raw_checked(self.pool, raw) };
            assert!(pages.is_none(), "{raw:?} were freed");
        }
    }

    /// Builds a collection on pages of the pool, and drops it.
    fn collect(&mut self, numbers: usize) {
        let mut list = PagesVec::new_in(PageCollections::new(self.pool));
        let outcome = list.try_reserve_exact(numbers);
        if numbers == 0 {
            return;
        }
        let order = Order::holding((numbers * 8).div_ceil(PAGE_BYTES) as u64).unwrap();
        if outcome.is_err() {
            self.model.note_drained();
            assert!(self.model.alloc(order).is_err());
            return;
        }
        assert!(self.model.may_exceed() || self.model.alloc(order).is_ok());
        list.extend(0..numbers);
        assert!(list.iter().copied().eq(0..numbers));
    }

    fn trim(&mut self) {
        let trimmed = self.pool.trim();
        assert!(trimmed.returned_bytes.is_multiple_of(PAGE_BYTES as u64) && !trimmed.more);
        if self.setup.is_pinned {
            assert_eq!(self.pool.stats().returned_bytes, 0, "every address keeps its page");
        }
        self.model.note_drained();
        if self.setup.returns.worker == Worker::None {
            let stats = self.check_stats();
            assert_eq!(stats.nr_array, 0);
        }
    }

    /// Compares the statistics with the model.
    fn check_stats(&mut self) -> Stats {
        let stats = self.pool.stats();
        assert_eq!(stats.bad_frees, 0);
        assert_eq!(stats.nr_retired, self.model.retired_frames() as u64);
        assert_eq!(stats.capacity_pages, self.model.capacity() as u64);
        if self.setup.returns.worker == Worker::None {
            assert_eq!(stats.nr_used, self.model.used() as u64);
            assert_eq!(stats.pgalloc - stats.pgfree, stats.nr_used);
            let free = stats.nr_array + stats.nr_free_pages;
            assert_eq!(stats.nr_used + stats.nr_retired + free, self.model.frames() as u64, "{stats:?}");
        }
        stats
    }

    /// Reads the pool's file as another process would.
    fn read_file(&self, which: usize) {
        // SAFETY: this function writes nothing through the file.
        let file = unsafe { self.pool.memfd() };
        let has_file = matches!(self.setup.memory, Memory::Of(Backing::Memfd | Backing::Hugetlb(_)));
        assert_eq!(file.is_some(), has_file);
        let (Some(file), false) = (file, self.held.is_empty()) else { return };
        let owned = &self.held[which % self.held.len()];
        let file = std::fs::File::from(file.try_clone_to_owned().unwrap());
        let mut bytes = vec![0; owned.pages.len()];
        file.read_exact_at(&mut bytes, owned.pages.offset() as u64).unwrap();
        owned.pattern.check(owned.first(), &bytes);
    }
}

/// Removes an element of a list, if there is one.
fn remove<T>(list: &mut Vec<T>, which: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(which % list.len()))
}
