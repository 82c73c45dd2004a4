//! Runs random programs on a pool, and compares the pool with a simple model. The programs use most of the
//! pool's public interface.
//!
//! `tests/programs.rs` runs random programs in ordinary tests, and the fuzz target `pool_operations` runs
//! them for hours. `decode` turns any sequence of bytes into a program. `run` runs a program step by step on
//! the pool and on the `model`. Steps with other threads or processes are in `others`.

mod decode;
mod model;
mod others;
mod owned;
mod run;

pub(crate) use decode::Program;
