//! The setup of a workload: its CPUs, the kernel version, and the workload's parameters.

use std::collections::BTreeMap;

use pageset_core::{CpuId, NodeId};
use thiserror::Error;

/// The machine, kernel and settings that a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The machine's CPUs and nodes.
    pub topology: &'a Topology,
    /// Number of CPUs that the workload uses. The workload uses the machine's first CPUs.
    pub cpus: u32,
    /// The kernel version of everything except the allocator; see [`Generation`].
    pub generation: Generation,
    /// Parameters that differ from their defaults.
    pub settings: &'a Settings,
}

impl Setup<'_> {
    /// Returns the value of a parameter: the value that was set, or the default.
    pub(crate) fn get(&self, parameter: &Parameter) -> u64 {
        self.settings.0.get(parameter.key).copied().unwrap_or(parameter.default)
    }

    /// Returns the value of a parameter like [`get`](Self::get). Fails if the value is above `max`.
    pub(crate) fn at_most(&self, parameter: &Parameter, max: u64) -> Result<u64, PlanError> {
        let value = self.get(parameter);
        if value > max {
            return Err(PlanError::Value { key: parameter.key.to_owned(), value, min: parameter.min, max });
        }
        Ok(value)
    }

    /// Returns pairs of CPUs with adjacent numbers, for a sender and a receiver. CPUs with adjacent numbers
    /// are near each other, and a scheduler places a woken task near the task that wakes it.
    pub(crate) fn each_pair(&self) -> Result<impl Iterator<Item = (CpuId, CpuId)> + use<>, PlanError> {
        if self.cpus < 2 {
            return Err(PlanError::TooFewCpus { needed: 2 });
        }
        Ok((0..self.cpus / 2).map(|pair| (CpuId(2 * pair), CpuId(2 * pair + 1))))
    }

    /// The CPUs that the workload uses.
    pub(crate) fn each_cpu(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus).map(CpuId)
    }

    /// The node of a CPU.
    pub(crate) fn node_of(&self, cpu: CpuId) -> NodeId {
        self.topology.nodes_of_cpus[cpu.index()]
    }
}

/// The facts about a machine's CPUs and nodes that workloads need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The node of each CPU.
    pub nodes_of_cpus: Vec<NodeId>,
}

impl Topology {
    /// Returns a machine with its CPUs equally distributed over `nodes` nodes, the first CPUs on the first
    /// node.
    #[must_use]
    pub fn even(cpus: u32, nodes: u16) -> Self {
        let share = cpus.div_ceil(u32::from(nodes.max(1))).max(1);
        Self { nodes_of_cpus: (0..cpus).map(|cpu| NodeId((cpu / share) as u16)).collect() }
    }
}

/// The kernel version of the code around the allocator: slabs, sockets and LRU lists. The code around the
/// allocator differs between kernel versions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Linux 4.9, of 2016, and earlier.
    V4_9,
    /// Linux 4.18, of 2018. The variant `V4_18` stands for all versions after 4.9 and before 5.19.
    V4_18,
    /// Linux 6.6, of 2023. The variant `V6_6` stands for Linux 5.19 and later.
    V6_6,
}

/// A parameter of a workload, such as a size, a count, or a time spent outside the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's name on the command line. The name ends with the unit.
    pub key: &'static str,
    /// The parameter's default.
    pub default: u64,
    /// The smallest value that the parameter may have.
    pub min: u64,
    /// The parameter's meaning.
    pub meaning: &'static str,
    /// Source of the default, or "guess".
    pub source: &'static str,
}

/// The values of parameters that differ from their defaults, by the parameter's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, u64>);

impl Settings {
    /// Largest value of any parameter. The limit on parameters keeps sums and products of a few parameters
    /// from overflowing.
    pub const VALUE_MAX: u64 = 1 << 40;

    /// Sets a parameter to `value`, also if the parameter was set before.
    pub fn set(&mut self, key: &str, value: u64) {
        self.0.insert(key.to_owned(), value);
    }

    /// Whether all parameters have their defaults.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that each setting names one of `parameters`, and that its value is in this parameter's range.
    /// The error names the first setting that is unknown or out of range.
    pub(super) fn check_against<'p>(
        &self,
        parameters: impl Iterator<Item = &'p Parameter> + Clone,
    ) -> Result<(), PlanError> {
        for (key, value) in &self.0 {
            let parameter = parameters.clone().find(|parameter| parameter.key == key);
            let Some(parameter) = parameter else {
                let known = parameters.map(|parameter| parameter.key).collect::<Vec<_>>();
                return Err(PlanError::Unknown { key: key.clone(), known: known.join(", ") });
            };
            if !(parameter.min..=Self::VALUE_MAX).contains(value) {
                let (key, min) = (key.clone(), parameter.min);
                return Err(PlanError::Value { key, value: *value, min, max: Self::VALUE_MAX });
            }
        }
        Ok(())
    }

    /// Returns the settings that were set, and the default of each parameter that was not set.
    pub(super) fn completed(&self, parameters: &[Parameter]) -> Self {
        let defaults = parameters.iter().map(|parameter| (parameter.key.to_owned(), parameter.default));
        let mut all: BTreeMap<_, _> = defaults.collect();
        all.extend(self.0.clone());
        Self(all)
    }
}

/// The reason why a workload cannot run with a setup.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The workload has no parameter with this name.
    #[error("the workload has no parameter `{key}`; choose from: {known}")]
    Unknown {
        /// The unknown key.
        key: String,
        /// The keys of the workload's parameters.
        known: String,
    },
    /// A parameter's value is out of range.
    #[error("{key}={value} is out of range: use {min} to {max}")]
    Value {
        /// The parameter's name.
        key: String,
        /// The value that the user gave the parameter.
        value: u64,
        /// Smallest value that the parameter may have.
        min: u64,
        /// Largest value that the parameter may have.
        max: u64,
    },
    /// The run uses more CPUs than the machine has, or no CPU.
    #[error("cannot use {wanted} CPUs: the machine has {present}")]
    Cpus {
        /// Number of CPUs that the run asked for.
        wanted: u32,
        /// Number of CPUs that the machine has.
        present: usize,
    },
    /// The recording has no allocations and no frees that can be repeated.
    #[error("the recording shows no allocation or free, so there is nothing to play")]
    EmptyRecording,
    /// The run uses fewer CPUs than the workload needs.
    #[error("this workload needs at least {needed} CPUs")]
    TooFewCpus {
        /// Smallest number of CPUs that the workload needs.
        needed: u32,
    },
}
