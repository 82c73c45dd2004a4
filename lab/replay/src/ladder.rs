//! Ladders: groups of policies that a published table compares, and sweeps over the constants of a policy.

use std::str::FromStr;

use pageset_core::Policy;
use pageset_core::policy::{BatchRule, HighRule, fixed};

use crate::replay::{Candidate, VmSettings};

/// The policies of a published table. The first policy is the base that the other policies are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ladder {
    /// The auto-tuning series of 2023: its base, the patches that its tables show, and the merged form.
    #[default]
    Series,
    /// The high-order series of 2016: unchanged Linux 4.9, version 5 of the series, and proposals of its
    /// reviewers.
    HighOrder,
    /// The first phase of the 2018 batch-size study: batches from 31 to 511, each with a limit of six
    /// batches.
    Batch,
}

/// The batches in the first phase of the study. Source: the study's tables, which have the same twenty
/// batches for every machine.
const STUDY_BATCHES: [i32; 20] =
    [31, 53, 63, 73, 119, 127, 137, 165, 188, 223, 255, 267, 299, 320, 393, 424, 458, 467, 498, 511];

impl Ladder {
    /// All ladders.
    pub const ALL: [Self; 3] = [Self::Series, Self::HighOrder, Self::Batch];

    /// The name of the ladder on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::HighOrder => "highorder",
            Self::Batch => "batch",
        }
    }

    /// The policies of the ladder. The base is first.
    #[must_use]
    pub fn policies(self) -> Vec<Policy> {
        let named = |names: &[&str]| names.iter().filter_map(|name| Policy::named(name).copied()).collect();
        match self {
            Self::Series => named(&[
                "linux-6.6",
                "patch1",
                "patch3",
                "patch5",
                "patch7",
                "patch9",
                "patch10",
                "linux-6.7",
            ]),
            Self::HighOrder => named(&[
                "linux-4.9",
                "linux-4.9-highorder-v5",
                "linux-4.9-highorder-v5-last-list",
                "linux-4.9-highorder-v5-excess",
                "linux-4.9-highorder-v5-scaled-refill",
            ]),
            Self::Batch => STUDY_BATCHES
                .map(|batch| labelled(fixed(batch, 6 * batch), format!("batch={batch}")))
                .to_vec(),
        }
    }
}

impl FromStr for Ladder {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|ladder| ladder.name() == name)
            .ok_or_else(|| format!("unknown ladder `{name}`; choose one of: {known}"))
    }
}

/// Values to try for a policy's constants. If a constant has no values here, the policy's own value is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Values of the batch, in pages.
    pub batch: Vec<i32>,
    /// Values of the limit of a page set, in pages. A fixed limit switches off the kernel's tuning.
    pub high: Vec<i32>,
    /// Values of `scale_max`: refills and drains move at most `batch << scale_max` pages.
    pub scale_max: Vec<u8>,
    /// Settings of `/proc/sys/vm`: for each setting, the values to try.
    pub settings: Vec<Vec<VmSettings>>,
}

/// Maximum number of policies in one sweep. Each policy needs the page sets of a whole machine in memory.
const POLICIES_MAX: usize = 256;

impl Sweep {
    /// Parses settings such as `batch=31,63,127` and `high=186,378`.
    ///
    /// # Errors
    /// A sentence that names the wrong setting and its possible values.
    pub fn parse<'s>(settings: impl IntoIterator<Item = &'s str>) -> Result<Self, String> {
        let mut sweep = Self::default();
        for setting in settings {
            let (key, values) = setting.split_once('=').ok_or_else(|| {
                format!("`{setting}` is not a setting: write KEY=VALUE[,VALUE], e.g. batch=31,63 (a RECORDING stands before --sweep)")
            })?;
            match key {
                "batch" => sweep.batch = numbers(setting, values, 1..=1 << 16)?,
                "high" => sweep.high = numbers(setting, values, 0..=1 << 28)?,
                "scale-max" => sweep.scale_max = numbers(setting, values, 0..=12)?,
                key if key.starts_with("vm.") => {
                    let values = values.split(',').map(|value| format!("{key}={value}").parse());
                    sweep.settings.push(values.collect::<Result<_, _>>()?);
                }
                _ => {
                    let keys = VmSettings::KEYS.join(", ");
                    return Err(format!(
                        "unknown setting `{key}`; choose from: batch, high, scale-max, {keys}"
                    ));
                }
            }
        }
        let constants = [sweep.batch.len(), sweep.high.len(), sweep.scale_max.len()];
        let counts =
            constants.into_iter().chain(sweep.settings.iter().map(Vec::len)).map(|count| count.max(1));
        let combinations = counts.fold(1_usize, usize::saturating_mul);
        if combinations > POLICIES_MAX {
            return Err(format!("the sweep has more than {POLICIES_MAX} combinations: give fewer values"));
        }
        Ok(sweep)
    }

    /// Whether each constant and setting has at most one value to try.
    #[must_use]
    pub fn is_single(&self) -> bool {
        let constants = [self.batch.len(), self.high.len(), self.scale_max.len()];
        constants.into_iter().chain(self.settings.iter().map(Vec::len)).all(|count| count <= 1)
    }

    /// Combines the policy `base` with every combination of the values. In the order of the results, settings
    /// vary faster than constants of the policy.
    #[must_use]
    pub fn candidates(&self, base: &Policy) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = self.policies(base).into_iter().map(Candidate::from).collect();
        for values in &self.settings {
            let with = |candidate: Candidate| {
                values.iter().map(move |settings| Candidate {
                    settings: candidate.settings.and(*settings),
                    ..candidate
                })
            };
            candidates = candidates.into_iter().flat_map(with).collect();
        }
        candidates
    }

    /// Combines the policy `base` with every combination of the values of its constants. The first constant
    /// varies slowest in the order of the results.
    fn policies(&self, base: &Policy) -> Vec<Policy> {
        let mut policies = Vec::new();
        for batch in choices(&self.batch) {
            for high in choices(&self.high) {
                for scale_max in choices(&self.scale_max) {
                    let mut policy = *base;
                    let mut label = base.name.to_string();
                    if let Some(batch) = batch {
                        policy.batch = BatchRule::Fixed(batch);
                        label += &format!(" batch={batch}");
                    }
                    if let Some(high) = high {
                        policy.high = HighRule::Fixed(high);
                        label += &format!(" high={high}");
                    }
                    if let Some(scale_max) = scale_max {
                        policy.scale_max = scale_max;
                        label += &format!(" scale-max={scale_max}");
                    }
                    policies.push(labelled(policy, label));
                }
            }
        }
        policies
    }
}

