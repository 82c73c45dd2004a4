//! Threads that share one queue of work. Each piece of work comes with the place for its result, so the
//! results keep the order of the work.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Pieces of work, each with the place of its result.
pub(crate) type Queue<W, R> = Arc<Mutex<Receiver<(W, SyncSender<R>)>>>;

/// Starts a thread that works until the queue ends.
///
/// # Errors
/// An error if the system cannot start a thread.
pub(crate) fn start<W: Send + 'static, R: Send + 'static>(
    name: &str,
    queue: &Queue<W, R>,
    mut work: impl FnMut(W) -> R + Send + 'static,
) -> io::Result<()> {
    let queue = Arc::clone(queue);
    let run = move || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((piece, place)) = next else { return };
            // The send fails only if the caller has dropped the receiver. A result without a receiver is not
            // needed.
            drop(place.send(work(piece)));
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
