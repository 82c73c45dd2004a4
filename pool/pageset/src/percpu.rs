//! The arrays of a pool. A thread changes its CPU's array by a restartable sequence. If the system does not
//! support restartable sequences, a lock for each CPU protects the arrays.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use pageset_core::Order;

use crate::arrays::{Batch, Caps, Class, CpuArrays, Entry, Share, StackAt};
use crate::inside::Inside;
use crate::pages::Span;
use crate::rseq::{self, Area, HotPage};
use crate::sys::checkers::Checked;
use crate::sys::{cpu, membarrier};

/// The arrays of all CPUs.
pub(crate) struct PerCpu {
    hot: HotPage,
    /// Where each thread's area for restartable sequences lies. `None` if locks protect the arrays.
    area: Option<Area>,
    /// The capacities that [`fit`](Self::fit) set last.
    caps: [AtomicU32; Class::COUNT],
    /// The number of free frames when [`fit`](Self::fit) set the capacities last.
    fitted: AtomicU64,
    /// The [`Share`] of the free memory that arrays may hold, as its number of halvings.
    halvings: AtomicU32,
    /// Calls of [`fit`](Self::fit), and requests that the base refused, since the current period began.
    calls: AtomicU32,
    refused: AtomicU32,
    /// The number of CPUs that the process may use.
    cpus: usize,
    /// Tells memory checkers such as AddressSanitizer which pages are in use. A pool under a memory checker
    /// uses no restartable sequences, because the memory checker cannot follow restartable sequences.
    checked: Option<Checked>,
}

impl PerCpu {
    /// Makes the arrays of a pool that has `free` free frames.
    pub(crate) fn new(
        hot: HotPage,
        area: Option<Area>,
        free: u64,
        cpus: usize,
        checked: Option<Checked>,
    ) -> Self {
        if let Some(area) = area {
            rseq::announce(hot.hot(), area);
        }
        let caps = Caps::for_free(free, Share::FIRST, cpus).0.map(AtomicU32::new);
        let (fitted, halvings) = (AtomicU64::new(free), AtomicU32::new(Share::FIRST.halvings));
        let (calls, refused) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { hot, area, caps, fitted, halvings, calls, refused, cpus, checked }
    }

    /// Sets the capacities of the arrays again if the free memory has halved or doubled since the last time,
    /// or if the share has grown. An allocation of a block, or a free, calls `fit` if no array can serve it.
    #[inline]
    pub(crate) fn fit(&self, free: u64) {
        let fitted = self.fitted.load(Relaxed);
        if free < fitted / 2 || free / 2 > fitted || self.has_grown() {
            self.fit_all(free);
        }
    }

    fn share(&self) -> Share {
        Share { halvings: self.halvings.load(Relaxed) }
    }

    /// Counts a call, and lets the share grow at the end of a period. A period that reaches its end had few
    /// refused requests, because [`note_shortage`](Self::note_shortage) begins a new period when
    /// `note_shortage` shrinks the share.
    ///
    /// Race: two threads count at once, or a thread counts while another thread shrinks the share. As a
    /// result of the race, a call is not counted, or the share is one step too large. Both results are
    /// harmless.
    #[inline]
    fn has_grown(&self) -> bool {
        /// A period is this number of calls of `fit`, and lasts about 2 ms. The number is a guess.
        const PERIOD: u32 = 16384;
        let calls = self.calls.load(Relaxed) + 1;
        self.calls.store(calls % PERIOD, Relaxed);
        if calls < PERIOD {
            return false;
        }
        self.refused.store(0, Relaxed);
        let Some(grown) = self.share().grown() else { return false };
        self.halvings.store(grown.halvings, Relaxed);
        true
    }

    /// Notes that the base refused a request, even after the arrays were drained. If several requests are
    /// refused in one period, makes the arrays smaller.
    #[cold]
    pub(crate) fn note_shortage(&self, free: u64) {
        /// With `MANY` refused requests in a period, the arrays get smaller. When `MANY` was 1, a pool of 64
        /// MiB with 75 % in use had no arrays half of the time, and did not refuse fewer requests. (Decision
        /// 0039.)
        const MANY: u32 = 4;
        if self.refused.fetch_add(1, Relaxed) + 1 >= MANY {
            self.halvings.store(self.share().shrunk().halvings, Relaxed);
            self.refused.store(0, Relaxed);
            self.calls.store(0, Relaxed);
            self.fit_all(free);
        }
    }

