//! Where functions of the kernel are, by `/proc/kallsyms`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
};

/// Addresses of the functions that events name, where this user may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// The periodic work of a CPU.
    pub vmstat_update: Option<u64>,
    /// The work that flushes a CPU's lists.
    pub lru_add_drain_per_cpu: Option<u64>,
    /// Name of the bulk allocator.
    pub bulk_allocator: Option<&'static str>,
}

/// Names of the bulk allocator, newest first. Source: `/proc/kallsyms` of Linux 6.18 and 6.1.
const BULK_ALLOCATORS: [&str; 2] = ["alloc_pages_bulk_noprof", "__alloc_pages_bulk"];

/// Bytes of a line at most; the kernel's names have up to 512.
const LINE_BYTES_MAX: u64 = 1024;

impl Symbols {
    /// Those of the running kernel. What cannot be read is not known.
    pub fn read() -> Self {
        File::open("/proc/kallsyms").and_then(|file| Self::of(BufReader::new(file))).unwrap_or_default()
    }

    /// Those that a text in the format of `/proc/kallsyms` has.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(mut text: impl BufRead) -> io::Result<Self> {
        let (mut symbols, mut line) = (Self::default(), Vec::new());
        loop {
            line.clear();
            if text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                return Ok(symbols);
            }
            if let Ok(line) = str::from_utf8(&line) {
                symbols.note(line);
            }
        }
    }

    /// `ffffffff81621970 T alloc_pages_bulk_noprof`; the address is 0 for who may not see it.
    fn note(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return;
        };
        let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0);
        match name {
            "vmstat_update" => self.vmstat_update = address,
            "lru_add_drain_per_cpu" => self.lru_add_drain_per_cpu = address,
            _ => {
                let found = BULK_ALLOCATORS.into_iter().find(|known| *known == name);
                self.bulk_allocator = self.bulk_allocator.or(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_hidden_addresses_are_not() {
        let mut symbols = Symbols::default();
        for line in [
            "ffffffff81621970 T alloc_pages_bulk_noprof",
            "ffffffff81600000 t vmstat_update",
            "0000000000000000 t lru_add_drain_per_cpu",
            "ffffffffc0000000 t vmstat_update\t[module]",
            "nonsense",
        ] {
            symbols.note(line);
        }
        assert_eq!(symbols.vmstat_update, Some(0xffff_ffff_8160_0000));
        assert_eq!(symbols.lru_add_drain_per_cpu, None);
        assert_eq!(symbols.bulk_allocator, Some("alloc_pages_bulk_noprof"));
    }
}
