//! How many runs go on at once.

use std::num::NonZeroUsize;
use std::thread;

/// The number asked for, or one for each CPU of this machine.
pub(crate) fn count(asked: Option<u16>) -> usize {
    let cpus = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    asked.map_or_else(cpus, usize::from).max(1)
}