    /// Sets the capacities of the arrays for `free` free frames. The call takes O(CPUs) time. So `fit` calls
    /// `fit_all` only if the free memory has halved or doubled, or the share has grown.
    #[cold]
    fn fit_all(&self, free: u64) {
        self.fitted.store(free, Relaxed);
        let caps = Caps::for_free(free, self.share(), self.cpus);
        let is_new = |class: Class| self.caps[class as usize].swap(caps.of(class), Relaxed) != caps.of(class);
        // Race: two threads set the capacities at once. The later store of each capacity wins. The race is
        // harmless, because the values of both threads are valid.
        if Class::ALL.into_iter().filter(|class| is_new(*class)).count() > 0 {
            self.hot.all().for_each(|cpu| cpu.set_caps(caps));
        }
    }

    /// The capacity of an array of this class.
    fn cap(&self, class: Class) -> u32 {
        self.caps[class as usize].load(Relaxed)
    }

    /// Takes a block of this order from this CPU's array.
    #[inline(always)]
    pub(crate) fn pop(&self, order: Order) -> Option<Entry> {
        match (self.area, StackAt::of(order)) {
            (Some(area), Some(stack)) => rseq::pop(self.hot.hot(), area, stack),
            (None, Some(_)) => self.pop_locked(order),
            (_, None) => None,
        }
    }

    /// Takes a block from this CPU's array by a restartable sequence. Returns `None` if the array is empty,
    /// or if locks protect the arrays.
    #[inline(always)]
    pub(crate) fn pop_in_sequence(&self, stack: StackAt) -> Option<Entry> {
        rseq::pop(self.hot.hot(), self.area?, stack)
    }

    #[inline(never)]
    fn pop_locked(&self, order: Order) -> Option<Entry> {
        let block = self.locked_arrays()?.try_pop(Class::of(order)?)?;
        self.note_block(block, order.frames());
        Some(block)
    }

    /// Tells memory checkers that a user gets these frames.
    pub(crate) fn note_handed_out(&self, frame: u32, count: u32) {
        if let Some(checked) = &self.checked {
            checked.hand_out(frame, count);
        }
    }

    /// Tells memory checkers that a user gets this block of `count` frames.
    pub(crate) fn note_block(&self, block: Entry, count: u32) {
        if let Some(checked) = &self.checked {
            checked.hand_out_block(block, count);
        }
    }

    /// Tells memory checkers that these frames of a user are zero.
    pub(crate) fn note_zero(&self, frame: u32, count: u32) {
        if let Some(checked) = &self.checked {
            checked.note_zero(frame, count);
        }
    }

    /// Tells memory checkers that no user has these frames any more.
    pub(crate) fn note_taken_back(&self, frame: u32, count: u32) {
        if let Some(checked) = &self.checked {
            checked.take_back(frame, count);
        }
    }

    /// Begins an operation that takes locks. Returns `None` in a signal handler that interrupted such an
    /// operation of this pool, and if the thread is inside of too many other pools.
    pub(crate) fn enter(&self) -> Option<Inside> {
        Inside::of(std::ptr::from_ref(self).addr())
    }

    /// Puts a block into this CPU's array by a restartable sequence. Returns `false` if the array has no
    /// room, or if locks protect the arrays.
    #[inline(always)]
    pub(crate) fn push_in_sequence(&self, span: Span) -> bool {
        if span.stack() == Some(StackAt::of_class(Class::Order0))
            && let Some(is_pushed) = rseq::push_first(self.hot.hot(), Entry::dirty(span.frame()))
        {
            return is_pushed;
        }
        // Check `area` first, because a pool without sequences does not need the stack.
        if let Some(area) = self.area
            && let Some(stack) = span.stack()
        {
            rseq::push(self.hot.hot(), area, stack, Entry::dirty(span.frame()))
        } else {
            false
        }
    }

    /// Puts the block that begins with `frame` on this stack of this CPU by a restartable sequence. Does the
    /// same as [`push_in_sequence`](Self::push_in_sequence) for a caller that knows the stack.
    #[inline(always)]
    pub(crate) fn push_at(&self, stack: StackAt, frame: u32) -> bool {
        self.area.is_some_and(|area| rseq::push(self.hot.hot(), area, stack, Entry::dirty(frame)))
    }

