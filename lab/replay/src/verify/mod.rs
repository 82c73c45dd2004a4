//! Verification: compares the core's decisions with the recorded kernel's decisions.
//!
//! [`verify`] drives the core's own page sets ([`pageset_core::pcp::Pcp`]) with a recording's allocations and
//! frees, and compares each decision with the kernel's events. `verify` compares refills (when, how many
//! blocks), drains (when, how many pages, which pages), and ticks. `verify` also compares `count` and `high`
//! with each sample of `/proc/zoneinfo`. Each mismatch has a [`Class`].
//!
//! The files, in groups. A group mainly uses the groups before it.
//!
//! - Parts of a comparison: `classes`, `mode`, `numbers` (of frames), `geometry` (zones and limits), `links`
//!   (from each event to other events), and `linker` (reads and links the events on a second thread). Further
//!   parts: `after_free` (where a freed block went), `late` (allocations that are reported late), `explain`,
//!   `report`, and `doubt` (bounds of a count).
//! - State: `page_set` (the core's page set and its unknown parts), `cpu_state`, and `engine`, which holds
//!   all parts together.
//! - Effects of events: `compare` (the drain of a free), `narrow` (a count that is not known), `free_run`
//!   (mode `free`), `refill`, `bulk`, `alloc`, `tick`, `free`, `sample`, and `calibrate` (the page sets'
//!   contents at the start).
//! - Files that use many other files: `dispatch` (passes each event to the file for its kind), `options`,
//!   `fetches` (counts of the kernel's fetches), `fit` (which of several policies agrees best), and this
//!   file.

mod after_free;
mod alloc;
mod bulk;
mod calibrate;
mod classes;
mod compare;
mod cpu_state;
mod dispatch;
mod doubt;
mod engine;
mod explain;
mod fetches;
mod fit;
mod free;
mod free_run;
mod geometry;
mod late;
mod linker;
mod links;
mod mode;
mod narrow;
mod numbers;
mod options;
mod page_set;
mod refill;
mod report;
mod sample;
mod tick;

pub use classes::{Class, Mismatches};
pub use explain::{ExplainRequest, Explanation};
pub use fetches::Fetches;
pub use fit::Fit;
pub use mode::Mode;
pub use options::{VerifyError, VerifyOptions};
pub use report::{Decays, Drains, PassedOver, Refills, Samples, Undetermined, Verification};

use pageset_core::POLICIES;
use pageset_trace::TraceReader;

use crate::kernel_policy::policy_of_kernel;
use crate::recorded::{self, RecordedKinds, needs};
use crate::stretch::OneSetting;
use engine::Engine;
use explain::Explainer;
use geometry::LimitsFrom;
use linker::{CHUNK_EVENTS_MAX, LinkError, Linker};
use links::{BESIDE_BYTES, Chunk};

/// The remedy of short memory.
const MORE_MEMORY: &str = "free some memory, or raise the limit (`ulimit -v`, the control group)";

/// Compares a recording with a policy. `progress` gets the number of events compared so far.
///
/// # Errors
/// An error if the recording is damaged, lacks events, or does not describe its machine or its kernel. Also
/// an error if the machine is too large for the tables, or if a setting changed at an unknown time.
pub fn verify(
    reader: &mut dyn TraceReader,
    options: &VerifyOptions,
    mut progress: impl FnMut(u64),
) -> Result<Verification, VerifyError> {
    // Limit the comparison to one setting, because the kernel's decisions depend on settings.
    let mut reader = OneSetting::new(reader)?;
    let warnings = reader.said().map(str::to_owned).into_iter().collect();
    let info = reader.info().clone();
    let path = info.path.display().to_string();
    let unusable = |problem: String, remedy| VerifyError::Unusable { path: path.clone(), problem, remedy };
    let Some(machine) = options.machine.as_ref().or(info.machine.as_ref()) else {
        return Err(recorded::no_layout(&mut reader).into());
    };
    let machine = &options.settings.applied(machine);
    let kernel = info.kernel.clone().unwrap_or_else(|| machine.kernel.clone());
    let Some(policy) = options.policy.or_else(|| policy_of_kernel(&kernel).copied()) else {
        return Err(unusable(format!("no policy is known for kernel {kernel:?}"), "pass --policy NAME"));
    };
    if !policy.is_of_page_sets_alone() {
        let problem = format!(
            "{} decides by the contents of the zone's lists, which no recording contains",
            policy.name
        );
        return Err(unusable(problem, "pass another --policy NAME"));
    }
    let explainer = Explainer::new(options.explain);
    // Printed limits are results of the kernel's own formulas. If the policy has other formulas, compute the
    // limits.
    let is_some_kernels =
        POLICIES.iter().any(|known| (known.batch, known.high) == (policy.batch, policy.high));
    let limits = match options.settings.is_unchanged() && is_some_kernels {
        true => LimitsFrom::Samples,
        false => LimitsFrom::Formulas,
    };
    let mut engine = Engine::new((policy, options.mode, explainer), machine, &info, limits)
        .map_err(|problem| unusable(problem, "pass a machine description that fits with --layout FILE"))?;
    engine.prepare(limits);
    let mut chunk = Chunk::default();
    // Reserving too much memory does no harm, because the system provides a page of memory only when the page
    // is first written.
    let announced = usize::try_from(info.events.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    chunk.reserve(announced.min(CHUNK_EVENTS_MAX)).map_err(|problem| unusable(problem, MORE_MEMORY))?;
    links::room_for(BESIDE_BYTES, "tables").map_err(|problem| unusable(problem, MORE_MEMORY))?;
    let mut linker = Linker::new(&mut reader, engine.geometry.numbers.clone(), engine.cpus.len());
    let mut events = 0;
    let compared = linker.for_each_chunk(chunk, |chunk| {
        engine.make_room(chunk)?;
        engine.compare(chunk);
        events += chunk.end as u64;
        progress(events);
        Ok(())
    });
    compared.map_err(|error| match error {
        LinkError::Trace(error) => error.into(),
        LinkError::Unusable(problem) => unusable(problem, MORE_MEMORY),
    })?;
    let kinds = linker.kinds;
    RecordedKinds::new(&info, &kinds).require(needs::VISITS, &info)?;
    Ok(Verification {
        trace: path,
        kernel,
        policy: policy.name.to_owned(),
        mode: options.mode.name(),
        events,
        explained: engine.explainer.found.take(),
        warnings,
        ..engine.out
    })
}
