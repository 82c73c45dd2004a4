//! Random programs of the whole public surface of a pool, run against a simple model.
//!
//! `tests/programs.rs` runs them in ordinary tests, and the fuzz target `pool_operations` runs them for
//! hours. Every sequence of bytes is a program (`decode`). It runs step by step (`run`) beside the model
//! (`model`). Steps with other threads or processes are in `others`.

mod decode;
mod model;
mod others;
mod owned;
mod run;

pub(crate) use decode::Program;
