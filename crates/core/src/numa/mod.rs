//! NUMA: which nodes and zones an allocation looks at, in which order.

mod zonelist;

pub(crate) use zonelist::{Distances, MAX_NODES, Topology, fill_zonelists};
