//! The progress of long work, and its cancellation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

/// Receives the progress of long work, and may cancel it. The work may have several stages.
pub trait Progress: Send {
    /// Begins a stage. `what` is the name of the stage, and `unit` is the unit of its counts. `total` is the
    /// final count, if it is known.
    fn begin(&mut self, what: &'static str, unit: &'static str, total: Option<u64>);

    /// Reports the count since the beginning of the stage.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the work must end. The work then returns this error as soon as possible.
    fn update(&mut self, done: u64) -> Result<(), Cancelled>;

    /// A flag that is set when the work must end. Any thread can read the flag between two calls of `update`.
    /// The default flag is never set.
    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// Ignores the progress of work, and never cancels the work.
impl Progress for () {
    fn begin(&mut self, _: &'static str, _: &'static str, _: Option<u64>) {}

    fn update(&mut self, _: u64) -> Result<(), Cancelled> {
        Ok(())
    }
}

/// The [`Progress`] has cancelled the work. Results that were written before stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cancelled")]
pub struct Cancelled;
