//! Runs measurements on threads of this machine, through the same interface as workloads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use pageset_core::policy::{self, BatchRule, HighRule};
use pageset_core::{CpuId, Policy};
use pageset_measure::pageops::median;

use crate::load::{Body, ChannelSpec, Plan, Worker};
use crate::{Target, ThreadOptions, ThreadOutcome, run_on_threads};

/// Number of pages of the measured allocator: 1 GiB. The operating system provides memory only for touched
/// pages.
pub(super) const PAGES: u64 = 1 << 18;

/// Returns a policy with a fixed batch and a fixed `high`. With this policy, a measurement knows whether a
/// page comes from a page set or from the zone.
pub(super) fn fixed(batch: i32) -> Policy {
    let mut policy = policy::LINUX_4_9;
    policy.batch = BatchRule::Fixed(batch);
    policy.high = HighRule::Fixed(4 * batch);
    policy
}

/// Runs `body` once on the first CPU. `body` calls its second argument to report a time. Returns the median
/// of the reported times.
pub(super) fn measure(
    policy: Policy,
    body: impl FnOnce(&mut dyn Target, &mut dyn FnMut(f64)) + Send + 'static,
) -> Result<f64> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&times);
    let recording: Body = Box::new(move |target| {
        let mut found = Vec::new();
        body(target, &mut |ns| found.push(ns));
        sink.lock().expect("no thread panics while it holds the lock").extend(found);
    });
    run(policy, Vec::new(), [recording])?;
    let times = times.lock().expect("no thread panics while it holds the lock");
    Ok(median(&times))
}

/// Runs each body on its own CPU, beginning with the first CPU. Returns the sum of the bodies' scores per
/// nanosecond.
pub(super) fn score_per_ns(policy: Policy, channels: Vec<ChannelSpec>, bodies: Vec<Body>) -> Result<f64> {
    Ok(run(policy, channels, bodies)?.score_per_second() / 1e9)
}

/// Runs each body on its own CPU, beginning with the first CPU.
pub(super) fn run(
    policy: Policy,
    channels: Vec<ChannelSpec>,
    bodies: impl IntoIterator<Item = Body>,
) -> Result<ThreadOutcome> {
    let workers = (0..).zip(bodies).map(|(cpu, body)| Worker { cpu: CpuId(cpu), body }).collect();
    let plan = Plan { workers, channels, ..Plan::default() };
    Ok(run_on_threads(plan, &options(policy))?)
}

fn options(policy: Policy) -> ThreadOptions {
    ThreadOptions {
        policy,
        pages: PAGES,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(400),
        seed: 1,
    }
}
