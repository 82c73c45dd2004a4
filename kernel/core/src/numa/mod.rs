//! NUMA: computes the order of the nodes and zones that an allocation tries.

mod zonelist;

pub(crate) use zonelist::{Distances, MAX_NODES, Topology, fill_zonelists};
