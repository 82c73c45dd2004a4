//! R1p: two atomic counters of resident pages, each on its own cache line (spec §1.6). R1p tests a hypothesis
//! of 2005: an interconnect with two planes can transfer two cache lines at the same time.

use super::Accountant;
use crate::atomic::{AtomicI64, Ordering::Relaxed, Padded};
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::{Line, World};

#[derive(Default)]
pub(crate) struct R1p {
    rss: Padded<AtomicI64>,
    anon_rss: Padded<AtomicI64>,
    tables: Padded<AtomicI64>,
}

impl Accountant for R1p {
    fn new(_: u32) -> Self {
        Self::default()
    }

    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        if counts.rss != 0 {
            mm.world().shares(local.cpu, mm.rss_line());
            self.rss.0.fetch_add(counts.rss, Relaxed);
        }
        if counts.anon_rss != 0 {
            mm.world().shares(local.cpu, Line::AnonRss { space: mm.id() });
            self.anon_rss.0.fetch_add(counts.anon_rss, Relaxed);
        }
        if counts.tables != 0 {
            self.tables.0.fetch_add(counts.tables, Relaxed);
        }
    }

    fn quick(&self) -> Counts {
        Counts {
            rss: self.rss.0.load(Relaxed),
            anon_rss: self.anon_rss.0.load(Relaxed),
            tables: self.tables.0.load(Relaxed),
        }
    }
}
