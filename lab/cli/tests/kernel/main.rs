//! Tests that record the running kernel or change its settings. Only one test runs at a time, in a process
//! that does nothing else.

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

/// A test holds this lock while it runs. Without the lock, a test could remove the tracing instance of
/// another test's killed recorder, or restore a setting that another test has changed.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Locks the running kernel for one test.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
