//! A recording that was read: its machine, its load, and the contents of page sets when the recording began.

use std::sync::atomic::AtomicBool;

use pageset_core::Policy;
use pageset_trace::{Layout, Snapshot, TraceInfo, TraceReader};

use super::bundles::Bundles;
use super::error::ReplayError;
use super::forecast::Forecaster;
use super::load::{PageSetLoad, Times};
use super::machine::Machine;
use super::start::{self, SetStart};
use super::window::Window;
use crate::kernel_policy::policy_of_kernel;
use crate::recorded::{needs, no_layout};

/// A recording that can be played under any policy.
pub(super) struct Prepared {
    pub(super) machine: Machine,
    before: Option<Snapshot>,
    pub(super) load: PageSetLoad,
    /// The recorded kernel's policy, if the policy is known and the machine is the recorded machine.
    pub(super) policy: Option<Policy>,
    /// The contents of the recorded kernel's page sets when the recording began, if known.
    starts: Option<Vec<SetStart>>,
    pub(super) window: Window,
}

impl Prepared {
    /// Reads a recording to its end, for plays on its own machine or on `other_machine`. If `cpus` is given,
    /// added idle CPUs share the machine's memory. `progress` receives the number of events read. An error of
    /// `progress` ends the reading.
    pub(super) fn read(
        reader: &mut dyn TraceReader,
        (other_machine, cpus): (Option<Layout>, Option<u32>),
        times: Times,
        progress: impl FnMut(u64) -> Result<(), ReplayError>,
    ) -> Result<Self, ReplayError> {
        let is_recorded_machine = other_machine.is_none() && cpus.is_none();
        let before = reader.info().before.clone().filter(|_| other_machine.is_none());
        let Some(layout) = other_machine.or_else(|| reader.info().machine.clone()) else {
            return Err(no_layout(&mut &mut *reader).into());
        };
        let layout = match cpus {
            Some(cpus) => with_cpus(layout, cpus)?,
            None => layout,
        };
        let kernel = reader.info().kernel.clone().unwrap_or_else(|| layout.kernel.clone());
        let machine = Machine::new(layout)?;
        let load = PageSetLoad::read(reader, &machine, times, progress)?;
        let policy = policy_of_kernel(&kernel).copied().filter(|_| is_recorded_machine);
        // If all decisions of the kernel were recorded, these decisions show the contents of its lists when
        // the recording began.
        let shows_kernel = load.recorded.has(needs::VISITS);
        let is_start_known = shows_kernel && start::is_known(&machine, before.as_ref());
        let no_room = |error| ReplayError::no_room(&load.acts, error);
        let window = if shows_kernel {
            Window::find(&machine, &load, is_start_known).map_err(no_room)?
        } else {
            Window::OF_LOAD
        };
        let starts = policy.filter(|_| is_start_known);
        let starts = starts.map(|policy| start::find(&machine, before.as_ref(), &policy, &load));
        let starts = starts.transpose().map_err(no_room)?;
        Ok(Self { machine, before, load, policy, starts, window })
    }

    /// Requires that the recording has a load: allocations and frees.
    pub(super) fn require_load(&self, info: &TraceInfo) -> Result<(), ReplayError> {
        Ok(self.load.recorded.require(needs::LOAD, info)?)
    }

    /// Makes a player of the recording. The player stops when `cancel` is set. The player plays a bundle of
    /// `bundles` in one step if no act of the bundle can cause a refill or drain. `progress` receives the
    /// number of acts in each portion that was played.
    pub(super) fn forecaster<'r>(
        &'r self,
        bundles: &'r [Bundles],
        cancel: &'r AtomicBool,
        progress: &'r (dyn Fn(u64) + Sync),
    ) -> Forecaster<'r> {
        Forecaster {
            bundles,
            machine: &self.machine,
            before: self.before.as_ref(),
            load: &self.load,
            window: self.window,
            cancel,
            progress,
            recorded: self.policy.zip(self.starts.as_deref()),
        }
    }
}

/// Returns the machine with added idle CPUs. The added CPUs are distributed evenly over the nodes.
fn with_cpus(mut machine: Layout, cpus: u32) -> Result<Layout, ReplayError> {
    if cpus < machine.cpus {
        return Err(ReplayError::TooFewCpus { asked: cpus, there: machine.cpus });
    }
    let nodes = machine.nodes.len().max(1);
    for (index, cpu) in (machine.cpus..cpus).enumerate() {
        if let Some(node) = machine.nodes.get_mut(index % nodes) {
            node.cpus.push(cpu);
        }
    }
    machine.cpus = cpus;
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::tests::small_layout;

    #[test]
    fn idle_cpus_shrink_the_share_of_the_others() {
        let machine = with_cpus(small_layout(), 5).unwrap();
        machine.check().unwrap();
        assert_eq!((machine.cpus, machine.nodes[0].cpus.len()), (5, 5));
        assert!(with_cpus(machine, 4).unwrap_err().to_string().contains("cannot be shared between fewer"));
    }
}
