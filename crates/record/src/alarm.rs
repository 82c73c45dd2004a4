//! A flight recorder's condition is looked for in an instance of its own, so that the recorder's buffers are left alone.

use crate::condition::{Condition, Lookout, Met};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::Tracefs;
use crate::watch::{Watch, Watched};

/// Says when a condition is met.
pub(crate) struct Alarm {
    watch: Watch,
    lookout: Lookout,
}

impl Alarm {
    /// Ready to begin.
    ///
    /// # Errors
    /// The kernel does not have what the condition needs.
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

    /// What has met the condition since the look before.
    pub(crate) fn look(&mut self) -> Result<Option<Met>, RecordError> {
        let lookout = &mut self.lookout;
        Ok(self.watch.read()?.iter().find_map(|event| lookout.see(event)))
    }

    /// Events missed so far: what met the condition may be among them.
    pub(crate) fn lost(&self) -> u64 {
        self.watch.lost()
    }
}
