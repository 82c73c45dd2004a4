//! How far long work is, and whether it is to go on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

/// Is told how far long work is, and may end it. One piece of work may have several stages.
pub trait Progress: Send {
    /// A stage begins: `what` goes on, counted in `unit`, up to `total` if that is known.
    fn begin(&mut self, what: &'static str, unit: &'static str, total: Option<u64>);

    /// So many are done since the stage began.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the work is to end: it returns that as its own error as soon as it can.
    fn update(&mut self, done: u64) -> Result<(), Cancelled>;

    /// What is set once the work is to end, for work that goes on for long between two updates, on whatever thread. Nobody
    /// sets it unless this is implemented.
    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// Reports to nobody and never cancels.
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
