//! Tests that record the running kernel or change its settings: one test at a time, in a process that does
//! nothing else.

mod advise;
mod clocks;
mod counts;
mod disturbances;
mod faults;
mod first_minutes;
mod names;
mod record;
mod refusals;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A recorder that is killed must not be cleaned up by another test's, nor a setting put back to another
/// test's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The running kernel, until it is dropped.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
