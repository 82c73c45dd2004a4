//! Parsers of the texts under `/proc` that describe the page allocator.
//!
//! Every parser takes the whole text and returns a struct, or a [`ProcError`] with file and line. The texts
//! have some kilobytes, and the caller limits their length. Limits on CPUs, nodes and zones bound the memory
//! for a damaged or malicious text.

mod buddyinfo;
mod pagetypeinfo;
mod vmstat;
mod zoneinfo;

pub use buddyinfo::{Buddyinfo, FreeBlocks};
pub use pagetypeinfo::{Pageblocks, Pagetypeinfo, TypedFreeBlocks};
pub use vmstat::Vmstat;
pub(crate) use zoneinfo::ZoneText;
pub use zoneinfo::Zoneinfo;

use pageset_core::ZoneKind;
use thiserror::Error;

/// Maximum number of zones in one file: 1024 nodes with 5 zones each. Source: `CONFIG_NODES_SHIFT` ≤ 10,
/// Linux 6.12.
pub(crate) const ZONES_MAX: usize = 1024 * 5;
/// Maximum number of CPUs. Source: `CONFIG_NR_CPUS` ≤ 8192 on x86-64, Linux 6.12.
pub(crate) const CPUS_MAX: u32 = 8192;

/// The problem of a `/proc` text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("/proc/{file}, line {line}: {problem}; copy the file again from a running kernel")]
pub struct ProcError {
    /// Name below `/proc`.
    pub file: &'static str,
    /// Line, counted from 1.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

impl ProcError {
    pub(crate) fn new(file: &'static str, line: usize, problem: impl Into<String>) -> Self {
        Self { file, line, problem: problem.into() }
    }
}

/// The parts of a line such as `Node 0, zone    DMA32 …`: node, zone name, and the rest.
pub(crate) struct ZoneLine<'text> {
    pub(crate) node: u16,
    pub(crate) name: &'text str,
    pub(crate) rest: &'text str,
}

impl<'text> ZoneLine<'text> {
    /// Splits a line that starts with `Node`. `None` if the line has another form.
    pub(crate) fn parse(line: &'text str) -> Option<Self> {
        let (node, rest) = line.strip_prefix("Node")?.split_once(',')?;
        let node = node.trim().parse().ok()?;
        let rest = rest.trim_start().strip_prefix("zone")?.trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if name.is_empty() { None } else { Some(Self { node, name, rest }) }
    }

    /// The kind of the zone. `None` for a zone with an unknown name, such as `Device`.
    pub(crate) fn kind(&self) -> Option<ZoneKind> {
        ZoneKind::from_name(self.name)
    }
}

/// Shortens `text` for an error message, so that a very long line does not fill the screen.
pub(crate) fn excerpt(text: &str) -> String {
    let cut: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if cut.len() < text.len() { format!("\"{cut}…\"") } else { format!("\"{cut}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_line_is_split() {
        let line = ZoneLine::parse("Node    1, zone    DMA32, type    Movable  1 2").unwrap();
        assert_eq!((line.node, line.name), (1, "DMA32"));
        assert_eq!(line.rest.trim_start(), ", type    Movable  1 2");
        for wrong in ["", "Node", "Node x, zone DMA", "Node 1, zone ", "Node 70000, zone DMA"] {
            assert!(ZoneLine::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt("a\0b"), r#""a\0b""#);
        assert!(excerpt(&"x".repeat(1000)).len() < 60);
    }
}
