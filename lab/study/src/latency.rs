//! Simulates how long a recording's allocations take. The simulated machine is the smallest bundled machine
//! with at least as many CPUs as the recorded machine.

use std::path::Path;

use pageset_replay::advise::{Forecast, Latency, Times};
use pageset_sim::MACHINES;

use crate::simulate::{RunSpec, simulate};

/// Simulates the recording at `path` twice: under `policy`, and with the policy and settings of the forecast
/// `advised`. Returns `None` if a simulation fails, if a setting of the forecast has no number, or if all
/// bundled machines have too few CPUs. The report then shows no simulated times.
#[must_use]
pub fn simulated(path: &Path, cpus: u32, policy: &str, advised: &Forecast) -> Option<Latency> {
    let of_size = MACHINES.iter().map(|bundled| (bundled.parse().cpus(), bundled.name));
    let (_, machine) = of_size.filter(|(its, _)| *its >= cpus).min()?;
    let spec = |policy: &str| RunSpec {
        cpus: Some(cpus),
        ..RunSpec::new(machine, &format!("trace:{}", path.display()), policy)
    };
    let now = spec(policy);
    let mut changed = spec(advised.kernel.as_deref().unwrap_or(policy));
    for setting in advised.settings.split(' ').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=')?;
        changed.settings.insert(key.to_owned(), value.parse().ok()?);
    }
    let times = |spec: &RunSpec| {
        let result = simulate(spec).ok()?;
        Some(Times { p99_ns: result.alloc_p99_ns, p999_ns: result.alloc_p999_ns })
    };
    Some(Latency { machine, now: times(&now)?, advised: times(&changed)? })
}

#[cfg(test)]
mod tests {
    use pageset_replay::advise::Range;

    use super::*;

    #[test]
    fn a_recording_is_simulated_under_both() {
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/k612_2c_tcp.pgtrace");
        let advised = Forecast {
            kernel: None,
            settings: "vm.percpu_pagelist_high_fraction=512".into(),
            visits: 1,
            visits_range: Range { low: 0, high: 2 },
            visits_percent: None,
            saved_percent: None,
            held_pages_peak: 3,
            held_pages_idle: 1,
            ends_tuning: false,
        };
        let found = simulated(&trace, 2, "linux-6.12", &advised).unwrap();
        assert_eq!(found.machine, "epyc-2");
        assert!(found.now.p99_ns > 0.0 && found.now.p999_ns >= found.now.p99_ns, "{found:?}");
        assert_eq!(simulated(Path::new("missing"), 2, "linux-6.12", &advised), None);
        assert_eq!(simulated(&trace, 100_000, "linux-6.12", &advised), None, "no such machine");
    }
}
