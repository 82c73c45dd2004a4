//! Finds addresses of kernel functions in `/proc/kallsyms`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use super::kallsyms::{self, Symbol};

/// Addresses of functions that events name, and the name of the bulk allocator. A fact is `None` if the
/// kernel's list does not show it. Not every user may see addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// The periodic work of a CPU (`vmstat_update`).
    pub vmstat_update: Option<u64>,
    /// The work item that flushes a CPU's LRU lists.
    pub lru_add_drain_per_cpu: Option<u64>,
    /// Name of the bulk allocator in this kernel.
    pub bulk_allocator: Option<&'static str>,
}

/// Names of the bulk allocator, newest first. Source: `/proc/kallsyms` of Linux 6.18 and 6.1.
const BULK_ALLOCATORS: [&str; 2] = ["alloc_pages_bulk_noprof", "__alloc_pages_bulk"];

impl Symbols {
    /// Reads the symbols of the running kernel. Symbols that cannot be read become `None`.
    pub fn read() -> Self {
        File::open("/proc/kallsyms").and_then(|file| Self::of(BufReader::new(file))).unwrap_or_default()
    }

    /// Reads the symbols from a text with the format of `/proc/kallsyms`.
    ///
    /// # Errors
    /// An error if the text cannot be read.
    pub fn of(text: impl BufRead) -> io::Result<Self> {
        let mut symbols = Self::default();
        kallsyms::read(text, |symbol| symbols.note(&symbol))?;
        Ok(symbols)
    }

    fn note(&mut self, symbol: &Symbol<'_>) {
        let Symbol { address, name, .. } = *symbol;
        if symbol.is_in_module {
            return;
        }
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
        let text = "ffffffff81621970 T alloc_pages_bulk_noprof\nffffffff81600000 t vmstat_update\n\
                    0000000000000000 t lru_add_drain_per_cpu\nffffffffc0000000 t vmstat_update\t[module]\nnonsense\n";
        let symbols = Symbols::of(text.as_bytes()).unwrap();
        assert_eq!(symbols.vmstat_update, Some(0xffff_ffff_8160_0000));
        assert_eq!(symbols.lru_add_drain_per_cpu, None);
        assert_eq!(symbols.bulk_allocator, Some("alloc_pages_bulk_noprof"));
    }
}
