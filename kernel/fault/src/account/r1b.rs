//! R1b: one atomic counter of anonymous pages. All pages of this crate are anonymous, so this counter is also
//! the number of all resident pages (spec §1.6).

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct R1b(Padded<Tally>);

impl Accountant for R1b {
    fn new(_: u32) -> Self {
        Self(Padded::default())
    }

    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        self.0.0.add(mm, local, Counts { rss: 0, ..counts });
    }

    fn quick(&self) -> Counts {
        let counts = self.0.0.load();
        Counts { rss: counts.anon_rss, ..counts }
    }
}
