//! Tests of the simulated machine through its public interface.

mod conservation;
mod determinism;
mod full_memory;
mod lines;
mod machine_files;
mod queueing;
