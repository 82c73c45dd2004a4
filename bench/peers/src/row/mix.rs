//! A steady state: many live blocks, and random ones are replaced.

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::shuffle::Random;
use crate::target::Target;
use crate::team;

/// The orders of the live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orders {
    /// Single pages.
    Zero,
    /// Orders 0 to 3 as 12, 2, 1 and 1 of 16 blocks.
    UpToThree,
}

impl Orders {
    /// The order of the block in a slot. All blocks of a slot have the same order.
    #[inline]
    pub(super) fn of(self, slot: usize) -> u32 {
        match (self, slot % 16) {
            (Self::Zero, _) | (Self::UpToThree, 0..12) => 0,
            (Self::UpToThree, 12..14) => 1,
            (Self::UpToThree, 14) => 2,
            (Self::UpToThree, _) => 3,
        }
    }
}

/// Live blocks, and random numbers to choose one.
pub(super) struct Population<'t, T: Target> {
    target: &'t T,
    cpu: usize,
    orders: Orders,
    random: Random,
    slots: Vec<Option<T::Block>>,
}

impl<'t, T: Target> Population<'t, T> {
    /// Allocates `live` blocks, and replaces each once on average.
    pub(super) fn new(target: &'t T, cpu: usize, orders: Orders, live: usize) -> Self {
        let slots =
            (0..live).map(|slot| Some(target.alloc(cpu, orders.of(slot)).expect(EXHAUSTED))).collect();
        let mut population = Self { target, cpu, orders, random: Random::new(cpu as u64 + 7), slots };
        for _ in 0..live {
            population.replace();
        }
        population
    }

    /// Frees a random block and allocates one of the same order.
    #[inline]
    pub(super) fn replace(&mut self) {
        let slot = self.choose();
        self.free(slot);
        let block = self.ask(slot);
        self.put(slot, block);
    }

    /// A random slot.
    #[inline]
    pub(super) fn choose(&mut self) -> usize {
        self.random.below(self.slots.len())
    }

    /// Takes the block out of a slot, and leaves the slot empty.
    #[inline]
    pub(super) fn take(&mut self, slot: usize) -> Option<T::Block> {
        self.slots[slot].take()
    }

    /// Frees a block that was taken from a slot.
    #[inline]
    pub(super) fn give(&self, slot: usize, block: Option<T::Block>) {
        if let Some(block) = block {
            self.target.free(self.cpu, block, self.orders.of(slot));
        }
    }

    /// Allocates a block for an empty slot.
    #[inline]
    pub(super) fn ask(&self, slot: usize) -> T::Block {
        self.target.alloc(self.cpu, self.orders.of(slot)).expect(EXHAUSTED)
    }

    /// Puts a block into an empty slot.
    #[inline]
    pub(super) fn put(&mut self, slot: usize, block: T::Block) {
        self.slots[slot] = Some(block);
    }

    #[inline]
    fn free(&mut self, slot: usize) {
        let block = self.take(slot);
        self.give(slot, block);
    }

    /// Frees everything.
    pub(super) fn clear(&mut self) {
        for slot in 0..self.slots.len() {
            self.free(slot);
        }
    }
}

/// Blocks that live, for each thread.
pub(super) const LIVE: usize = 100_000;

/// Nanoseconds for one free and one allocation. With several threads, this is the mean of the threads while
/// all of them run.
pub(super) fn run<T: Target>(target: &T, orders: Orders, threads: usize, effort: &Effort) -> f64 {
    let costs = team::run(threads, |member| {
        target.attach(member.cpu);
        let mut population = Population::new(target, member.cpu, orders, LIVE);
        member.meet();
        let cost = batches::cost(effort.window, |count| {
            for _ in 0..count {
                population.replace();
            }
        });
        member.meet();
        population.clear();
        target.detach(member.cpu);
        cost
    });
    costs.iter().sum::<f64>() / costs.len() as f64
}
