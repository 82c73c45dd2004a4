//! Replays, verification and workloads through the crate's public interface.

mod ageing;
mod field;
mod load;
mod recordings;
mod steps;
mod threads;
mod verify;
mod verify_mutations;
mod verify_smoke;
