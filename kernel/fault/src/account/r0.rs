//! R0: plain numbers of resident pages, which the lock over the page table protects (spec §1.6).

use super::{Accountant, Tally};
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct R0(Tally);

impl Accountant for R0 {
    fn new(_: u32) -> Self {
        Self(Tally::default())
    }

    #[inline]
    fn add<W: World>(&self, _: &Mm<W>, _: &mut Local, counts: Counts) {
        self.0.add_locked(counts);
        let now = self.0.load();
        debug_assert!([now.rss, now.anon_rss, now.tables].into_iter().all(|count| count >= 0), "{now:?}");
    }

    fn quick(&self) -> Counts {
        self.0.load()
    }
}
