//! Sets of CPUs, in the notation that the kernel uses.

use std::str::FromStr;
use std::{fmt, fs};

use thiserror::Error;

/// Maximum number of CPUs.
const CPUS_MAX: u32 = 8192;

/// Distinct CPU numbers in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(Vec<u32>);

/// A text that is not a list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a list of CPUs: {0:?}; write one like 0-3,8")]
pub struct NoCpuList(String);

impl CpuList {
    /// The CPUs that are online.
    #[must_use]
    pub fn online() -> Self {
        let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    /// The CPUs.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Writes the set for `tracing_cpumask`: hexadecimal words of 32 CPUs, the highest CPUs first.
    pub(crate) fn mask(&self) -> String {
        let words = self.0.last().map_or(0, |last| last / 32 + 1);
        let word = |index: u32| {
            let bits =
                self.iter().filter(|cpu| cpu / 32 == index).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
            format!("{bits:08x}")
        };
        (0..words).rev().map(word).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for CpuList {
    /// Writes the set as a user types it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.chunk_by(|left, right| left + 1 == *right).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                one => write!(f, "{comma}{}", one[0])?,
            }
        }
        Ok(())
    }
}

impl FromStr for CpuList {
    type Err = NoCpuList;

    fn from_str(text: &str) -> Result<Self, NoCpuList> {
        let wrong = || NoCpuList(text.chars().take(40).collect());
        let mut cpus = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) =
                (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
            if first > last || last >= CPUS_MAX || cpus.len() > CPUS_MAX as usize {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_masks_written() {
        let list: CpuList = "33,0-2,2".parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 33]);
        assert_eq!(list.mask(), "00000002,00000007");
        assert_eq!(list.to_string(), "0-2,33");
        assert!(list.contains(33) && !list.contains(3));
        for wrong in ["", "a", "2-1", "0-8192", "0-", "1,,2"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong:?}");
        }
    }
}
