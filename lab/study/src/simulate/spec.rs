//! The description of one simulation.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use pageset_core::policy::{BatchRule, HighRule};
use pageset_replay::recordings::bundled_named;
use pageset_replay::{VmSettings, names_policy_file, read_policy};
use pageset_sim::{MACHINES, Machine, TickPhase};
use pageset_trace::{Layout, TraceReader, read_description};
use serde::{Deserialize, Serialize};

use crate::contest::AllocatorKind;
use crate::load::{Generation, Plan, PlanError, Played, Recorded, Settings, Setup, Workload};

/// The description of one simulation. The result of a simulation depends only on its `RunSpec`, on the files
/// that the `RunSpec` names, and on the version of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Name of a bundled machine, or a machine file.
    pub machine: String,
    /// Name of a workload; or `trace:` and the path of a recording; or `bundled:` and the name of a built-in
    /// recording.
    pub workload: String,
    /// Name of a policy of Linux's allocator, path of a policy file, or name of one of this project's own
    /// allocators.
    pub policy: String,
    /// Number of CPUs that the workload uses. Default: all CPUs of the machine.
    pub cpus: Option<u32>,
    /// A fixed `batch` in pages, in place of the `batch` that the policy's rule would give.
    pub batch: Option<u32>,
    /// A fixed `high` in pages, in place of the `high` that the policy's rule would give.
    pub high: Option<u32>,
    /// The policy that decides the kernel version of everything except the allocator, such as slabs and
    /// sockets. Default: `policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_of: Option<String>,
    /// Whether all CPUs tick at the same moment, or one after another. Default: the machine's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_phase: Option<TickPhase>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Virtual time before measuring begins, in milliseconds. Default: the warm-up that the workload names.
    pub warmup_ms: Option<u64>,
    /// Virtual time that is measured, in milliseconds. Default: the measured time that the workload names.
    pub duration_ms: Option<u64>,
    /// Parameters of the workload, and `vm.*` settings of the kernel, that differ from their defaults.
    pub settings: BTreeMap<String, u64>,
}

/// The workload.
#[derive(Debug)]
pub(super) enum Work {
    /// A named workload.
    Named(&'static Workload),
    /// A recording, which the CPUs of the run repeat.
    Recorded(Recorded),
}

/// Prefix of a recording's path.
const TRACE: &str = "trace:";
/// Prefix of a built-in recording's name.
const BUNDLED: &str = "bundled:";
/// The warm-up and the measured time of a recording, in milliseconds of virtual time. Guess: page sets are
/// full after the warm-up.
const RECORDED_MS: (u64, u64) = (100, 500);

/// Returns the path in the name of a workload `trace:PATH`. Returns `None` if the name does not begin with
/// `trace:`.
#[must_use]
pub fn recording(workload: &str) -> Option<&Path> {
    workload.strip_prefix(TRACE).map(Path::new)
}

/// Opens the recording that the name of a workload contains. Returns `None` if the workload does not name a
/// recording.
fn opened(workload: &str) -> Option<Result<Box<dyn TraceReader>>> {
    if let Some(path) = recording(workload) {
        return Some(pageset_trace::open(path).map_err(Into::into));
    }
    let name = workload.strip_prefix(BUNDLED)?;
    let reader = bundled_named(name).with_context(|| format!("no bundled recording is `{name}`"));
    Some(reader.and_then(|opened| Ok(opened?)))
}

impl Work {
    fn find(name: &str, settings: &Settings) -> Result<Self> {
        if let Some(reader) = opened(name) {
            settings.is_empty().then_some(()).context("a recording has no parameters to set")?;
            return Ok(Self::Recorded(Recorded::read(&mut *reader?)?));
        }
        let workload = Workload::named(name)
            .ok_or_else(|| anyhow!("unknown workload `{name}`; `pageset simulate --list` names all"))?;
        settings.check(workload).with_context(|| format!("workload {name}"))?;
        Ok(Self::Named(workload))
    }

    pub(super) fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        match self {
            Self::Named(workload) => workload.plan(setup),
            Self::Recorded(recorded) => recorded.plan(setup),
        }
    }

