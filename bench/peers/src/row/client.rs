//! Memory as the clients of an allocator use it. Blocks of many sizes live and die at random, and together
//! use a steady part of all memory.

use crate::batches;
use crate::effort::Effort;
use crate::shuffle::Random;
use crate::target::Target;
use crate::team;

/// Pages of a huge block, and its order.
const HUGE: usize = 512;
const HUGE_ORDER: u32 = 9;
/// The most random replacements before the measurement. If an allocator's cost grows with its memory, more
/// replacements would take minutes.
const AGEING: usize = 20_000;

/// The sizes of the live blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizes {
    /// 4 to 512 KiB, powers of two, all equally often.
    Orders,
    /// 128 KiB to 1 MiB, powers of two, all equally often.
    LargeOrders,
    /// 1 to 64 pages, all counts equally often, at any place.
    Counts,
    /// The same counts, each rounded up to a power of two and aligned to it.
    Aligned,
}

/// A client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) sizes: Sizes,
    pub(crate) mib: usize,
    /// The part of the memory that its blocks use in steady state.
    pub(crate) percent: usize,
}

impl Client {
    /// Pages of all memory.
    pub(crate) const fn pages(self) -> usize {
        self.mib << 8
    }
}

struct State<'t, T: Target> {
    target: &'t T,
    cpu: usize,
    client: Client,
    random: Random,
    live: Vec<(T::Block, usize)>,
    held: usize,
    requests: u64,
    refused: u64,
}

impl<T: Target> State<'_, T> {
    fn some_pages(&mut self) -> usize {
        match self.client.sizes {
            Sizes::Orders => 1 << self.random.below(8),
            Sizes::LargeOrders => 32 << self.random.below(4),
            Sizes::Counts | Sizes::Aligned => 1 + self.random.below(64),
        }
    }

    fn alloc(&self, pages: usize) -> Option<T::Block> {
        match self.client.sizes {
            Sizes::Counts => self.target.alloc_pages(self.cpu, pages),
            Sizes::Orders | Sizes::LargeOrders | Sizes::Aligned => {
                self.target.alloc(self.cpu, pages.next_power_of_two().trailing_zeros())
            }
        }
    }

    fn free(&self, block: T::Block, pages: usize) {
        match self.client.sizes {
            Sizes::Counts => self.target.free_pages(self.cpu, block, pages),
            Sizes::Orders | Sizes::LargeOrders | Sizes::Aligned => {
                self.target.free(self.cpu, block, pages.next_power_of_two().trailing_zeros());
            }
        }
    }

    /// Frees random blocks to make room, and requests a block. A refused request costs its time, too.
    fn step(&mut self) {
        let pages = self.some_pages();
        let most = self.client.pages() * self.client.percent / 100;
        while self.held + pages > most && !self.live.is_empty() {
            let which = self.random.below(self.live.len());
            let (block, pages) = self.live.swap_remove(which);
            self.free(block, pages);
            self.held -= pages;
        }
        self.requests += 1;
        match self.alloc(pages) {
            Some(block) => {
                self.live.push((block, pages));
                self.held += pages;
            }
            None => self.refused += 1,
        }
    }
}

/// Returns three values. The first is the nanoseconds for each request, with the frees that make room for it.
/// The second is the percentage of refused requests. The third is about the huge blocks that would fit into
/// the free memory at the end: the percentage that cannot be allocated.
pub(super) fn run<T: Target>(target: &T, client: Client, effort: &Effort) -> Vec<f64> {
    team::run(1, |member| {
        target.attach(member.cpu);
        let random = Random::new(5 + effort.seed);
        let live = Vec::with_capacity(client.pages());
        let (held, requests, refused) = (0, 0, 0);
        let mut state = State { target, cpu: member.cpu, client, random, live, held, requests, refused };
        let wanted = client.pages() * client.percent / 100;
        // The memory is filled up to the steady part, less a block of the largest size.
        let largest = if matches!(client.sizes, Sizes::LargeOrders) { 256 } else { 128 };
        while state.held + largest < wanted && state.refused < 1000 {
            state.step();
        }
        for _ in 0..AGEING.min(4 * state.live.len()) {
            state.step();
        }
        (state.requests, state.refused) = (0, 0);
        let cost = batches::cost(effort.window, |count| (0..count).for_each(|_| state.step()));
        let refused = state.refused as f64 / state.requests as f64 * 100.0;
        let could = (client.pages() - state.held) / HUGE;
        let huge: Vec<_> = (0..could).map_while(|_| target.alloc(member.cpu, HUGE_ORDER)).collect();
        let missing = (could - huge.len()) as f64 / could.max(1) as f64 * 100.0;
        huge.into_iter().for_each(|block| target.free(member.cpu, block, HUGE_ORDER));
        for (block, pages) in std::mem::take(&mut state.live) {
            state.free(block, pages);
        }
        target.detach(member.cpu);
        vec![cost, refused, missing]
    })
    .swap_remove(0)
}
