//! Watches for the condition that ends a flight recorder. The watch has its own tracing instance, so the
//! recorder's buffers are not read.

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
    /// An error if the kernel lacks something that the condition needs.
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

    /// Returns the first occurrence after the last call of `look` that has met the condition.
    pub(crate) fn look(&mut self) -> Result<Option<Met>, RecordError> {
        let lookout = &mut self.lookout;
        Ok(self.watch.read()?.iter().find_map(|event| lookout.see(event)))
    }

    /// Number of missed events so far. One of the missed events may have met the condition.
    pub(crate) fn lost(&self) -> u64 {
        self.watch.lost()
    }
}
