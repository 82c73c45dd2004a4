//! Random programs of the whole public surface of a pool, run against a simple model.
//!
//! `tests/programs.rs` runs them in ordinary tests, and the fuzz target `pool_operations` for hours. Both begin with bytes:
//! every sequence of bytes is a program (`decode`), which is run step by step (`run`) beside the model (`model`); what
//! needs other threads or processes is in `others`.

mod decode;
mod model;
mod others;
mod owned;
mod run;

pub(crate) use decode::Program;
