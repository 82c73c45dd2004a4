//! The kernel's counts of huge pages of one size.

use super::lines;

/// The files with the counts of one size. Source: the kernel's documentation, "HugeTLB Pages".
pub(crate) struct Counts {
    /// Pages that are in no mapping, whether reserved or not.
    pub(crate) free: &'static str,
    /// Free pages that a mapping may take at any time.
    pub(crate) reserved: &'static str,
}

pub(crate) const MIB_2: Counts = Counts {
    free: "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
    reserved: "/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages",
};
pub(crate) const GIB_1: Counts = Counts {
    free: "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages",
    reserved: "/sys/kernel/mm/hugepages/hugepages-1048576kB/resv_hugepages",
};

/// Reads one count. `None` if there is no such file, as in a chroot without `/sys`.
pub(crate) fn read(path: &str) -> Option<usize> {
    let mut count = None;
    lines::for_each(path, |line| count = count.or(line.trim().parse().ok())).ok()?;
    count
}
