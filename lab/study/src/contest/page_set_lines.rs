//! Counts how often a CPU of Linux's allocator changes a page set that another CPU changed last. A CPU
//! changes other CPUs' page sets only under policies that send a freed page back to the page set of the CPU
//! that owns the page.

use pageset_blocks::CONTENDED_NS;
use pageset_core::{CpuId, ZoneId};

/// The name of a page set: its zone and its CPU.
type PageSet = (ZoneId, CpuId);

/// For each page set, the CPU that changed the page set last, and the time of this change.
#[derive(Debug, Default)]
pub(super) struct PageSetLines {
    last: std::collections::HashMap<PageSet, (CpuId, u64)>,
    /// Number of times that a CPU changed a page set that another CPU had changed last.
    pub(super) passed: u64,
    /// Number of the changes in `passed` that came less than [`CONTENDED_NS`] after the other CPU's change.
    pub(super) contended: u64,
}

impl PageSetLines {
    /// Records that a CPU changes a page set.
    pub(super) fn note(&mut self, page_set: PageSet, cpu: CpuId, now_ns: u64) {
        let Some((before, then_ns)) = self.last.insert(page_set, (cpu, now_ns)) else { return };
        if before != cpu {
            self.passed += 1;
            self.contended += u64::from(now_ns.saturating_sub(then_ns) < CONTENDED_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_passes_from_cpu_to_cpu_and_is_contended_for_a_while() {
        let mut lines = PageSetLines::default();
        let (page_set, another) = ((ZoneId(0), CpuId(0)), (ZoneId(1), CpuId(0)));
        lines.note(page_set, CpuId(0), 0);
        lines.note(page_set, CpuId(1), CONTENDED_NS - 1);
        lines.note(page_set, CpuId(1), CONTENDED_NS);
        assert_eq!((lines.passed, lines.contended), (1, 1));
        lines.note(another, CpuId(0), CONTENDED_NS);
        lines.note(page_set, CpuId(0), 2 * CONTENDED_NS);
        assert_eq!((lines.passed, lines.contended), (2, 1));
    }
}
