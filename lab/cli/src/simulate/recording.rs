//! `pageset simulate --recording` plays a recording on complete allocators, and prints a row for each.
//!
//! `result` has the printed result.

pub(crate) mod args;
mod result;

use std::path::Path;

use anyhow::Result;
use pageset_core::Policy;
use pageset_replay::{names_policy_file, read_policy};
use pageset_study::contest::{AllocatorKind, ContestError, ContestRow, Recording};
use pageset_trace::{Layout, TraceReader as _};

use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{self, LayoutSummary};
use crate::options::SourceArgs;
use crate::output;
use crate::progress::Progress;
use crate::simulate::args::SimulateArgs;
use crate::source::Source;
use result::Finished;

/// The policies that are compared if the user gives no -p.
const POLICIES: [&str; 4] = ["linux-6.12", "linux-6.18", "linux-6.19", "pcp-buddy-rfc"];

pub(super) fn run(args: &SimulateArgs, recording: Option<&Path>, invocation: &Invocation) -> Result<()> {
    let opened = SourceArgs { recording: recording.map(Path::to_owned), opening: args.play.opening.clone() };
    let mut source = Source::open(&opened)?;
    let (machine, origin) = layouts::find(&source, &opened, &args.play.machine)?;
    let recording = read(&mut source)?;
    let policies = policies(args);
    let allocators = allocators(&policies);
    let rows = play(&recording, &machine, &allocators)?;
    let mut provenance = invocation.provenance();
    provenance.machine = LayoutSummary::new(&machine, origin).line();
    provenance.policies = policies.iter().map(|policy| policy.name.to_owned()).collect();
    let finished = Finished { source, machine, origin, recording, rows, provenance };
    output::write(&args.output.target, |out| finished.write(args.output.format(), out))
}

/// Returns Linux's policies among the names that the user gave. The project's own allocators always play the
/// recording, so their names have no effect.
fn policies(args: &SimulateArgs) -> Vec<&'static Policy> {
    let named = |name: &str| match names_policy_file(name) {
        true => read_policy(Path::new(name)).ok(),
        false => Policy::named(name),
    };
    match args.policies.is_empty() {
        true => POLICIES.into_iter().filter_map(named).collect(),
        false => args.policies.iter().filter_map(|name| named(name)).collect(),
    }
}

/// The allocators that play the recording: Linux's policies, then the project's own allocators.
fn allocators(policies: &[&'static Policy]) -> Vec<AllocatorKind> {
    let linux = policies.iter().map(|policy| AllocatorKind::Linux(Box::new(**policy)));
    linux.chain(AllocatorKind::OURS).collect()
}

fn read(source: &mut Source) -> Result<Recording> {
    let amount = source.amount();
    let mut progress = Progress::of_amount("reading", &amount);
    Recording::read(source, |events| progress.show(amount.done(events))).map_err(hint::of_trace)
}

fn play(
    recording: &Recording,
    machine: &Layout,
    allocators: &[AllocatorKind],
) -> Result<Vec<ContestRow>, ContestError> {
    let mut progress = Progress::new("playing", "rows", Some(allocators.len() as u64));
    let rows = allocators.iter().zip(1..).map(|(allocator, done)| {
        let row = recording.play(machine, allocator);
        progress.show(done);
        row
    });
    rows.collect()
}
