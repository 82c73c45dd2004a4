//! `pageset replay` replays a recording under several policies, and prints a row for each policy.
//!
//! `result` has the printed result. `fleet` replays many recordings.

pub(crate) mod args;
mod fleet;
mod result;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use pageset_core::Policy;
use pageset_replay::{
    Candidate, Replay, ReplayError, ReplayOptions, Stage, Sweep, policy_of_kernel, replay_repeats, replayable,
};
use pageset_report::Provenance;
use pageset_trace::{Layout, TraceInfo, TraceReader};

use crate::args::exit_with_usage;
use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::options::{MachineArgs, SourceArgs, SourcesArgs};
use crate::output;
use crate::progress::Progress;
use crate::replay::args::ReplayArgs;
use crate::source::Source;
use result::{Columns, Finished};

pub(crate) fn run(args: &ReplayArgs, invocation: &Invocation) -> Result<()> {
    args.output.check()?;
    let SourcesArgs { recordings, .. } = &args.source;
    // If the user names several files and no folder, the files are repeats of one load.
    if crate::fleet::is_one(recordings) && recordings.iter().any(|path| path.is_dir()) {
        return fleet::run(args, invocation);
    }
    let repeats = recordings.get(1..).unwrap_or_default();
    let finished = finished(args, (&args.source.single(), repeats), invocation, true)?;
    output::write(&args.output.target, |out| finished.write(args.output.format, out))
}

/// Replays one recording, with the repeats of its load. `is_shown` says whether progress is shown.
fn finished(
    args: &ReplayArgs,
    (source_args, repeats): (&SourceArgs, &[PathBuf]),
    invocation: &Invocation,
    is_shown: bool,
) -> Result<Finished> {
    let source = Source::open(source_args)?;
    let candidates = choose(args, policy_of(source.info()));
    let columns = match (args.series, args.all) {
        (Some(_), _) => Columns::Series,
        (None, true) => Columns::Full,
        (None, false) => Columns::Brief,
    };
    let is_verbose = args.verbose;
    let repeats = repeats.iter().map(|path| Source::open_path(path, &source_args.opening, None));
    let repeats = repeats.collect::<Result<Vec<_>>>()?;
    let comparison = Comparison {
        invocation,
        candidates,
        cpus: args.cpus,
        machine: &args.machine,
        columns,
        is_verbose,
        repeats: repeats.len(),
        is_shown,
    };
    comparison.run(source, repeats, source_args)
}

/// The policy of the recorded kernel, if it is known.
fn policy_of(info: &TraceInfo) -> Option<Policy> {
    let machine = info.machine.as_ref().map(|machine| machine.kernel.as_str());
    info.kernel.as_deref().or(machine).and_then(policy_of_kernel).copied()
}

/// Releases whose policies differ. The first release is the oldest release that was still maintained when
/// this list was made.
const RELEASES: [&str; 7] =
    ["linux-5.14", "linux-6.1", "linux-6.6", "linux-6.7", "linux-6.12", "linux-6.18", "linux-6.19"];

/// Returns the recorded kernel's policy, if it is known, and after it all other policies of [`RELEASES`].
fn releases(recorded: Option<Policy>) -> Vec<Policy> {
    let others = RELEASES.into_iter().filter_map(|name| Policy::named(name).copied());
    let is_other = |policy: &Policy| recorded.is_none_or(|recorded| recorded.name != policy.name);
    recorded.into_iter().chain(others.filter(is_other)).collect()
}

/// Returns the policies, with their changed constants and settings, that the recording is replayed under.
fn choose(args: &ReplayArgs, recorded: Option<Policy>) -> Vec<Candidate> {
    let of = |policies: Vec<Policy>| policies.into_iter().map(Candidate::from).collect();
    if let Some(ladder) = args.series {
        return of(ladder.policies());
    }
    let named: Vec<Policy> = args.policies.iter().map(|policy| **policy).collect();
    let parse = |settings: &[String]| {
        Sweep::parse(settings.iter().map(String::as_str)).unwrap_or_else(|problem| exit_with_usage(problem))
    };
    if !args.sweep.is_empty() {
        let base = match named.as_slice() {
            [] => recorded.unwrap_or_else(|| {
                exit_with_usage(
                    "a sweep varies the recorded kernel's policy, but this recording does not name its kernel: \
                     give --policy one name",
                )
            }),
            [policy] => *policy,
            _ => exit_with_usage("a sweep varies one policy: give --policy one name"),
        };
        return parse(&args.sweep).candidates(&base);
    }
    let policies = match (args.all, named.is_empty()) {
        (true, true) => replayable(),
        (false, true) => releases(recorded),
        (_, false) => named,
    };
    if args.set.is_empty() {
        return of(policies);
    }
    let set = parse(&args.set);
    if !set.is_single() {
        exit_with_usage("--set gives a key one value; --sweep tries several values");
    }
    policies.iter().flat_map(|policy| set.candidates(policy)).collect()
}

