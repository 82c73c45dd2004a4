//! The settings and kernels to try: settings that can be changed while the machine runs, and kernels in
//! common use.

use pageset_core::{POLICIES, Policy};
use pageset_trace::Layout;

use crate::{Candidate, VmSettings};

/// Values of `vm.percpu_pagelist_high_fraction`. With 0, the kernel chooses the limits of page sets. The
/// smallest value above 0 is 8.
const FRACTIONS: [u32; 9] = [0, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Factors that the recorded `vm.min_free_kbytes` is multiplied by.
const MIN_FREE_TIMES: [u64; 2] = [2, 4];
/// Values of `vm.watermark_scale_factor`, in 10 000ths of a zone. The kernel's default is 10.
const SCALE_FACTORS: [u32; 3] = [50, 100, 200];
/// Kernels to try: the kernels from 6.1 to 6.18 with long-term support, and 5.14, which enterprise
/// distributions use.
const KERNELS: [&str; 5] = ["linux-5.14", "linux-6.1", "linux-6.6", "linux-6.12", "linux-6.18"];

/// Returns the settings of `/proc/sys/vm` to try that differ from the recorded settings, for the recorded
/// kernel.
pub(super) fn settings(policy: Policy, machine: &Layout) -> Vec<Candidate> {
    let recorded = &machine.sysctls;
    let fraction = recorded.percpu_pagelist_high_fraction.unwrap_or(0);
    let none = VmSettings::default();
    let fractions = FRACTIONS
        .into_iter()
        .filter(|value| *value != fraction)
        .map(|value| VmSettings { percpu_pagelist_high_fraction: Some(value), ..none });
    let min_free = recorded.min_free_kbytes.filter(|kbytes| *kbytes > 0);
    let min_free = MIN_FREE_TIMES.into_iter().filter_map(|times| {
        Some(VmSettings { min_free_kbytes: Some(min_free?.checked_mul(times)?), ..none })
    });
    let scale = recorded.watermark_scale_factor.unwrap_or(0);
    let scales = SCALE_FACTORS
        .into_iter()
        .filter(|value| *value > scale)
        .map(|value| VmSettings { watermark_scale_factor: Some(value), ..none });
    let all = fractions.chain(min_free).chain(scales);
    all.map(|settings| Candidate { policy, settings }).collect()
}

/// Returns the kernels to try other than the recorded kernel, with the recorded settings.
pub(super) fn kernels(recorded: Option<Policy>) -> Vec<Candidate> {
    let named = POLICIES.iter().filter(|policy| KERNELS.contains(&policy.name));
    let others = named.filter(|policy| recorded.is_none_or(|recorded| recorded.name != policy.name));
    others.map(|policy| Candidate::from(*policy)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_a_policy() {
        assert_eq!(kernels(None).len(), KERNELS.len());
        let recorded = Policy::named("linux-6.12").copied();
        assert_eq!(
            kernels(recorded).len(),
            KERNELS.len() - 1,
            "the options do not include the recorded kernel"
        );
    }
}
