//! `pageset replay`: a trace under several policies, one row each.

mod result;

use std::path::Path;

use anyhow::Result;
use pageset_core::policy::LINUX_4_19;
use pageset_core::{POLICIES, Policy};
use pageset_report::Provenance;
use pageset_trace::{Layout, TraceReader as _};
use pageset_workload::{Replay, ReplayError, ReplayOptions, Sweep, replay};

use crate::args::{self, ReplayArgs};
use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::options::{OutputArgs, SourceArgs};
use crate::output;
use crate::progress::Progress;
use crate::source::Source;
use result::{Columns, Finished};

/// Frames of all policies' machines that are in memory at once: about 1 GiB, at 16 bytes a frame. A machine of 1 TiB
/// has 2^28 frames, so its policies are replayed one after another.
const FRAMES_MAX: u64 = 1 << 26;

pub(crate) fn run(args: &ReplayArgs, invocation: &Invocation) -> Result<()> {
    let policies = choose(args);
    let columns = if args.ladder.is_some() { Columns::Ladder } else { Columns::Full };
    let comparison =
        Comparison { invocation, policies, cpus: args.cpus, layout: args.layout.as_deref(), columns };
    comparison.run(&args.source, &args.output)
}

/// The policies that are asked for.
fn choose(args: &ReplayArgs) -> Vec<Policy> {
    if let Some(ladder) = args.ladder {
        return ladder.policies();
    }
    let base = match args.policies.as_slice() {
        [] if args.sweep.is_empty() => return POLICIES.to_vec(),
        named if args.sweep.is_empty() => return named.iter().map(|policy| **policy).collect(),
        [] => &LINUX_4_19,
        [policy] => *policy,
        _ => args::refuse("a sweep varies one policy: give --policy one name"),
    };
    let sweep =
        Sweep::parse(args.sweep.iter().map(String::as_str)).unwrap_or_else(|problem| args::refuse(problem));
    sweep.policies(base)
}

/// A replay under several policies, as a subcommand asks for it.
pub(crate) struct Comparison<'a> {
    /// The command line that asks for it.
    pub(crate) invocation: &'a Invocation,
    /// The policies; the first is the base.
    pub(crate) policies: Vec<Policy>,
    /// CPUs to share the memory between.
    pub(crate) cpus: Option<u32>,
    /// What is printed for people.
    pub(crate) columns: Columns,
    /// A layout file.
    pub(crate) layout: Option<&'a Path>,
}

impl Comparison<'_> {
    /// Replays and prints.
    pub(crate) fn run(&self, source_args: &SourceArgs, output: &OutputArgs) -> Result<()> {
        let source = Source::open(source_args)?;
        let (machine, origin) = layouts::find(&source, source_args, self.layout)?;
        let (mut source, replay) = self.replay(source, source_args, &machine, origin)?;
        let provenance = self.provenance(&replay, origin);
        let kernel = source.take_kernel();
        let finished =
            Finished { source, replay, kernel, origin, provenance, columns: self.columns, cpus: self.cpus };
        output::write(&output.target, |out| finished.write(output.format(), out))
    }

    /// Replays under as many policies at once as fit into memory; a trace that can be read only once under all.
    fn replay(
        &self,
        mut source: Source,
        source_args: &SourceArgs,
        machine: &Layout,
        origin: LayoutOrigin,
    ) -> Result<(Source, Replay)> {
        let frames: u64 = machine.zones.iter().fold(0, |sum, zone| sum.saturating_add(zone.spanned));
        let is_rereadable = source_args.trace.as_deref().is_none_or(Path::is_file);
        let at_once = if is_rereadable { FRAMES_MAX / frames.max(1) } else { u64::MAX };
        let at_once = usize::try_from(at_once).unwrap_or(usize::MAX).max(1);
        let rounds = self.policies.chunks(at_once).len() as u64;
        let mut progress =
            Progress::new("replaying", "events", source.info().events.map(|events| events * rounds));
        let mut finished: Option<Replay> = None;
        for policies in self.policies.chunks(at_once) {
            let read_before = finished.as_ref().map_or(0, |replay| {
                let rounds = replay.outcomes.len().div_ceil(at_once) as u64;
                replay.events * rounds
            });
            if finished.is_some() {
                source = Source::open(source_args)?;
            }
            // A recorded machine is left to the replay, which then uses the recorded state of its memory too.
            let machine = Some(machine.clone()).filter(|_| origin != LayoutOrigin::Recorded);
            let options = ReplayOptions { policies: policies.to_vec(), machine, cpus: self.cpus };
            let round = replay(&mut source, &options, |events| progress.show(read_before + events)).map_err(
                |error| match error {
                    ReplayError::Trace(error) => hint::of_trace(error),
                    error => error.into(),
                },
            )?;
            match &mut finished {
                Some(replay) => replay.outcomes.extend(round.outcomes),
                None => finished = Some(round),
            }
        }
        Ok((source, finished.expect("there is a policy")))
    }

    fn provenance(&self, replay: &Replay, origin: LayoutOrigin) -> Provenance {
        let mut provenance = self.invocation.provenance();
        provenance.machine = LayoutSummary::new(&replay.machine, origin).line();
        provenance.policies = replay.outcomes.iter().map(|outcome| outcome.policy.to_owned()).collect();
        provenance
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn without_names_all_policies_are_replayed() {
        let chosen = |arguments: &[&str]| {
            let Command::Replay(args) =
                Args::parse_from([&["pageset", "replay"], arguments].concat()).command
            else {
                panic!("replay was asked for")
            };
            choose(&args).iter().map(|policy| policy.name).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[]).len(), POLICIES.len());
        assert_eq!(chosen(&["-p", "linux-6.12"]), ["linux-6.12"]);
        assert_eq!(chosen(&["--sweep", "batch=31,63"]).len(), 2);
    }
}