/// Returns the values to try. Without values, returns a single `None`, which keeps the policy's value.
fn choices<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

fn numbers<T>(setting: &str, values: &str, allowed: std::ops::RangeInclusive<i32>) -> Result<Vec<T>, String>
where
    T: TryFrom<i32>,
{
    let (low, high) = allowed.clone().into_inner();
    let number =
        |text: &str| text.parse().ok().filter(|n| allowed.contains(n)).and_then(|n| T::try_from(n).ok());
    values
        .split(',')
        .map(|text| {
            number(text)
                .ok_or_else(|| format!("`{text}` in `{setting}` is not a number from {low} to {high}"))
        })
        .collect()
}

/// Renames a policy. The new name is never freed, because policies have static names. A command makes only a
/// few names.
fn labelled(mut policy: Policy, label: String) -> Policy {
    policy.name = label.leak();
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_exists() {
        assert_eq!(Ladder::ALL.map(|ladder| ladder.policies().len()), [8, 5, 20]);
        for ladder in Ladder::ALL {
            assert_eq!(ladder.name().parse(), Ok(ladder));
        }
        assert_eq!(
            "sideways".parse::<Ladder>().unwrap_err(),
            "unknown ladder `sideways`; choose one of: series, highorder, batch"
        );
    }

    #[test]
    fn a_sweep_is_every_combination() {
        let sweep = Sweep::parse(["batch=31,63", "high=100,200,300"]).unwrap();
        let base = Policy::named("linux-4.19").unwrap();
        let names: Vec<_> = sweep.policies(base).iter().map(|policy| policy.name).collect();
        assert_eq!(names.len(), 6);
        assert_eq!((names[0], names[5]), ("linux-4.19 batch=31 high=100", "linux-4.19 batch=63 high=300"));
        assert_eq!(Sweep::default().policies(base)[0].batch, base.batch);
        let sweep = Sweep::parse(["vm.percpu_pagelist_high_fraction=0,8", "vm.stat_interval=1,10"]).unwrap();
        let names: Vec<_> = sweep.candidates(base).iter().map(Candidate::name).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[3], "linux-4.19 vm.percpu_pagelist_high_fraction=8 vm.stat_interval=10");
    }

    #[test]
    fn bad_settings_say_what_is_allowed() {
        let error = |settings: &[&str]| Sweep::parse(settings.iter().copied()).unwrap_err();
        assert_eq!(
            error(&["batch"]),
            "`batch` is not a setting: write KEY=VALUE[,VALUE], e.g. batch=31,63 (a RECORDING stands before --sweep)"
        );
        assert_eq!(
            error(&["speed=1"]),
            "unknown setting `speed`; choose from: batch, high, scale-max, vm.percpu_pagelist_high_fraction, vm.min_free_kbytes, vm.watermark_scale_factor, vm.stat_interval"
        );
        assert_eq!(error(&["batch=0"]), "`0` in `batch=0` is not a number from 1 to 65536");
        assert_eq!(error(&["high=1,x"]), "`x` in `high=1,x` is not a number from 0 to 268435456");
        let many = (1..300).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(error(&[&format!("batch={many}")]).contains("256"));
    }
}
