//! The memory of the arrays of all CPUs.

use super::batch::BATCH_MAX;
use super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use super::{Batch, Caps, Class, Entry};
use crate::heap::{self, HeapExhausted};

/// A stack of blocks. The low 16 bits of the head word are the number of blocks, and the other bits are the
/// number of pops. So one store changes both numbers.
///
/// # Invariants
/// `cap` is at most `ENTRIES` minus [`COPIED_TOGETHER`](super::batch::COPIED_TOGETHER), because a copy may
/// write too many entries. The number of blocks exceeds `cap` only after `cap` has shrunk. Until enough
/// blocks have left, the stack takes no further block.
#[repr(C)]
pub(crate) struct Stack<const ENTRIES: usize> {
    head: AtomicU64,
    cap: AtomicU32,
    _unused: u32,
    entries: [AtomicU32; ENTRIES],
}

impl<const ENTRIES: usize> Stack<ENTRIES> {
    const fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            cap: AtomicU32::new(0),
            _unused: 0,
            entries: [const { AtomicU32::new(0) }; ENTRIES],
        }
    }

    fn view(&self) -> View<'_> {
        View { head: &self.head, cap: &self.cap, entries: &self.entries }
    }
}

/// The bits of the head word that count entries.
pub(crate) const COUNT_MASK: u64 = 0xffff;
/// A pop adds `POP_STEP` to the head word: the number of pops grows by 1, and the number of blocks falls by
/// 1.
pub(crate) const POP_STEP: u64 = COUNT_MASK;

/// The arrays of one CPU, which fill a page.
#[repr(C, align(4096))]
pub(crate) struct CpuArrays {
    /// The try-lock that protects the arrays in a pool without restartable sequences.
    pub(super) lock: AtomicU32,
    _unused: [u32; 15],
    pub(super) order0: Stack<436>,
    pub(super) order1: Stack<116>,
    pub(super) order2: Stack<116>,
    pub(super) order3: Stack<180>,
    pub(super) order4: Stack<36>,
    pub(super) order5: Stack<20>,
    pub(super) order6: Stack<12>,
    pub(super) order7: Stack<8>,
    pub(super) order8: Stack<8>,
    pub(super) order9: Stack<28>,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<CpuArrays>() == 4096);

impl CpuArrays {
    pub(crate) const fn new() -> Self {
        Self {
            lock: AtomicU32::new(0),
            _unused: [0; 15],
            order0: Stack::new(),
            order1: Stack::new(),
            order2: Stack::new(),
            order3: Stack::new(),
            order4: Stack::new(),
            order5: Stack::new(),
            order6: Stack::new(),
            order7: Stack::new(),
            order8: Stack::new(),
            order9: Stack::new(),
        }
    }

    /// Sets the capacities, which limit pushes. Blocks beyond a new capacity stay in their array.
    pub(crate) fn set_caps(&self, caps: Caps) {
        Class::ALL.into_iter().for_each(|class| self.stack(class).cap.store(caps.of(class), Relaxed));
    }

    #[inline]
    pub(crate) fn stack(&self, class: Class) -> View<'_> {
        match class {
            Class::Order0 => self.order0.view(),
            Class::Order1 => self.order1.view(),
            Class::Order2 => self.order2.view(),
            Class::Order3 => self.order3.view(),
            Class::Order4 => self.order4.view(),
            Class::Order5 => self.order5.view(),
            Class::Order6 => self.order6.view(),
            Class::Order7 => self.order7.view(),
            Class::Order8 => self.order8.view(),
            Class::Order9 => self.order9.view(),
        }
    }
}

/// One stack of a CPU's arrays, of any capacity.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    head: &'a AtomicU64,
    cap: &'a AtomicU32,
    entries: &'a [AtomicU32],
}

impl<'a> View<'a> {
    /// The number of blocks in the stack at this moment.
    pub(crate) fn count(&self) -> u32 {
        (self.head.load(Relaxed) & COUNT_MASK) as u32
    }

    /// The number of pops since the stack was made.
    pub(crate) fn pops(&self) -> u64 {
        self.head.load(Relaxed) >> COUNT_MASK.count_ones()
    }

