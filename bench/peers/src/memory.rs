//! The kernel's report on the memory of this process.

/// Bytes of anonymous memory that are resident: heaps, stacks and tables, not the program's text.
pub(crate) fn anonymous() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    parse(&text)
}

/// Converts: `bytes` were resident for `of` bytes of memory. Returns the MiB that this is for each GiB.
pub(crate) fn mib_per_gib(bytes: u64, of: usize) -> f64 {
    bytes as f64 / (1 << 20) as f64 * ((1 << 30) as f64 / of as f64)
}

fn parse(text: &str) -> u64 {
    let kib = text.lines().find_map(|line| line.strip_prefix("Anonymous:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        let text = "55d0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:   2048 kB\nAnonymous:     120 kB\n";
        assert_eq!(parse(text), 120 * 1024);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(anonymous() > 0);
    }
}