    pub(super) fn unit(&self) -> &'static str {
        match self {
            Self::Named(workload) => workload.unit,
            Self::Recorded(_) => "events",
        }
    }

    /// Returns the counts of the recorded events that the run repeats, if the workload is a recording.
    pub(super) fn played(&self) -> Option<Played> {
        match self {
            Self::Named(_) => None,
            Self::Recorded(recorded) => Some(recorded.played),
        }
    }

    fn duration_ms(&self) -> (u64, u64) {
        match self {
            Self::Named(workload) => workload.duration_ms,
            Self::Recorded(_) => RECORDED_MS,
        }
    }
}

/// A [`RunSpec`] with its names replaced by the machine, workload and policy that they name.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) machine: Machine,
    pub(super) load: Work,
    pub(super) allocator: AllocatorKind,
    pub(super) generation: Generation,
    pub(super) cpus: u32,
    pub(super) settings: Settings,
    pub(super) vm: VmSettings,
    pub(super) warmup_ms: u64,
    pub(super) duration_ms: u64,
}

/// Longest virtual time of a run: 10 minutes.
const MS_MAX: u64 = 600_000;

impl RunSpec {
    /// Makes a run with the workload's and the policy's defaults.
    #[must_use]
    pub fn new(machine: &str, workload: &str, policy: &str) -> Self {
        let [machine, workload, policy] = [machine, workload, policy].map(str::to_owned);
        let (cpus, batch, high, kernel_of, tick_phase) = (None, None, None, None, None);
        let (seed, warmup_ms, duration_ms, settings) = (1, None, None, BTreeMap::new());
        Self {
            machine,
            workload,
            policy,
            cpus,
            batch,
            high,
            kernel_of,
            tick_phase,
            seed,
            warmup_ms,
            duration_ms,
            settings,
        }
    }

    /// Checks the names and values in the spec, without running the simulation.
    ///
    /// # Errors
    ///
    /// Fails if a name does not exist, or if a value is not allowed.
    pub fn check(&self) -> Result<()> {
        self.resolve().map(drop)
    }

    /// Looks up the names in the spec, and checks its values.
    pub(super) fn resolve(&self) -> Result<Resolved> {
        let mut machine = parse_machine(&machine_text(&self.machine)?, &self.machine)?;
        machine.tick_phase = self.tick_phase.unwrap_or(machine.tick_phase);
        let allocator = self.allocator()?;
        let cpus = self.cpus.unwrap_or_else(|| machine.cpus());
        if cpus == 0 || cpus > machine.cpus() {
            bail!("{} has {} CPUs: the workload cannot use {cpus}", machine.name, machine.cpus());
        }
        let mut settings = Settings::default();
        let mut vm = VmSettings::default();
        for (key, value) in &self.settings {
            if key.starts_with("vm.") {
                vm.set(key, &value.to_string()).map_err(|problem| anyhow!(problem))?;
            } else {
                settings.set(key, *value);
            }
        }
        if !matches!(allocator, AllocatorKind::Linux(_)) && vm.percpu_pagelist_high_fraction.is_some() {
            bail!("{} has no page sets: leave vm.percpu_pagelist_high_fraction out", self.policy);
        }
        let load = Work::find(&self.workload, &settings)?;
        let (warmup_ms, duration_ms) = load.duration_ms();
        Ok(Resolved {
            machine,
            load,
            allocator,
            generation: generation_of(self.kernel_of.as_ref().unwrap_or(&self.policy))?,
            cpus,
            settings,
            vm,
            warmup_ms: milliseconds("the warm-up", self.warmup_ms.unwrap_or(warmup_ms), 0)?,
            duration_ms: milliseconds("the measured time", self.duration_ms.unwrap_or(duration_ms), 1)?,
        })
    }
}

impl RunSpec {
    /// Returns the allocator that `policy` names, with the `batch` and `high` of this spec.
    fn allocator(&self) -> Result<AllocatorKind> {
        let name = &self.policy;
        let mut allocator = match names_policy_file(name) {
            true => AllocatorKind::Linux(Box::new(*read_policy(Path::new(name))?)),
            false => AllocatorKind::named(name)
                .ok_or_else(|| anyhow!("unknown policy `{name}`; `pageset policies` names all"))?,
        };
        if let AllocatorKind::Linux(policy) = &mut allocator {
            if let Some(batch) = self.batch {
                policy.batch = BatchRule::Fixed(pages("batch", batch)?);
            }
            if let Some(high) = self.high {
                policy.high = HighRule::Fixed(pages("high", high)?);
            }
        } else if self.batch.or(self.high).is_some() {
            bail!("{name} has no page sets: leave batch and high out");
        }
        Ok(allocator)
    }
}

