//! R1: two atomic counters of resident pages on one cache line (spec §1.6). Each anonymous page counts in
//! both counters. Linux 2.6.13 had a counter of all resident pages and a counter of anonymous pages.

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct R1(Padded<Tally>);

impl Accountant for R1 {
    fn new(_: u32) -> Self {
        Self(Padded::default())
    }

    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        self.0.0.add(mm, local, counts);
    }

    fn quick(&self) -> Counts {
        self.0.0.load()
    }
}
