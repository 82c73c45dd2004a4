//! Workloads through the crate's public interface.

mod load;
mod threads;
