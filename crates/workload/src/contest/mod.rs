//! A recording's blocks on whole allocators: Linux's under several policies, and our own.
//!
//! A [replay](crate::replay()) puts a recording to page sets, which do not care which page comes and goes. An allocator whose
//! CPUs own pageblocks does, and so does whoever counts pageblocks that are free as a whole. So here each block that the
//! recording allocates is allocated, and the same one is freed when the recording frees it, on the same CPU.
//!
//! `script` is the recording; `entrant` builds an allocator on its machine; `stage` plays the one on the other;
//! `standing` is what is found.

mod entrant;
mod script;
mod stage;
mod standing;

pub use entrant::Entrant;
pub use script::Script;
pub use standing::Standing;

pub use pageset_blocks::RemoteFrees;
use pageset_core::ConfigError;
use pageset_trace::{Layout, TraceError};

/// Why there is no contest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContestError {
    /// The recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The machine cannot be.
    #[error("the machine cannot be built: {0}; give another one with --layout")]
    Layout(String),
    /// An allocator cannot be built for the machine.
    #[error("no allocator for this machine: {0}; give another one with --layout")]
    Config(#[from] ConfigError),
}

impl Script {
    /// Plays the recording on one entrant's allocator, empty at first, on this machine. O(events), and memory for the
    /// machine's tables.
    ///
    /// # Errors
    /// [`ContestError`] if the machine cannot be.
    pub fn play(&self, machine: &Layout, entrant: &Entrant) -> Result<Standing, ContestError> {
        machine.check().map_err(ContestError::Layout)?;
        entrant.play(machine, self)
    }
}
