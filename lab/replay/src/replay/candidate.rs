//! A candidate: a kernel policy and settings for a replay.

use pageset_core::policy::LINUX_6_6;
use pageset_core::{POLICIES, Policy};

use super::error::ReplayError;
use super::vm_settings::VmSettings;

/// A candidate for a replay: a policy, and settings of `/proc/sys/vm`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The rules of the kernel's page sets.
    pub policy: Policy,
    /// Settings that differ from the recorded settings.
    pub settings: VmSettings,
}

impl Candidate {
    /// Returns the policy's name, and the settings that differ from the recorded settings.
    #[must_use]
    pub fn name(&self) -> String {
        if self.settings.is_unchanged() {
            self.policy.name.to_owned()
        } else {
            format!("{} {}", self.policy.name, self.settings)
        }
    }
}

impl From<Policy> for Candidate {
    fn from(policy: Policy) -> Self {
        Self { policy, settings: VmSettings::default() }
    }
}

/// Returns every named policy that a replay can play, the oldest policy first.
#[must_use]
pub fn replayable() -> Vec<Policy> {
    POLICIES.iter().filter(|policy| policy.is_of_page_sets_alone()).copied().collect()
}

/// Returns an error if a replay cannot play this candidate.
pub(super) fn check(candidate: &Candidate) -> Result<(), ReplayError> {
    let policy = &candidate.policy;
    if policy.is_of_page_sets_alone() { Ok(()) } else { Err(ReplayError::NeedsZone(policy.name)) }
}

/// Returns the policy without the parts that no play depends on: its name, the rules for the order and the
/// locks of drains, and the rules of the zone's free lists. The rules for limits are also left out, because
/// the limits are already computed.
pub(super) fn rules_in_play(mut policy: Policy) -> Policy {
    let any = &LINUX_6_6;
    (policy.name, policy.kernel, policy.summary, policy.source) =
        (any.name, any.kernel, any.summary, any.source);
    (policy.batch, policy.high) = (any.batch, any.high);
    (policy.drain_picks, policy.demand_drain) = (any.drain_picks, any.demand_drain);
    policy.buddy = any.buddy;
    policy
}
