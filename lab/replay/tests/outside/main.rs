//! Tests of replays and verification through the crate's public interface.

mod advise;
mod field;
mod recordings;
mod steps;
mod verify;
mod verify_mutations;
mod verify_smoke;
