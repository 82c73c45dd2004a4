//! Options for reading damaged files, and a reader that delivers a compressed file up to its damage.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a reader handles a malformed line of a known event, or a malformed sample or page of a binary
/// file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Return an error, because a replay without this line or sample would mislead.
    #[default]
    Strict,
    /// Skip the line, sample or page. Count it in
    /// [`LostEvents::malformed_lines`](crate::LostEvents::malformed_lines), or as a gap of unknown size.
    Lenient,
}

/// How a reader handles a damaged native file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Return an error.
    #[default]
    Refuse,
    /// Deliver the events before the first damage, and count all later events as lost.
    UpToDamage,
}

/// A stream of decompressed bytes that ends at the first damage.
pub(crate) struct UpToTheCut<R> {
    stream: R,
    is_cut: Arc<AtomicBool>,
}

impl<R> UpToTheCut<R> {
    /// Makes the stream. `is_cut` becomes true when the stream reaches damage.
    pub(crate) const fn new(stream: R, is_cut: Arc<AtomicBool>) -> Self {
        Self { stream, is_cut }
    }
}

impl<R: Read> Read for UpToTheCut<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Do not read again from a decoder that has failed.
        if self.is_cut.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match self.stream.read(buffer) {
            Err(error) if is_damage(&error) => {
                self.is_cut.store(true, Ordering::Relaxed);
                Ok(0)
            }
            read => read,
        }
    }
}

/// Whether a read failed because compressed data is damaged. Returns `false` for an error of the operating
/// system.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof => true,
        Other => error.raw_os_error().is_none(),
        _ => false,
    }
}
