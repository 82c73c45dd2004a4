//! The kernel's counts of huge pages of one size.

use super::lines;

/// The paths of the files with the kernel's counts for one size of huge pages. Source: the kernel's
/// documentation, "HugeTLB Pages".
pub(crate) struct Counts {
    /// The number of huge pages that no mapping uses, including pages that are reserved for a mapping.
    pub(crate) free: &'static str,
    /// The number of huge pages that are free but reserved for a mapping.
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

/// Reads one count. `None` if the file does not exist, for example in a chroot without `/sys`.
pub(crate) fn read(path: &str) -> Option<usize> {
    let mut count = None;
    lines::for_each(path, |line| count = count.or(line.trim().parse().ok())).ok()?;
    count
}