    /// Takes the block that was put last. The caller must be the only thread that may change the stack now.
    #[inline]
    pub(super) fn pop(&self) -> Option<Entry> {
        let head = self.head.load(Relaxed);
        let last = (head & COUNT_MASK).checked_sub(1)?;
        let entry = self.entries.get(last as usize)?.load(Relaxed);
        self.head.store(head + POP_STEP, Relaxed);
        Entry::from_raw(entry)
    }

    /// Puts a block on the stack, if there is room. The caller must be the only thread that may change the
    /// stack now.
    #[inline]
    pub(super) fn push(&self, entry: Entry) -> bool {
        let head = self.head.load(Relaxed);
        let count = head & COUNT_MASK;
        if count >= u64::from(self.cap.load(Relaxed)) {
            return false;
        }
        let Some(slot) = self.entries.get(count as usize) else { return false };
        slot.store(entry.raw(), Relaxed);
        self.head.store(head + 1, Relaxed);
        true
    }

    /// Every block in the stack at this moment.
    pub(crate) fn entries(self) -> impl Iterator<Item = Entry> + use<'a> {
        let entries = &self.entries[..self.count() as usize];
        entries.iter().filter_map(|slot| Entry::from_raw(slot.load(Relaxed)))
    }

    /// Takes all blocks and passes them to `take` in parts. The blocks are not counted as pops. The caller
    /// must be the only thread that may change the stack now.
    pub(crate) fn empty(&self, mut take: impl FnMut(&[Entry])) {
        for _ in 0..self.parts() {
            let part: &mut Batch = &mut Batch::new();
            self.take_part(part);
            take(part.as_slice());
        }
    }

    /// The number of calls of [`take_part`](Self::take_part) that empty the stack.
    pub(super) fn parts(&self) -> usize {
        (self.count() as usize).div_ceil(BATCH_MAX)
    }

    /// Moves blocks into an empty batch until the batch is full. The blocks are not counted as pops. The
    /// caller must be the only thread that may change the stack now.
    pub(super) fn take_part(&self, part: &mut Batch) {
        self.take_last(part.capacity(), |entry| part.push_front(entry));
    }

    /// Takes up to `limit` blocks from the stack, beginning with the block that was put last. The blocks are
    /// not counted as pops. The caller must be the only thread that may change the stack now.
    pub(super) fn take_last(&self, limit: usize, take: impl FnMut(Entry)) {
        let head = self.head.load(Relaxed);
        let count = (head & COUNT_MASK) as usize;
        let left = count.saturating_sub(limit);
        let last = self.entries[left..count].iter().rev();
        last.filter_map(|slot| Entry::from_raw(slot.load(Relaxed))).for_each(take);
        self.head.store(head - (count - left) as u64, Relaxed);
    }
}

/// The arrays of each CPU that can exist.
pub(crate) struct ArraySet(Box<[CpuArrays]>);

impl ArraySet {
    pub(crate) fn new(cpus: usize, caps: Caps) -> Result<Self, HeapExhausted> {
        let arrays = heap::made(cpus, CpuArrays::new)?;
        arrays.iter().for_each(|cpu| cpu.set_caps(caps));
        Ok(Self(arrays))
    }

    pub(crate) fn cpus(&self) -> &[CpuArrays] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_gives_what_was_put_last_and_counts_pops() {
        let set = ArraySet::new(1, Caps::of_order_0(2)).unwrap();
        let stack = set.cpus()[0].stack(Class::Order0);
        assert!(stack.push(Entry::dirty(5)));
        assert!(stack.push(Entry::dirty(6)));
        assert!(!stack.push(Entry::dirty(7)), "full");
        assert_eq!(stack.pop(), Some(Entry::dirty(6)));
        assert_eq!((stack.count(), stack.pops()), (1, 1));
        let mut rest = Vec::new();
        stack.empty(|entries| rest.extend_from_slice(entries));
        assert_eq!(rest, [Entry::dirty(5)]);
        assert_eq!((stack.count(), stack.pops(), stack.pop()), (0, 1, None));
        assert!(stack.push(Entry::dirty(8)) && stack.push(Entry::dirty(9)));
        stack.take_last(1, |entry| assert_eq!(entry, Entry::dirty(9)));
        assert_eq!((stack.count(), stack.pops()), (1, 1));
        assert!(!set.cpus()[0].stack(Class::Order3).push(Entry::dirty(8)), "the array has no room");
    }
}
