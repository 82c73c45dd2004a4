//! A recording as a workload for any number of CPUs. Each CPU repeats the allocations and frees of one
//! recorded CPU again and again, with the recorded times between these operations.
//!
//! If a CPU waits for a lock, all of its later operations are delayed too, as in a real program. If the run
//! has more CPUs than the recording, several copies of the recorded machine run side by side. Within a copy
//! with all recorded CPUs, a block is freed on the CPU that freed it in the recording.
//!
//! The file `reading` collects the operations of each recorded CPU, `lists` stores these operations, and
//! `player` repeats them.

mod lists;
mod player;
mod reading;

use std::sync::Arc;

use pageset_trace::{TraceError, TraceReader};

use super::plan::Plan;
use super::setup::{PlanError, Setup};
use player::{CopyState, Player};
pub use reading::Played;
use reading::Recording;

/// A recording that can be repeated.
#[derive(Debug)]
pub struct Recorded {
    recording: Arc<Recording>,
    /// Counts of the events that are repeated, and of the events that are left out.
    pub played: Played,
}

impl Recorded {
    /// Reads a recording of any length in bounded memory. The operations of a long recording are written to a
    /// temporary file.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, if the temporary file cannot be written, or if the recording
    /// has no allocations or no frees.
    pub fn read(reader: &mut dyn TraceReader) -> Result<Self, TraceError> {
        let (recording, played) = reading::read(reader)?;
        Ok(Self { recording: Arc::new(recording), played })
    }

    /// Makes a plan for the CPUs of `setup`. A recording has no parameters.
    ///
    /// # Errors
    /// Fails if `setup` has no CPUs or more CPUs than the machine, or if the recording shows no allocation
    /// and no free.
    pub fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        let present = setup.topology.nodes_of_cpus.len();
        if setup.cpus == 0 || setup.cpus as usize > present {
            return Err(PlanError::Cpus { wanted: setup.cpus, present });
        }
        let recorded = self.recording.lists.cpus();
        if recorded == 0 {
            return Err(PlanError::EmptyRecording);
        }
        let mut plan = Plan::default();
        let cpus: Vec<_> = setup.each_cpu().collect();
        for members in cpus.chunks(recorded) {
            let copy = CopyState::new(members.len());
            for (index, cpu) in members.iter().enumerate() {
                let player = Player {
                    recording: Arc::clone(&self.recording),
                    copy: Arc::clone(&copy),
                    index,
                    is_whole: members.len() == recorded,
                };
                plan.work(*cpu, move |target| player.play(target));
            }
        }
        Ok(plan)
    }
}
