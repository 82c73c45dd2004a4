//! Reads from `/proc/self/smaps` and `/proc/self/numa_maps` how much memory of a range is resident, and on
//! which nodes.

use std::collections::TryReserveError;
use std::io;
use std::ops::Range;

use super::lines;

/// The resident memory of a range, in bytes, by page size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// All resident memory.
    pub(crate) all: u64,
    /// Bytes in transparent huge pages, private or shared.
    pub(crate) huge: u64,
    /// Page size of the mapping, as the kernel gives it.
    pub(crate) kernel_page: u64,
    /// Bytes that are locked in memory.
    pub(crate) locked: u64,
}

/// Sums up the resident memory of the mappings that overlap `range`.
///
/// # Errors
/// The system's error, for example if there is no `/proc`.
pub(crate) fn resident(range: Range<usize>) -> io::Result<Resident> {
    let mut sum = SmapsSum { range, sum: Resident::default(), is_inside: false };
    lines::for_each("/proc/self/smaps", |line| sum.add(line))?;
    Ok(sum.sum)
}

/// The resident bytes on each node, for the mappings that begin in `range`. Empty if the kernel does not
/// report nodes.
///
/// # Errors
/// An error if the heap has no memory for the list.
pub(crate) fn nodes(range: Range<usize>) -> io::Result<Vec<(u16, u64)>> {
    let mut sum = NodesSum { range, nodes: Vec::new(), outcome: Ok(()) };
    // A kernel without NUMA has no file `numa_maps`.
    let _ = lines::for_each("/proc/self/numa_maps", |line| sum.add(line));
    sum.outcome.map_err(|_| io::ErrorKind::OutOfMemory)?;
    sum.nodes.sort_unstable();
    Ok(sum.nodes)
}

/// Adds up the lines of `smaps` for the mappings that overlap a range.
struct SmapsSum {
    range: Range<usize>,
    sum: Resident,
    /// Whether the mapping of the current lines overlaps the range.
    is_inside: bool,
}

impl SmapsSum {
    fn add(&mut self, line: &str) {
        if let Some(mapping) = addresses(line) {
            self.is_inside = mapping.start < self.range.end && mapping.end > self.range.start;
            return;
        }
        let Some((key, rest)) = line.split_once(':').filter(|_| self.is_inside) else { return };
        let bytes = rest.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024;
        let sum = &mut self.sum;
        match key {
            "Rss" | "Private_Hugetlb" | "Shared_Hugetlb" => sum.all += bytes,
            "AnonHugePages" | "ShmemPmdMapped" => sum.huge += bytes,
            "KernelPageSize" => sum.kernel_page = sum.kernel_page.max(bytes),
            "Locked" => sum.locked += bytes,
            _ => {}
        }
    }
}

/// Parses the address range in the header line of a mapping.
fn addresses(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// Adds up the lines of `numa_maps` by node, for the mappings that begin in a range.
struct NodesSum {
    range: Range<usize>,
    nodes: Vec<(u16, u64)>,
    outcome: Result<(), TryReserveError>,
}

impl NodesSum {
    fn add(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let start = words.next().and_then(|word| usize::from_str_radix(word, 16).ok());
        if !start.is_some_and(|start| self.range.contains(&start)) {
            return;
        }
        let value =
            |key| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
        let page = value("kernelpagesize_kB=").unwrap_or(4) * 1024;
        for word in words {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) else {
                continue;
            };
            if let (Ok(node), Ok(pages)) = (node.parse(), pages.parse::<u64>()) {
                self.add_node(node, pages * page);
            }
        }
    }

    fn add_node(&mut self, node: u16, more: u64) {
        if let Some((_, bytes)) = self.nodes.iter_mut().find(|(known, _)| *known == node) {
            *bytes += more;
            return;
        }
        match self.nodes.try_reserve(1) {
            Ok(()) => self.nodes.push((node, more)),
            Err(error) => self.outcome = Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_smaps(text: &str, range: Range<usize>) -> Resident {
        let mut sum = SmapsSum { range, sum: Resident::default(), is_inside: false };
        text.lines().for_each(|line| sum.add(line));
        sum.sum
    }

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
KernelPageSize:        4 kB
Rss:                2052 kB
AnonHugePages:      2048 kB
Locked:                0 kB
7f0000400000-7f0000800000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
Rss:                   8 kB
";

    #[test]
    fn only_mappings_of_the_range_count() {
        let sum = sum_smaps(SMAPS, 0x7f00_0000_0000..0x7f00_0040_0000);
        assert_eq!(sum, Resident { all: 2052 << 10, huge: 2 << 20, kernel_page: 4096, locked: 0 });
        assert_eq!(sum_smaps(SMAPS, 0..0x1000), Resident::default());
    }

    #[test]
    fn bytes_are_summed_by_node() {
        let text = "7f0000000000 default anon=3 N0=2 N1=1 kernelpagesize_kB=4\n\
                    7f0000200000 bind:1 huge anon=1 N1=1 kernelpagesize_kB=2048\n\
                    7f1000000000 default anon=9 N0=9 kernelpagesize_kB=4\n";
        let mut sum =
            NodesSum { range: 0x7f00_0000_0000..0x7f00_0040_0000, nodes: Vec::new(), outcome: Ok(()) };
        text.lines().for_each(|line| sum.add(line));
        assert_eq!(sum.nodes, [(0, 8192), (1, 4096 + (2 << 20))]);
    }
}
