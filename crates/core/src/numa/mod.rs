//! NUMA: the order in which an allocation tries nodes and zones.

mod zonelist;

pub(crate) use zonelist::{Distances, MAX_NODES, Topology, fill_zonelists};
