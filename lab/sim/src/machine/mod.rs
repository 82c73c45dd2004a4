//! Machines: the parts of a simulated computer and the costs of its operations, as TOML.
//!
//! The module `file` has the format of machine files, `topology` the place of each CPU, `costs` the cost of
//! each operation, and `zones` the division of memory into zones. `planes` describes the networks between
//! bricks (groups of nodes), and `tick_phase` says when the CPUs tick. `bundled` has the machines that come
//! with the crate, and `error` the errors of bad files.

mod bundled;
mod costs;
mod error;
mod file;
mod planes;
mod tick_phase;
mod topology;
mod zones;

pub use bundled::{BundledMachine, MACHINES};
pub use costs::{ByLevel, Cost, Costs, FrameLayout, MemoryBandwidth};
pub use error::MachineError;
pub use planes::Planes;
pub use tick_phase::TickPhase;
pub use topology::{Caches, Near, Topology};
pub use zones::ZoneLayout;

/// A computer, checked and ready to be simulated.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The machine's name on the command line.
    pub name: String,
    /// A description of the machine in one line.
    pub title: String,
    /// The source of all numbers of the machine file that do not name their own source.
    pub source: String,
    /// Bytes per page.
    pub page_bytes: u32,
    /// The CPUs, caches and nodes, and the distances between nodes.
    pub topology: Topology,
    /// The zones that the memory is divided into.
    pub memory: ZoneLayout,
    /// Costs of single operations.
    pub costs: Costs,
    /// The parallel networks between the machine's bricks (groups of nodes). Without planes, the time of a
    /// cache line's move depends only on the distance.
    pub planes: Option<Planes>,
    /// Whether all CPUs do their periodic work at the same moment, or one after another.
    pub tick_phase: TickPhase,
    /// Notes for readers of the machine file.
    pub notes: Vec<String>,
}

impl Machine {
    /// Reads a machine from TOML. `origin` names the text in errors, usually a file.
    ///
    /// # Errors
    /// Returns an error that names the file, the key that is wrong, and the values that would be right.
    pub fn parse(text: &str, origin: &str) -> Result<Self, MachineError> {
        file::parse(text).map_err(|problem| MachineError::new(origin, problem))
    }

    /// The bundled machine called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        MACHINES.iter().find(|machine| machine.name == name).map(BundledMachine::parse)
    }

    /// Number of CPUs.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.topology.cpus()
    }

    /// Bytes of memory, of all nodes together.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.pages().saturating_mul(u64::from(self.page_bytes))
    }
}
