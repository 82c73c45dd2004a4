//! What a benchmark is: a description, parameters, and how it becomes a plan.
//!
//! It knows no benchmark by name, so that each of them can be written down with it; all of them together are the list of
//! the module above.

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Settings, Setup};
use super::start::{self, START_SPREAD_US};

/// A benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name on the command line, e.g. `page_fault1`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where its definition stands.
    pub source: &'static str,
    /// What one unit of the score is, e.g. "faults".
    pub unit: &'static str,
    /// How long it should run: before measuring begins, and measured, in milliseconds of its own time. Guess: a few of
    /// its cycles.
    pub duration_ms: (u64, u64),
    /// What can be set, with defaults.
    pub parameters: &'static [Parameter],
    /// Makes it concrete.
    pub(super) build: fn(&Setup<'_>) -> Result<Plan, PlanError>,
}

impl Workload {
    /// The workers of a run, with what is between them.
    ///
    /// # Errors
    /// If a setting is unknown, or there are too few CPUs.
    pub fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        setup.settings.check_against(self.all_parameters())?;
        if setup.cpus == 0 || setup.cpus as usize > setup.topology.nodes_of_cpus.len() {
            return Err(PlanError::Cpus { wanted: setup.cpus, present: setup.topology.nodes_of_cpus.len() });
        }
        let settings = setup.settings.completed(self.parameters);
        let setup = Setup { settings: &settings, ..*setup };
        start::spread((self.build)(&setup)?, &setup)
    }

    /// Its own parameters, and those that every workload has.
    fn all_parameters(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().chain([&START_SPREAD_US])
    }
}

impl Settings {
    /// Whether `workload` has all these parameters and can take their values.
    ///
    /// # Errors
    /// Names the first that it has not.
    pub fn check(&self, workload: &Workload) -> Result<(), PlanError> {
        self.check_against(workload.all_parameters())
    }
}

/// Whether workers share their address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    Processes,
    Threads,
}
