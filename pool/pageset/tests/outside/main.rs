//! Tests the pool through its public interface. Tests that fork or set limits are separate test targets.

mod buffer;
mod changed;
mod collections;
mod cpus;
mod examples;
mod giveback;
mod owned;
mod pool;
mod raw;
mod registered;
mod run;
mod shortage;
