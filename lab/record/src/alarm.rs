//! Looks for a flight recorder's condition. It uses a tracing instance of its own, so that the recorder's
//! buffers are not read.

use crate::condition::{Condition, Lookout, Met};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::Tracefs;
use crate::watch::{Watch, Watched};

/// Reports when a condition is met.
pub(crate) struct Alarm {
    watch: Watch,
    lookout: Lookout,
}

impl Alarm {
    /// Prepares the watch.
    ///
    /// # Errors
    /// The kernel lacks something that the condition needs.
    pub(crate) fn prepare(
        tracefs: &Tracefs,
        cpus: &CpuList,
        condition: Condition,
    ) -> Result<Self, RecordError> {
        let watched = Watched { kinds: condition.events(), with_call_chains: condition.needs_call_chains() };
        Ok(Self { watch: Watch::prepare(tracefs, cpus, watched)?, lookout: Lookout::new(condition) })
    }

    pub(crate) fn begin(&self) -> Result<(), RecordError> {
        self.watch.begin()
    }

    /// The occurrence that has met the condition since the last call, if any.
    pub(crate) fn look(&mut self) -> Result<Option<Met>, RecordError> {
        let lookout = &mut self.lookout;
        Ok(self.watch.read()?.iter().find_map(|event| lookout.see(event)))
    }

    /// Events missed so far. One of them may have met the condition.
    pub(crate) fn lost(&self) -> u64 {
        self.watch.lost()
    }
}