    /// Puts a block into this CPU's array. Returns `false` if the array has no room.
    pub(crate) fn push(&self, class: Class, entry: Entry) -> bool {
        match self.area {
            Some(area) => rseq::push(self.hot.hot(), area, StackAt::of_class(class), entry),
            None => self.push_locked(class, entry),
        }
    }

    /// Puts a block into this CPU's array under the CPU's lock. Returns `false` if the array has no room, if
    /// another thread holds the lock, or if sequences change the arrays.
    #[inline(never)]
    pub(crate) fn push_locked(&self, class: Class, entry: Entry) -> bool {
        self.locked_arrays().is_some_and(|cpu| cpu.try_push(class, entry))
    }

    /// The CPU that runs this thread. In a pool with sequences, a thread that glibc did not register gets a
    /// number beyond all CPUs.
    pub(crate) fn cpu(&self) -> usize {
        match self.area {
            Some(area) => rseq::cpu(area),
            None => cpu::current(),
        }
    }

    /// Whether the arrays of this class have room for two blocks or more. A refill of an array with room for
    /// only one block would cost more than the refill saves.
    pub(crate) fn holds_many(&self, class: Class) -> bool {
        self.cap(class) > 1
    }

    /// The number of blocks that a refill of this CPU's array fetches: half of the array's capacity. `None`
    /// if the CPU has no array of this class, or if the arrays have room for only one block.
    pub(crate) fn refill_size(&self, class: Class) -> Option<usize> {
        let has_array = self.holds_many(class) && self.cpu() < self.hot.current().len();
        has_array.then(|| self.cap(class).div_ceil(2) as usize)
    }

    /// Puts blocks of a batch into this CPU's array, up to the array's capacity. The other blocks stay in the
    /// batch.
    pub(crate) fn push_many(&self, class: Class, batch: &mut Batch) {
        match self.area {
            Some(area) => rseq::push_many(self.hot.hot(), area, StackAt::of_class(class), batch),
            None => self.locked_arrays().into_iter().for_each(|cpu| cpu.try_push_many(class, batch)),
        }
    }

    /// Moves blocks from this CPU's array into an empty batch, up to half of the array's capacity. Takes the
    /// blocks that were put last.
    pub(crate) fn pop_half(&self, class: Class, batch: &mut Batch) {
        let half = self.cap(class) as usize / 2;
        match self.area {
            Some(area) => rseq::pop_many(self.hot.hot(), area, StackAt::of_class(class), half, batch),
            None => {
                let cpu = self.locked_arrays();
                cpu.into_iter().for_each(|cpu| cpu.try_pop_many(class, half, batch));
            }
        }
    }

    /// Empties the arrays of all CPUs, and passes the blocks to `take` in parts. Takes no block and returns
    /// `false` if the kernel refuses to restart sequences.
    ///
    /// With restartable sequences, this function first puts the other set of arrays into use, and restarts
    /// every running sequence. When no sequence uses the old set any more, the function empties the old set.
    /// Only one thread may drain at a time.
    pub(crate) fn drain(&self, mut take: impl FnMut(Class, &[Entry])) -> bool {
        if self.area.is_some() {
            let old = self.hot.swap();
            if !membarrier::restart_all() {
                // The kernel allowed membarrier(2) when the pool was built, so a filter of system calls was
                // installed since. Put the old set into use again. The blocks of the old set are untouched.
                self.hot.swap();
                return false;
            }
            for cpu in old {
                for class in Class::ALL {
                    cpu.stack(class).empty(|entries| take(class, entries));
                }
            }
        } else {
            self.hot.current().iter().for_each(|cpu| cpu.empty_locked(&mut take));
        }
        true
    }

    /// This CPU's arrays, if locks protect them.
    fn locked_arrays(&self) -> Option<&CpuArrays> {
        if self.area.is_some() || self.is_in_child() {
            return None;
        }
        self.hot.current().get(cpu::current())
    }

    /// Whether this process is a child of the process that owns the pool.
    #[inline]
    pub(crate) fn is_in_child(&self) -> bool {
        self.hot.is_in_child()
    }

    /// Makes the arrays usable in a child that takes the pool over. The arrays become empty.
    pub(crate) fn take_over(&self) {
        if self.area.is_some() {
            // Ignore a refusal of the kernel: the kernel will later refuse drains too, and the pool counts
            // refused drains.
            membarrier::register();
        }
        self.hot.take_over();
    }

