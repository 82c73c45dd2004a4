//! Counters of a task (spec §1.2). Each task has its own plain numbers, so that no counter is on a shared
//! cache line.

use core::ops::AddAssign;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a task since its start. The counters only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            /// How often the task took locks of page tables, and as a reader the locks of areas and of
            /// address spaces. The numbers in `locks` leave out other locks, such as locks that the task took
            /// as a writer or in the frame allocator.
            pub locks: LockStats,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// All counters with their names, in the order of the struct. The counters of locks come last.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [
                    $((stringify!($name), self.$name),)*
                    ("lock_acq", self.locks.acquired),
                    ("lock_contended", self.locks.contended),
                    ("lock_wait_ns", self.locks.wait_ns),
                ]
                .into_iter()
            }
        }

        impl AddAssign<&Self> for Stats {
            fn add_assign(&mut self, other: &Self) {
                self.locks.acquired += other.locks.acquired;
                self.locks.contended += other.locks.contended;
                self.locks.wait_ns += other.locks.wait_ns;
                $(self.$name += other.$name;)*
            }
        }
    };
}

/// How often a task took locks, and how often and how long the task waited for locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// How many times this task took a lock.
    pub acquired: u64,
    /// How many times this task had to wait, because another task held the lock, or waited for the lock as
    /// its writer.
    pub contended: u64,
    /// The time of all waits, in nanoseconds of the host's clock. 0 if the host has no clock.
    pub wait_ns: u64,
}

stats! {
    /// The number of faults that the task handled, with or without success.
    faults,
    /// Pages that this task mapped where no page or the zero page was mapped, as small pages or as parts of
    /// larger blocks. Reclaimed pages that the task brought back do not count.
    installed,
    /// Pages that this task prepared but did not map, because another task changed the page-table word first.
    lost_pte,
    /// Tables that this task prepared and freed again, because another task filled the word first.
    lost_table,
    /// Faults that had nothing to do, because the page-table word already allowed the access.
    spurious,
    /// How often a fault started again, for example because another task was changing a table or an area.
    retries,
    /// Read faults that got the shared zero page.
    zero_pages,
    /// Pages that the task copied because of a store to a page that was shared, or that was a part of a
    /// larger block.
    cow_copied,
    /// Pages that became writable without a copy, because no other page-table word mapped their block.
    cow_reused,
    /// Huge pages that the task mapped, each by one word.
    huge,
    /// How often a fault tried to map a huge page and could not, because no block was free or another task
    /// had filled the word.
    huge_fallback,
    /// Gangs (blocks of several small pages) that the task mapped.
    gangs,
    /// Reclaimed pages that the task brought back.
    restored,
    /// Page tables that the task put into the page-table tree.
    tables_alloc,
    /// Page tables that the task took out of the page-table tree.
    tables_freed,
    /// How often a fault under V2, V3 or V7 found its area without the address space's lock.
    vma_fast,
    /// How often a fault under V0, V2, V3 or V7 looked for its area under the address space's lock.
    vma_fallback,
    /// How often the task added its own counts to the address space's counters (R2, R3 and R4).
    rss_flush,
    /// Pages that prefaulting mapped in addition to the pages that the task touched.
    prefault_extra,
    /// Pages that prefaulting prepared but could not map.
    prefault_lost,
    /// Pages that prefaulting mapped, and that this task unmapped before any task touched the pages.
    prefault_wasted,
    /// Frames that the task took from its CPU's stack of cleared frames.
    prezeroed,
    /// How often the frame allocator refused to take blocks back. A batch counts once, however many of its
    /// blocks the allocator refused. A number above 0 means a bug, which `check` finds too.
    refused_frees,
    /// Nanoseconds that the task spent in the frame allocator to get blocks for pages. 0 if
    /// [`World::TIMED`](crate::World::TIMED) is `false`.
    alloc_ns,
    /// Nanoseconds that the task spent to clear pages. 0 if [`World::TIMED`](crate::World::TIMED) is `false`.
    zero_ns,
    /// Nanoseconds that faults of the task spent to change page-table words, with the waits for locks.
    /// Changes that failed do not count. Changes for gangs, runs and reclaimed pages do not count, and
    /// neither do changes that make a page writable without a copy. 0 if
    /// [`World::TIMED`](crate::World::TIMED) is `false`.
    install_ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_summed_and_named() {
        let mut sum = Stats { faults: 3, ..Stats::default() };
        sum += &Stats {
            faults: 4,
            locks: LockStats { acquired: 1, contended: 2, wait_ns: 3 },
            ..Stats::default()
        };
        assert_eq!(sum.named().next(), Some(("faults", 7)));
        assert_eq!(sum.named().last(), Some(("lock_wait_ns", 3)));
    }
}
