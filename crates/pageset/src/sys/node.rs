//! NUMA nodes of memory.

use std::io;
use std::ops::Range;

use super::Mapping;

/// Whether pages may come from other nodes than the ones named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// `MPOL_BIND`: these nodes or none.
    Bind,
    /// `MPOL_INTERLEAVE`: from each in turn.
    Interleave,
}

/// Decides from which nodes (bit `n` for node `n`) the memory of a range will come.
///
/// # Errors
/// As mbind(2): `EINVAL` for a node that does not exist, `ENOSYS` for a kernel without NUMA.
#[cfg(not(miri))]
pub(crate) fn bind(mapping: &Mapping, bytes: Range<usize>, nodes: u64, how: Binding) -> io::Result<()> {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let mode = match how {
        Binding::Bind => libc::MPOL_BIND,
        Binding::Interleave => libc::MPOL_INTERLEAVE,
    };
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    let mask = [nodes, 0];
    // The kernel wants one more than the bits of the mask.
    let bits = u64::from(u64::BITS) + 1;
    // SAFETY: the range is the mapping's, and the mask is longer than what the kernel reads.
    let outcome = unsafe { libc::syscall(libc::SYS_mbind, start, bytes.len(), mode, mask.as_ptr(), bits, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Miri knows one node.
#[cfg(miri)]
pub(crate) fn bind(_: &Mapping, _: Range<usize>, _: u64, _: Binding) -> io::Result<()> {
    Ok(())
}
