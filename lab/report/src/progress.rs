//! The progress of long work, and its cancellation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

/// Receives the progress of long work, and may cancel it. The work may have several stages.
pub trait Progress: Send {
    /// A stage begins. `what` names it, and `unit` is the unit of its counts. `total` is the final count, if
    /// known.
    fn begin(&mut self, what: &'static str, unit: &'static str, total: Option<u64>);

    /// Reports the count since the stage began.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the work must end. The work then returns this as its own error as soon as it can.
    fn update(&mut self, done: u64) -> Result<(), Cancelled>;

    /// A flag that is set once the work must end. Work on any thread can read it between two distant updates.
    /// The default flag is never set.
    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// Ignores progress and never cancels.
impl Progress for () {
    fn begin(&mut self, _: &'static str, _: &'static str, _: Option<u64>) {}

    fn update(&mut self, _: u64) -> Result<(), Cancelled> {
        Ok(())
    }
}

/// The [`Progress`] cancelled the work. Results written before stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cancelled")]
pub struct Cancelled;