/// Largest `batch` or `high` of a spec. `replay --sweep` has the same limit for `high`.
const PAGES_MAX: u32 = 1 << 28;

fn pages(key: &str, pages: u32) -> Result<i32> {
    match i32::try_from(pages) {
        Ok(valid) if (1..=PAGES_MAX).contains(&pages) => Ok(valid),
        _ => bail!("{key}={pages} is out of range: use 1 to {PAGES_MAX}"),
    }
}

fn milliseconds(what: &str, ms: u64, min: u64) -> Result<u64> {
    if !(min..=MS_MAX).contains(&ms) {
        bail!("{what} is {ms} ms: use {min} to {MS_MAX}");
    }
    Ok(ms)
}

/// The smallest likeness of two names that an error takes for a mistyped name, from 0 to 1.
const ALIKE: f64 = 0.8;

/// Returns the text of a machine's file. `machine` is the name of a bundled machine, or a path.
///
/// # Errors
///
/// Fails if `machine` is neither a bundled name nor a file, or if the file cannot be read.
pub fn machine_text(machine: &str) -> Result<String> {
    if let Some(bundled) = MACHINES.iter().find(|bundled| bundled.name == machine) {
        return Ok(bundled.text().to_owned());
    }
    let path = Path::new(machine);
    if !path.exists() {
        let alike = MACHINES.iter().map(|known| (strsim::jaro_winkler(machine, known.name), known.name));
        let nearest = alike.max_by(|one, other| one.0.total_cmp(&other.0));
        let tip = nearest.filter(|(likeness, _)| *likeness >= ALIKE);
        let tip = tip.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"));
        bail!("`{machine}` is not a file, nor a machine that `pageset simulate --list` names{tip}");
    }
    Ok(read_description(path)?)
}

/// Returns the machine that the text of a machine file describes. Errors name the file as `name`.
///
/// # Errors
///
/// Fails if the text is not a machine file. If the text is the layout of a recorded machine, the error says
/// that the text is a layout.
pub fn parse_machine(text: &str, name: &str) -> Result<Machine> {
    Machine::parse(text, name).or_else(|error| match toml::from_str::<Layout>(text) {
        Ok(_) => bail!(
            "{name}: this is the layout of a recorded machine, for `pageset replay --layout`; a machine to simulate has \
             costs, and `pageset bench machine` writes one"
        ),
        Err(_) => Err(error.into()),
    })
}