/// A replay under several policies, as the user requested it.
pub(crate) struct Comparison<'a> {
    /// The command line.
    pub(crate) invocation: &'a Invocation,
    /// Kernels to replay under. The first kernel is the base, which the other kernels are compared with.
    pub(crate) candidates: Vec<Candidate>,
    /// Number of CPUs in the replay, which share the recorded memory. `None` stands for the recorded number.
    pub(crate) cpus: Option<u32>,
    /// Columns of the table for people.
    pub(crate) columns: Columns,
    /// The machine that replaces the recorded machine, if the user gave one.
    pub(crate) machine: &'a MachineArgs,
    /// Whether the user gave `--verbose`, so that all notes are printed.
    pub(crate) is_verbose: bool,
    /// Number of further recordings of the same load.
    pub(crate) repeats: usize,
    /// Whether progress is shown.
    is_shown: bool,
}

impl Comparison<'_> {
    fn run(&self, source: Source, repeats: Vec<Source>, source_args: &SourceArgs) -> Result<Finished> {
        let (machine, origin) = layouts::find(&source, source_args, self.machine)?;
        let (source, replay) = self.replay(source, repeats, machine, origin)?;
        let provenance = self.provenance(&replay, origin);
        let Self { columns, cpus, is_verbose, repeats, .. } = *self;
        Ok(Finished { source, replay, origin, provenance, columns, cpus, is_verbose, repeats })
    }

    fn replay(
        &self,
        mut source: Source,
        repeats: Vec<Source>,
        machine: Layout,
        origin: LayoutOrigin,
    ) -> Result<(Source, Replay)> {
        let amount = source.amount();
        // The stage of playing begins when the replay reports this stage for the first time.
        let shown = Mutex::new((Progress::of_amount("reading", &amount), false));
        let show = |stage| {
            if !self.is_shown {
                return;
            }
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let (progress, is_playing) = &mut *shown;
            match stage {
                Stage::Read(events) => progress.show(amount.done(events)),
                Stage::Played(done, all) => {
                    if !std::mem::replace(is_playing, true) {
                        *progress = Progress::new("replaying", "allocations and frees", Some(all));
                    }
                    progress.show(done);
                }
            }
        };
        // If the machine is the recorded machine, do not pass the machine to the replay. Without a given
        // machine, the replay takes the machine from the recording, and also uses the recorded state of
        // memory.
        let machine = Some(machine).filter(|_| origin != LayoutOrigin::Recorded);
        let options = ReplayOptions {
            candidates: self.candidates.clone(),
            machine,
            cpus: self.cpus,
            finds_steady_visits: true,
            ..ReplayOptions::default()
        };
        let mut repeats: Vec<Box<dyn TraceReader>> =
            repeats.into_iter().map(|repeat| Box::new(repeat) as _).collect();
        let replay = replay_repeats(&mut source, &mut repeats, &options, show);
        let replay = replay.map_err(|error| match error {
            ReplayError::Trace(error) => hint::of_trace(error),
            error => error.into(),
        })?;
        Ok((source, replay))
    }

    fn provenance(&self, replay: &Replay, origin: LayoutOrigin) -> Provenance {
        let mut provenance = self.invocation.provenance();
        provenance.machine = LayoutSummary::new(&replay.machine, origin).line();
        provenance.policies = replay.outcomes.iter().map(|outcome| outcome.policy.clone()).collect();
        provenance
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn without_names_the_recorded_kernel_and_the_releases_are_replayed() {
        let chosen = |arguments: &[&str]| {
            let Command::Replay(args) =
                Args::parse_from([&["pageset", "replay"], arguments].concat()).command
            else {
                panic!("the command line is one of `replay`")
            };
            choose(&args, Policy::named("linux-6.18").copied())
                .iter()
                .map(Candidate::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            chosen(&[])[..3],
            ["linux-6.18", "linux-5.14", "linux-6.1"],
            "the recorded kernel's policy is the first row"
        );
        assert_eq!(chosen(&[]).len(), RELEASES.len(), "the recorded kernel's policy has one row");
        assert_eq!(chosen(&["--all"]).len(), replayable().len());
        assert_eq!(chosen(&["-p", "linux-6.12"]), ["linux-6.12"]);
        let swept = chosen(&["--sweep", "batch=31,63"]);
        assert_eq!(swept, ["linux-6.18 batch=31", "linux-6.18 batch=63"], "the recorded kernel's policy");
    }
}
