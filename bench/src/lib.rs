//! What the benchmarks run on: a machine like the one the kernel's vectors were taken from, behind the plainest lock.

mod machine;
mod spin;

pub use machine::{CPU, Host, machine};
pub use spin::Spin;