/// Returns the kernel version that a policy belongs to. The published texts measured several kernels, and
/// these kernels have different slabs and sockets.
fn generation_of(policy: &str) -> Result<Generation> {
    let version = match names_policy_file(policy) {
        // A policy file belongs to the kernel of the policy that the file is based on.
        true => read_policy(Path::new(policy))?.kernel,
        false => policy.strip_prefix("linux-").unwrap_or_default(),
    };
    let mut numbers = version.split(['.', '-', ' ']).map_while(|number| number.parse::<u32>().ok());
    Ok(match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) <= (4, 9) => Generation::V4_9,
        (Some(major), Some(minor)) if (major, minor) < (5, 19) => Generation::V4_18,
        // Linux 5.19 and later count as Linux 6.6. Policies without a version of Linux in their name, for
        // example the patches of the 2023 series, also count as Linux 6.6.
        _ => Generation::V6_6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> RunSpec {
        RunSpec {
            machine: "epyc-2".to_owned(),
            workload: "page_fault1".to_owned(),
            policy: "linux-6.12".to_owned(),
            cpus: None,
            batch: None,
            high: None,
            kernel_of: None,
            tick_phase: None,
            seed: 1,
            warmup_ms: None,
            duration_ms: None,
            settings: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn expect_error(spec: &RunSpec, expected: &str) {
        let error = format!("{:#}", spec.resolve().unwrap_err());
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn names_are_found_and_unknown_ones_told() {
        let resolved = spec().resolve().unwrap();
        assert_eq!((resolved.cpus, resolved.allocator.name()), (2, "linux-6.12"));
        expect_error(&RunSpec { machine: "pdp-11".to_owned(), ..spec() }, "`pdp-11` is not a file");
        expect_error(&RunSpec { workload: "doom".to_owned(), ..spec() }, "unknown workload `doom`");
        expect_error(&RunSpec { policy: "linux-1.0".to_owned(), ..spec() }, "unknown policy `linux-1.0`");
        expect_error(
            &RunSpec { workload: "bundled:doom".to_owned(), ..spec() },
            "bundled recording is `doom`",
        );
    }

    #[test]
    fn a_layout_is_told_apart_from_a_machine() {
        let layout = "kernel = \"6.12\"\ncpus = 1\nnodes = []\nzones = []\n";
        let error = parse_machine(layout, "big.toml").unwrap_err().to_string();
        assert!(error.starts_with("big.toml: this is the layout of a recorded machine"), "{error}");
        let error = parse_machine("cpus = 1", "big.toml").unwrap_err().to_string();
        assert!(!error.contains("layout"), "{error}");
    }

    #[test]
    fn impossible_numbers_are_refused() {
        expect_error(&RunSpec { cpus: Some(3), ..spec() }, "epyc-2 has 2 CPUs");
        expect_error(&RunSpec { cpus: Some(0), ..spec() }, "epyc-2 has 2 CPUs");
        expect_error(&RunSpec { batch: Some(0), ..spec() }, "batch=0 is out of range");
        expect_error(&RunSpec { high: Some(u32::MAX), ..spec() }, "high=4294967295 is out of range");
        expect_error(&RunSpec { duration_ms: Some(0), ..spec() }, "use 1 to 600000");
        let settings = BTreeMap::from([("vm.percpu_pagelist_high_fraction".to_owned(), 7)]);
        expect_error(&RunSpec { settings, ..spec() }, "at least 8");
        let settings = BTreeMap::from([("speed".to_owned(), 1)]);
        expect_error(&RunSpec { settings, ..spec() }, "no parameter `speed`; choose from: mapping_pages");
    }

    #[test]
    fn a_fixed_batch_replaces_the_policys() {
        let resolved = RunSpec { batch: Some(63), high: Some(378), ..spec() }.resolve().unwrap();
        let AllocatorKind::Linux(policy) = resolved.allocator else { panic!("it is Linux's") };
        assert_eq!((policy.batch, policy.high), (BatchRule::Fixed(63), HighRule::Fixed(378)));
    }

    #[test]
    fn an_allocator_without_page_sets_refuses_their_settings() {
        let ours = RunSpec { policy: "owned-blocks".to_owned(), ..spec() };
        assert_eq!(ours.resolve().unwrap().allocator, AllocatorKind::OwnedBlocks);
        expect_error(&RunSpec { batch: Some(63), ..ours.clone() }, "owned-blocks has no page sets");
        expect_error(&RunSpec { high: Some(63), ..ours.clone() }, "leave batch and high out");
        let settings = BTreeMap::from([("vm.percpu_pagelist_high_fraction".to_owned(), 8)]);
        expect_error(
            &RunSpec { settings, ..ours },
            "no page sets: leave vm.percpu_pagelist_high_fraction out",
        );
    }

    #[test]
    fn one_kernel_can_surround_several_policies() {
        let generation = |kernel_of: Option<&str>| {
            let spec = RunSpec { kernel_of: kernel_of.map(str::to_owned), ..spec() };
            spec.resolve().unwrap().generation
        };
        assert_eq!(generation(None), Generation::V6_6);
        assert_eq!(generation(Some("linux-4.9")), Generation::V4_9);
    }

    #[test]
    fn policies_bring_their_kernel() {
        for (policy, generation) in [
            ("linux-4.9", Generation::V4_9),
            ("linux-4.9-highorder-v5", Generation::V4_9),
            ("linux-4.18", Generation::V4_18),
            ("linux-5.14", Generation::V4_18),
            ("linux-6.1", Generation::V6_6),
            ("patch5", Generation::V6_6),
        ] {
            assert_eq!(generation_of(policy).unwrap(), generation, "{policy}");
        }
    }
}
