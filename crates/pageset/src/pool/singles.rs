//! Single pages between the arrays and the depot, half an array at a time.

use std::sync::atomic::Ordering::Relaxed;

use pageset_core::{FreeError, Order, Pfn};

use super::Inner;
use super::exchange::{BATCH_MAX, request};
use crate::arrays::{Class, Entry, ZeroState};
use crate::depot::{Depot, Given};

/// Single pages on their way.
pub(super) struct Singles {
    entries: [Entry; BATCH_MAX],
    len: usize,
}

impl Singles {
    pub(super) fn new() -> Self {
        Self { entries: [Entry::dirty(0); BATCH_MAX], len: 0 }
    }

    fn push(&mut self, entry: Entry) {
        self.entries[self.len] = entry;
        self.len += 1;
    }

    pub(super) fn as_slice(&self) -> &[Entry] {
        &self.entries[..self.len]
    }
}

impl Inner {
    /// Takes up to `wanted` single pages (64 at most). Capacity is claimed for those it returns.
    pub(super) fn take_singles(&self, wanted: usize) -> Singles {
        let mut singles = Singles::new();
        let wanted = wanted.min(BATCH_MAX);
        if !self.counts.claim(wanted as u64) {
            return singles;
        }
        let mut depot = self.depot.lock();
        while singles.len < wanted {
            let Some((first, bits)) = depot.take((wanted - singles.len) as u32) else {
                match self.core.alloc(self.cpu(), &request(Order::PAGEBLOCK)) {
                    Ok(pfn) => depot.add(pfn.0 as u32),
                    Err(_) => break,
                }
                continue;
            };
            let zero = self.ledger.take_bits(first, bits);
            let mut rest = bits;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let is_zero = if zero >> bit & 1 == 1 { ZeroState::Zero } else { ZeroState::Unknown };
                singles.push(Entry::with_zero(first + bit, is_zero));
                rest &= rest - 1;
            }
        }
        drop(depot);
        if singles.len < wanted {
            self.take_scattered(&mut singles, wanted);
        }
        self.counts.unclaim((wanted - singles.len) as u64);
        singles
    }

    /// Takes single pages from the core, where no whole pageblock is free any more.
    #[cold]
    fn take_scattered(&self, singles: &mut Singles, wanted: usize) {
        let mut pages = [None; BATCH_MAX];
        let pages = &mut pages[singles.len..wanted];
        // What it has, none included, is what there is.
        let _ = self.core.alloc_bulk(self.cpu(), &request(Order::ZERO), pages);
        for pfn in pages.iter().flatten() {
            let frame = pfn.0 as u32;
            singles.push(Entry::with_zero(frame, self.ledger.take(frame..frame + 1)));
        }
    }

    /// Moves half of this CPU's array of single pages, and `first`, to where they are free.
    pub(super) fn flush_singles(&self, first: Entry) {
        let wanted = (self.caps.of(Class::Order0) as usize / 2).min(BATCH_MAX - 1);
        let mut singles = Singles::new();
        if let Some(cpu) = self.locked_arrays() {
            cpu.try_pop_many(Class::Order0, wanted, |entry| singles.push(entry));
        }
        while self.area.is_some()
            && singles.len < wanted
            && let Some(entry) = self.pop(Class::Order0)
        {
            singles.push(entry);
        }
        self.counts.flushed.fetch_add(singles.len as u64, Relaxed);
        self.counts.flushes.fetch_add(1, Relaxed);
        singles.push(first);
        self.give_singles(singles.as_slice());
    }

    /// Frees single pages, whether they came from the depot or from the core.
    pub(super) fn give_singles(&self, entries: &[Entry]) {
        let mut depot = self.depot.lock();
        let mut freed = 0;
        for entry in entries {
            if self.give_single(&mut depot, *entry) {
                freed += 1;
            } else {
                self.counts.note_bad_free();
            }
        }
        self.counts.unclaim(freed);
    }

    /// Frees one; `false` if it is free already.
    fn give_single(&self, depot: &mut Depot, entry: Entry) -> bool {
        let frame = entry.frame();
        // Before somebody else can have it.
        self.ledger.put(frame..frame + 1, entry.zero());
        match depot.give(frame) {
            Given::Kept => true,
            Given::Twice => false,
            Given::Whole(first) => {
                self.core.free(self.cpu(), Pfn(u64::from(first)), Order::PAGEBLOCK).is_ok()
            }
            Given::Foreign => {
                let pfn = u64::from(frame);
                match self.core.free(self.cpu(), Pfn(pfn), Order::ZERO) {
                    // Its pageblock was dissolved: a part of a larger block. The depot's lock keeps others from cutting
                    // the same block meanwhile.
                    Err(FreeError::WrongOrder { .. } | FreeError::NotABlock(_)) => {
                        self.core.free_range(self.cpu(), pfn..pfn + 1).is_ok()
                    }
                    outcome => outcome.is_ok(),
                }
            }
        }
    }

    /// Moves what is free in the depot to the core's lists, so that larger blocks can be made of it.
    pub(super) fn dissolve_depot(&self) {
        let cpu = self.cpu();
        self.depot.lock().dissolve(|frames| {
            let outcome = self.core.free_range(cpu, u64::from(frames.start)..u64::from(frames.end));
            debug_assert_eq!(outcome, Ok(()), "the depot's frames are allocated in the core");
        });
    }
}