    pub(crate) fn uses_sequences(&self) -> bool {
        self.area.is_some()
    }

    /// Frames in the arrays at this moment.
    pub(crate) fn frames(&self) -> u64 {
        self.sum(|cpu, class| u64::from(cpu.stack(class).count()))
    }

    /// The number of frames of all blocks that pops took since the arrays were made.
    pub(crate) fn popped(&self) -> u64 {
        self.sum(|cpu, class| cpu.stack(class).pops())
    }

    fn sum(&self, blocks: impl Fn(&CpuArrays, Class) -> u64) -> u64 {
        let of_class = |class: Class| {
            let blocks: u64 = self.hot.all().map(|cpu| blocks(cpu, class)).sum();
            blocks * u64::from(class.frames())
        };
        Class::ALL.into_iter().map(of_class).sum()
    }

    /// Every block in an array at this moment. Other threads may change the arrays during the iteration.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Class, Entry)> {
        let stacks = self.hot.all().flat_map(|cpu| Class::ALL.map(move |class| (class, cpu.stack(class))));
        stacks.flat_map(|(class, stack)| stack.entries().map(move |entry| (class, entry)))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.hot.all().count() * size_of::<CpuArrays>()
    }
}

#[cfg(all(test, not(interpreted)))]
mod tests {
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;
    use crate::arrays::ArraySet;

    /// Regression test. An array can hold more blocks than its capacity after the capacity has shrunk. Before
    /// the fix, a refill of such an array overwrote the next array and its number of blocks.
    #[test]
    fn an_array_that_is_fuller_than_its_capacity_takes_nothing() {
        let mut first = CpuSet::new();
        first.set(0);
        if sched_setaffinity(None, &first).is_err() {
            return;
        }
        const FREE: u64 = 1 << 24;
        for area in [None, rseq::area()] {
            let set = || ArraySet::new(cpu::possible(), Caps::for_free(FREE, Share::FIRST, 1)).unwrap();
            let arrays = PerCpu::new(HotPage::new([set(), set()]).unwrap(), area, FREE, 1, None);
            for class in Class::ALL {
                let full = Caps::for_free(FREE, Share::FIRST, 1).of(class);
                (0..full).for_each(|frame| assert!(arrays.push(class, Entry::dirty(frame))));
            }
            let before = arrays.frames();
            arrays.fit(1 << 12);
            for class in Class::ALL {
                let batch: &mut Batch = &mut Batch::new();
                (0..20).for_each(|frame| batch.push_front(Entry::dirty(frame)));
                arrays.push_many(class, batch);
                assert_eq!(batch.len(), 20, "{class:?}");
                assert!(!arrays.push(class, Entry::dirty(0)), "{class:?}");
            }
            assert_eq!(arrays.frames(), before, "no count has changed");
            let half: &mut Batch = &mut Batch::new();
            arrays.pop_half(Class::Order0, half);
            assert_eq!(half.len() as u32, Caps::for_free(1 << 12, Share::FIRST, 1).of(Class::Order0) / 2);
        }
    }

    /// Regression test. Before the fix, a pool of 10 MiB kept few blocks in its arrays even while most of its
    /// memory was free. So most calls took locks.
    #[test]
    fn arrays_grow_while_few_requests_are_refused_and_shrink_when_many_are() {
        const FREE: u64 = 2560;
        let set = || ArraySet::new(cpu::possible(), Caps::for_free(FREE, Share::FIRST, 1)).unwrap();
        let arrays = PerCpu::new(HotPage::new([set(), set()]).unwrap(), None, FREE, 1, None);
        let calm = || (0..100_000).for_each(|_| arrays.fit(FREE));
        assert_eq!(arrays.cap(Class::Order0), 40);
        calm();
        assert_eq!((arrays.cap(Class::Order0), arrays.cap(Class::Order7)), (432, 4));
        (0..3).for_each(|_| arrays.note_shortage(FREE));
        assert_eq!(arrays.cap(Class::Order0), 432, "three refused requests do not shrink the arrays");
        calm();
        (0..12).for_each(|_| arrays.note_shortage(FREE));
        assert_eq!((arrays.cap(Class::Order0), arrays.cap(Class::Order1)), (2, 1));
        (0..2).for_each(|_| calm());
        assert_eq!(arrays.cap(Class::Order0), 432);
    }
}
