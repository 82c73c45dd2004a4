//! Memory of this machine.

use std::fs;

/// Values of `/proc/meminfo`; `None` if a line is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// All memory that the kernel has.
    pub total_bytes: Option<u64>,
    /// Memory that can be used without swapping, as the kernel estimates it.
    pub available_bytes: Option<u64>,
}

impl Meminfo {
    /// Reads `/proc/meminfo`.
    #[must_use]
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    pub(super) fn parse(text: &str) -> Self {
        let bytes = |name| {
            let kib = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"))?;
            kib.parse::<u64>().ok()?.checked_mul(1024)
        };
        Self { total_bytes: bytes("MemTotal:"), available_bytes: bytes("MemAvailable:") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_bytes_and_what_is_not_told_is_absent() {
        let told = Meminfo::parse("MemTotal:       24683732 kB\nMemAvailable:  7 kB\n");
        assert_eq!((told.total_bytes, told.available_bytes), (Some(24_683_732 << 10), Some(7 << 10)));
        assert_eq!(Meminfo::parse("MemTotal: 18446744073709551615 kB\n"), Meminfo::default());
    }
}
