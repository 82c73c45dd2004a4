//! Locks that CPUs wait for in virtual time.
//!
//! The module `raw` has the lock itself. `queue` decides how long a CPU waits for a lock. `model` has the
//! cost of passing a lock to the next CPU. `order` checks the lock order. `gate` is a readers-writer lock.

mod gate;
mod model;
mod order;
mod queue;
mod raw;

pub use gate::Gate;
pub use model::LockModel;
pub(crate) use order::Held;
pub(crate) use queue::LockTable;
pub use raw::{Hold, Spin, VirtualLock};

/// A mutex that virtual CPUs wait for in virtual time.
pub type VirtualMutex<T> = pageset_core::lock_api::Mutex<VirtualLock, T>;

/// Makes a mutex of a class around `value`.
#[must_use]
pub const fn mutex<T>(class: LockClass, value: T) -> VirtualMutex<T> {
    VirtualMutex::from_raw(VirtualLock::of(class), value)
}

/// The kind of data that a lock protects. Results list each class of locks separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockClass {
    /// A zone's free lists.
    Zone,
    /// A page set.
    PageSet,
    /// An LRU list: pages in the order of their last use.
    Lru,
    /// The list of memory areas of an address space.
    Mmap,
    /// A page table, or a part of one.
    PageTable,
    /// Lists of slabs.
    Slab,
    /// Any other data.
    Other,
}

impl LockClass {
    /// Every class of locks, in the order of the classes' numbers.
    pub const ALL: [Self; 7] =
        [Self::Zone, Self::PageSet, Self::Lru, Self::Mmap, Self::PageTable, Self::Slab, Self::Other];
    /// Number of classes of locks.
    pub const COUNT: usize = Self::ALL.len();

    /// The class's name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::PageSet => "page_set",
            Self::Lru => "lru",
            Self::Mmap => "mmap",
            Self::PageTable => "page_table",
            Self::Slab => "slab",
            Self::Other => "other",
        }
    }
}

/// The cost of the locks of one class, summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockUse {
    /// Number of times that CPUs took a lock of the class.
    pub acquisitions: u64,
    /// Number of times that a CPU had to wait for a lock of the class.
    pub contended: u64,
    /// Time that CPUs waited for locks of the class, in picoseconds.
    pub(crate) wait_ps: u64,
    /// Time that CPUs held locks of the class, in picoseconds.
    pub(crate) hold_ps: u64,
    /// The longest time that a CPU waited for one acquisition, in picoseconds.
    pub(crate) longest_wait_ps: u64,
}

impl LockUse {
    /// Counts one acquisition. `waited_ps` is the time that the CPU waited for the lock; `None` if the CPU
    /// did not wait.
    pub(crate) fn took(&mut self, waited_ps: Option<u64>) {
        self.acquisitions += 1;
        if let Some(wait_ps) = waited_ps {
            self.contended += 1;
            self.wait_ps += wait_ps;
            self.longest_wait_ps = self.longest_wait_ps.max(wait_ps);
        }
    }

    /// Time that CPUs waited for locks of the class, in nanoseconds.
    #[must_use]
    pub const fn wait_ns(&self) -> u64 {
        self.wait_ps / 1000
    }

    /// Time that CPUs held locks of the class, in nanoseconds.
    #[must_use]
    pub const fn hold_ns(&self) -> u64 {
        self.hold_ps / 1000
    }

    /// The longest time that a CPU waited for one acquisition, in nanoseconds.
    #[must_use]
    pub const fn longest_wait_ns(&self) -> u64 {
        self.longest_wait_ps / 1000
    }
}
