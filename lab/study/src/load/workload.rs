//! The description of a benchmark: its name, its parameters, and the function that makes its plan.
//!
//! The files of the benchmarks use the file `workload`. The list of all benchmarks is in the module `load`,
//! because a list in this file would make files depend on each other in a circle.

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Settings, Setup};
use super::start::{self, START_SPREAD_US};

/// A benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The benchmark's name on the command line, e.g. `page_fault1`.
    pub name: &'static str,
    /// A description of the benchmark in one line.
    pub summary: &'static str,
    /// Source of the benchmark's definition.
    pub source: &'static str,
    /// Name of one unit of the score, e.g. "faults".
    pub unit: &'static str,
    /// Two durations in milliseconds of virtual time: the warm-up, and the measured time. Guess: the measured
    /// time has a few cycles of the benchmark.
    pub duration_ms: (u64, u64),
    /// The benchmark's parameters, with defaults.
    pub parameters: &'static [Parameter],
    /// The function that makes a plan of the benchmark.
    pub(super) build: fn(&Setup<'_>) -> Result<Plan, PlanError>,
}

impl Workload {
    /// Makes the workers of a run, with the channels and locks between the workers.
    ///
    /// # Errors
    /// Fails if a setting is unknown or out of range, or if there are too few CPUs.
    pub fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        setup.settings.check_against(self.all_parameters())?;
        if setup.cpus == 0 || setup.cpus as usize > setup.topology.nodes_of_cpus.len() {
            return Err(PlanError::Cpus { wanted: setup.cpus, present: setup.topology.nodes_of_cpus.len() });
        }
        let settings = setup.settings.completed(self.parameters);
        let setup = Setup { settings: &settings, ..*setup };
        start::spread((self.build)(&setup)?, &setup)
    }

    /// The benchmark's own parameters, and the parameters that every workload has.
    fn all_parameters(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().chain([&START_SPREAD_US])
    }
}

impl Settings {
    /// Checks that `workload` has each parameter that these settings name, and that each value is in its
    /// range.
    ///
    /// # Errors
    /// Fails if a setting names no parameter of `workload`, or if a value is out of range. The error names
    /// the first wrong setting.
    pub fn check(&self, workload: &Workload) -> Result<(), PlanError> {
        self.check_against(workload.all_parameters())
    }
}

/// Whether the workers of a benchmark share one address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    Processes,
    Threads,
}
