//! NUMA nodes of memory.

use std::io;

use super::{Change, Mapping, host};

/// The kernel's policy for placing pages on the given nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// `MPOL_BIND`: pages come only from these nodes.
    Bind,
    /// `MPOL_INTERLEAVE`: pages come from each of these nodes in turn.
    Interleave,
}

/// The number of bits in a word of a node set.
const WORD_BITS: usize = u64::BITS as usize;

/// A set of nodes. A kernel supports at most 1024 nodes, because its option `CONFIG_NODES_SHIFT` is at most
/// 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeSet([u64; 1024 / WORD_BITS]);

impl NodeSet {
    /// Makes the set of the nodes whose bits are set. Bit `n` stands for node `n`.
    pub(crate) fn of_bits(bits: u64) -> Self {
        let mut words = [0; 1024 / WORD_BITS];
        words[0] = bits;
        Self(words)
    }

    /// A set of one node. `None` for 1024 or more, because no kernel supports so many nodes.
    pub(crate) fn of(node: u16) -> Option<Self> {
        let mut set = Self::of_bits(0);
        let node = usize::from(node);
        *set.0.get_mut(node / WORD_BITS)? = 1 << (node % WORD_BITS);
        Some(set)
    }
}

/// Binds the mapping's memory to nodes.
///
/// # Errors
/// The errors of mbind(2): `EINVAL` for a node that does not exist, `ENOSYS` for a kernel without NUMA.
pub(crate) fn bind(mapping: &mut Mapping, nodes: &NodeSet, how: Binding) -> io::Result<()> {
    mapping.note(Change::Bound);
    let mode = match how {
        Binding::Bind => libc::MPOL_BIND,
        Binding::Interleave => libc::MPOL_INTERLEAVE,
    };
    host::bind_to(mapping, mode, &nodes.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_bit_of_1024() {
        assert_eq!(NodeSet::of(63), Some(NodeSet::of_bits(1 << 63)));
        let bits = |node| NodeSet::of(node).map(|set| set.0.map(u64::count_ones).iter().sum::<u32>());
        assert_eq!([64, 1023].map(bits), [Some(1); 2]);
        assert_eq!((NodeSet::of(64).unwrap().0[1], NodeSet::of(1023).unwrap().0[15]), (1, 1 << 63));
        assert_eq!((NodeSet::of(1024), NodeSet::of(u16::MAX)), (None, None));
    }
}
