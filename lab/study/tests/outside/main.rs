//! Tests of workloads through the crate's public interface.

mod ageing;
mod load;
mod threads;
