//! `pageset contest`: a trace on whole allocators, one row each.
//!
//! `result` is what is printed.

mod args;
mod result;

use anyhow::Result;
use pageset_trace::{Layout, TraceReader as _};
use pageset_workload::contest::{ContestError, Entrant, Script, Standing};

use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{self, LayoutSummary};
use crate::output;
use crate::progress::Progress;
use crate::source::Source;
pub(crate) use args::ContestArgs;
use result::Finished;

pub(crate) fn run(args: &ContestArgs, invocation: &Invocation) -> Result<()> {
    let mut source = Source::open(&args.source)?;
    let (machine, origin) = layouts::find(&source, &args.source, &args.machine)?;
    let script = read(&mut source)?;
    let entrants = entrants(args);
    let standings = play(&script, &machine, &entrants)?;
    let mut provenance = invocation.provenance();
    provenance.machine = LayoutSummary::new(&machine, origin).line();
    provenance.policies = args.policies.iter().map(|policy| policy.name.to_owned()).collect();
    let finished = Finished { source, machine, origin, script, standings, provenance };
    output::write(&args.output.target, |out| finished.write(args.output.format(), out))
}

/// Who takes part; ours comes last.
fn entrants(args: &ContestArgs) -> Vec<Entrant> {
    let linux = args.policies.iter().map(|policy| Entrant::Linux(Box::new(**policy)));
    let ablations = Entrant::ablations().filter(|_| args.ablations);
    linux.chain(ablations).chain([Entrant::OWNED_BLOCKS]).collect()
}

fn read(source: &mut Source) -> Result<Script> {
    let mut progress = Progress::new("reading", "events", source.info().events);
    Script::read(source, |events| progress.show(events)).map_err(hint::of_trace)
}

fn play(script: &Script, machine: &Layout, entrants: &[Entrant]) -> Result<Vec<Standing>, ContestError> {
    let mut progress = Progress::new("playing", "rows", Some(entrants.len() as u64));
    let rows = entrants.iter().zip(1..).map(|(entrant, row)| {
        let standing = script.play(machine, entrant);
        progress.show(row);
        standing
    });
    rows.collect()
}
