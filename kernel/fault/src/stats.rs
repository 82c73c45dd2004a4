//! Counters of a task (spec §1.2). Each task has its own plain numbers, so that no counter is on a shared
//! cache line.

use core::ops::AddAssign;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a task since its start. The counters only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            /// Acquisitions of the engine's locks: page tables, areas, the address space. The frame
            /// allocator's locks are not counted.
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

/// How many times locks were taken, and how many times a task waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Times a lock was taken.
    pub acquired: u64,
    /// How many times this task had to wait, because another task held the lock.
    pub contended: u64,
    /// Time waited, in nanoseconds of the host's clock; 0 without a clock.
    pub wait_ns: u64,
}

stats! {
    /// Faults handled, successful or not.
    faults,
    /// Pages that this task mapped into empty words, as small pages or as parts of larger blocks.
    installed,
    /// Pages that this task prepared and freed again, because another task filled the word first.
    lost_pte,
    /// Tables that this task prepared and freed again, because another task filled the word first.
    lost_table,
    /// Faults on words that already allowed the access, so that nothing had to be done.
    spurious,
    /// Times a fault started again because a table was being replaced or an area changed.
    retries,
    /// Read faults that got the shared zero page.
    zero_pages,
    /// Pages copied on write.
    cow_copied,
    /// Pages that became writable without a copy, because no other task used them.
    cow_reused,
    /// Huge pages mapped by one word.
    huge,
    /// Huge faults that mapped small pages instead: no block was free, or another task was faster.
    huge_fallback,
    /// Gang faults that got a block of their order.
    gangs,
    /// Pages brought back after a reclaim.
    restored,
    /// Tables put into the tree.
    tables_alloc,
    /// Tables taken out of the tree.
    tables_freed,
    /// Faults that found their area without the address space's lock.
    vma_fast,
    /// Faults that had to take the address space's lock.
    vma_fallback,
    /// Times the task folded its counts into the address space's.
    rss_flush,
    /// Pages that prefaulting mapped in addition to the requested one.
    prefault_extra,
    /// Pages that prefaulting prepared but could not map.
    prefault_lost,
    /// Pages that prefaulting mapped and that were unmapped without being touched.
    prefault_wasted,
    /// Frames taken from the pool of cleared frames.
    prezeroed,
    /// Blocks that the frame allocator refused to take back. Any number above 0 is a bug, which `check` finds
    /// too.
    refused_frees,
    /// Time in the frame allocator, in nanoseconds; 0 unless the world is timed.
    alloc_ns,
    /// Time spent clearing, in nanoseconds; 0 unless the world is timed.
    zero_ns,
    /// Time spent putting words into tables, in nanoseconds; 0 unless the world is timed.
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
