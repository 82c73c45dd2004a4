//! NUMA: an allocation's order of nodes and zones.

mod zonelist;

pub(crate) use zonelist::{Distances, MAX_NODES, Topology, fill_zonelists};
