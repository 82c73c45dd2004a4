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
pub use script::{LeftOut, Script};
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
    /// Its tables would take gigabytes.
    #[error("the machine is too large: {0}; give a smaller one with --layout")]
    TooLarge(String),
    /// An allocator cannot be built for the machine.
    #[error("no allocator for this machine: {0}; give another one with --layout")]
    Config(#[from] ConfigError),
}

/// Frames of a machine: 1 TiB of 4 KiB each, whose tables take 2.3 GiB.
const MOST_FRAMES: u64 = 1 << 28;
/// Pairs of a zone and a CPU, each of which takes several KiB.
const MOST_CPU_ZONES: u64 = 1 << 17;

impl Script {
    /// Plays the recording on one entrant's allocator, empty at first, on this machine. O(events), and memory for the
    /// machine's tables.
    ///
    /// # Errors
    /// [`ContestError`] if the machine cannot be.
    pub fn play(&self, machine: &Layout, entrant: &Entrant) -> Result<Standing, ContestError> {
        machine.check().map_err(ContestError::Layout)?;
        check_size(machine)?;
        entrant.play(machine, self)
    }
}

fn check_size(machine: &Layout) -> Result<(), ContestError> {
    let frames = machine.zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(zone.managed));
    let cpu_zones = (machine.zones.len() as u64).saturating_mul(u64::from(machine.cpus));
    for (what, count, most) in
        [("frames", frames, MOST_FRAMES), ("pairs of a CPU and a zone", cpu_zones, MOST_CPU_ZONES)]
    {
        if count > most {
            return Err(ContestError::TooLarge(format!("it has {count} {what}, of at most {most}")));
        }
    }
    Ok(())
}
