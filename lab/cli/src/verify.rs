//! `pageset verify` compares the decisions of the library's page sets with the recorded kernel's decisions.

mod against;
pub(crate) mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use pageset_core::Policy;
use pageset_replay::{
    Against, Class, ExplainRequest, Fit, Verification, VerifyError, VerifyOptions, VmSettings, neighbours,
    verify,
};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document};
use pageset_trace::{Layout, TraceReader as _};
use serde::Serialize;

use crate::args::exit_with_usage;
use crate::hint;
use crate::invocation::Invocation;
use crate::layouts;
use crate::options::{MachineArgs, SourceArgs};
use crate::output;
use crate::policy_name::AutoOr;
use crate::progress::Progress;
use crate::source::Source;
use crate::verify::args::VerifyArgs;

pub(crate) fn run(args: &VerifyArgs, invocation: &Invocation) -> Result<()> {
    if !args.against.is_empty() {
        return against::run(args, invocation);
    }
    if args.page.is_asked_for() {
        exit_with_usage(
            "--html is for forecasts: say --against; `pageset report` makes a page of a recording",
        );
    }
    let format = args.output.format();
    if args.explain.is_some() && format == Format::Csv {
        exit_with_usage("CSV has no place for the events of --explain: choose another format");
    }
    let options = VerifyOptions {
        policy: match args.policy {
            AutoOr::Auto => None,
            AutoOr::Named(policy) => Some(*policy),
        },
        machine: given(args)?,
        settings: args.set.iter().fold(VmSettings::default(), |all, one| all.and(*one)),
        mode: args.mode,
        explain: args.explain.map(|number| ExplainRequest { number, class: args.class }),
    };
    let traces: Vec<Option<PathBuf>> = match args.traces.as_slice() {
        [] => vec![None],
        traces => traces.iter().cloned().map(Some).collect(),
    };
    let mut verified = Vec::new();
    for trace in traces {
        verified.push(verify_one(&SourceArgs { recording: trace, opening: args.opening.clone() }, &options)?);
    }
    let provenance = provenance(invocation, &verified);
    output::write(&args.output.target, |out| write(&verified, provenance, format, out))
}

/// The machine that replaces the recorded machine, if the user gave one.
fn given(args: &VerifyArgs) -> Result<Option<Layout>> {
    let MachineArgs { layout, facts } = &args.machine;
    if layout.is_none() && (facts.page_size.is_some() || facts.node_cpus.is_some()) {
        exit_with_usage(
            "--page-size and --node-cpus complete a copy of /proc/zoneinfo: give the copy with --layout",
        );
    }
    layout.as_deref().map(|path| layouts::load(path, &facts.options())).transpose()
}

/// The table of a forecast and the measurement, with its notes.
pub(crate) fn compared(found: &Against) -> Table {
    against::compared(found)
}

/// The verification of one recording, and how well the policies of the next older and the next newer kernel
/// fit.
#[derive(Serialize)]
struct Verified {
    #[serde(flatten)]
    verification: Verification,
    /// How well the next older and the next newer policy fit. The list is empty if the user named the policy
    /// or gave `--explain`, or if the recording comes from the standard input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    neighbours: Vec<Fit>,
    /// Facts that are assumed, because they are in neither the recording nor the description of its machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
}

fn verify_one(args: &SourceArgs, options: &VerifyOptions) -> Result<Verified> {
    let (verification, assumed) = verify_under(args, options)?;
    let is_read_once = args.recording.as_deref() == Some(Path::new("-"));
    let is_guess = options.policy.is_none() && options.explain.is_none() && !is_read_once;
    let guess = Policy::named(&verification.policy).filter(|_| is_guess);
    let fits = guess.map_or_else(Vec::new, neighbours).into_iter().map(|neighbour| {
        let options = VerifyOptions { policy: Some(*neighbour), ..options.clone() };
        Ok(verify_under(args, &options)?.0.fit())
    });
    Ok(Verified { neighbours: fits.collect::<Result<_>>()?, verification, assumed })
}

fn verify_under(args: &SourceArgs, options: &VerifyOptions) -> Result<(Verification, Vec<String>)> {
    let mut source = Source::open(args)?;
    let amount = source.amount();
    let mut progress = Progress::of_amount("verifying", &amount);
    let verified = verify(&mut source, options, |events| progress.show(amount.done(events))).map_err(
        |error| match error {
            VerifyError::Trace(error) => hint::of_trace(error),
            error => anyhow!(error),
        },
    )?;
    match (options.explain, &verified.explained) {
        (Some(request), None) => Err(anyhow!(
            "{}: there is no mismatch number {}{}; there are {}",
            verified.trace,
            request.number,
            request.class.map(|class| format!(" of class {}", class.name())).unwrap_or_default(),
            verified.mismatches.total(),
        )),
        _ => {
            let machine = options.machine.as_ref().or(source.info().machine.as_ref());
            let assumed = source.info().assumptions(machine);
            Ok((verified, assumed))
        }
    }
}

/// The verification of one recording, and its provenance.
#[derive(Serialize)]
struct VerifyDocument<'a> {
    #[serde(flatten)]
    verified: &'a Verified,
    provenance: &'a Provenance,
}

fn write(verified: &[Verified], provenance: Provenance, format: Format, out: &mut dyn Write) -> Result<()> {
    if format == Format::Json {
        let document = |verified| VerifyDocument { verified, provenance: &provenance };
        // For one recording the JSON document is an object, for several recordings an array.
        match verified {
            [one] => json_document(&document(one), out)?,
            several => json_document(&several.iter().map(document).collect::<Vec<_>>(), out)?,
        }
        return Ok(());
    }
    let mut table = table(verified);
    if format != Format::Csv {
        notes(verified).into_iter().for_each(|note| table.note(note));
    }
    format.exporter().export(&table.with_provenance(provenance), out)?;
    for explained in verified.iter().filter_map(|verified| verified.verification.explained.as_ref()) {
        writeln!(out, "\n{}: {}\n", explained.class, explained.what)?;
        for event in &explained.events {
            writeln!(out, "{event}")?;
        }
    }
    Ok(())
}

/// Makes the table with a row for each recording: how many of the kernel's decisions the policy predicts.
fn table(verified: &[Verified]) -> Table {
    let columns = vec![
        Column::label("trace", "trace"),
        Column::label("policy", "policy"),
        Column::count("refills", "refills"),
        Column::ratio("refills_exact_percent", "exact").with_unit("%"),
        Column::count("drains", "drains"),
        Column::ratio("drains_exact_percent", "exact ").with_unit("%"),
        Column::ratio("identity_percent", "same pages").with_unit("%"),
        Column::ratio("decay_percent", "ticks").with_unit("%"),
        Column::ratio("count_percent", "count").with_unit("%"),
        Column::ratio("high_percent", "high").with_unit("%"),
        Column::count("mismatches", "differ"),
        Column::count("unexplained", "unexplained"),
    ];
    let mut table = Table::new(title(verified), columns);
    for one in verified.iter().map(|one| &one.verification) {
        table.push(Row::new([
            name(one).into(),
            one.policy.as_str().into(),
            one.refills.observed.into(),
            percent(one.refills.exact, one.refills.observed),
            one.drains.observed.into(),
            percent(one.drains.exact, one.drains.observed),
            percent(one.drains.identity_exact, one.drains.identity_pages),
            percent(one.decay.exact, one.decay.observed),
            percent(one.samples.count_exact, one.samples.n),
            percent(one.samples.high_exact, one.samples.n),
            one.mismatches.total().into(),
            one.mismatches.get(Class::Unexplained).into(),
        ]));
    }
    table
}

/// A share in percent, with two decimals, so that one wrong decision in some thousands is visible.
fn percent(part: u64, whole: u64) -> Cell {
    if whole == 0 { Cell::Absent } else { Cell::real(100.0 * part as f64 / whole as f64, 2) }
}

fn title(verified: &[Verified]) -> String {
    let mode = verified.first().map_or("step", |one| one.verification.mode);
    let how = match mode {
        "step" => {
            "the policy predicts each decision, then the kernel's decision is carried out; samples correct count and high"
        }
        "blind" => {
            "the policy predicts each decision, then the kernel's decision is carried out; samples correct nothing"
        }
        _ => "the policy's own decisions are carried out, and compared with the kernel's decisions",
    };
    format!("The policy's decisions against the recorded kernel's ({mode}: {how})")
}

fn notes(verified: &[Verified]) -> Vec<String> {
    let warned =
        verified.iter().flat_map(|one| one.verification.warnings.iter().map(move |said| (one, said)));
    let mut notes: Vec<String> =
        warned.map(|(one, said)| format!("{}: {said}", name(&one.verification))).collect();
    let sum = |class: Class| verified.iter().map(|one| one.verification.mismatches.get(class)).sum::<u64>();
    let classes: Vec<_> = Class::ALL
        .into_iter()
        .filter(|class| sum(*class) > 0)
        .map(|class| format!("{} {}", sum(class), class.name()))
        .collect();
    if !classes.is_empty() {
        notes.push(format!("Differences by reason: {}.", classes.join(", ")));
    }
    let cold: u64 = verified.iter().map(|one| one.verification.refills.cold).sum();
    notes.push(format!(
        "Left out: {cold} first {}, because the contents of the lists before are not known. \
         `pageset verify --explain 1` shows the events around the first mismatch.",
        if cold == 1 { "refill of a list" } else { "refills of lists" }
    ));
    notes.extend(undetermined(verified));
    notes.push(taken_for_refills(verified));
    let mut assumed: Vec<_> = verified.iter().flat_map(|one| one.assumed.iter().cloned()).collect();
    assumed.dedup();
    notes.extend(assumed);
    notes.extend(verified.iter().filter_map(nearest));
    notes
}

/// Says how many decisions could not be compared, because an earlier mismatch has shown that the count is
/// wrong. `None` if there is no such decision.
fn undetermined(verified: &[Verified]) -> Option<String> {
    let all = || verified.iter().map(|one| one.verification.undetermined);
    let kinds = [
        (all().map(|one| one.drains).sum::<u64>(), "drains"),
        (all().map(|one| one.frees).sum(), "frees without a drain"),
        (all().map(|one| one.samples).sum(), "samples"),
    ];
    let said: Vec<_> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
    (!said.is_empty()).then(|| {
        format!(
            "Undetermined: {}. They depend on a count of which only bounds are known. They are neither exact nor \
             differences.",
            said.join(", ")
        )
    })
}

/// Says how refills are recognised, and in how many cases it is uncertain whether a refill happened. The
/// kernel has no event for a refill, only one for each block.
fn taken_for_refills(verified: &[Verified]) -> String {
    let fetches = verified.iter().map(|one| one.verification.fetches());
    let [all, past, unknown] = fetches.fold([0; 3], |[all, past, unknown], fetches| {
        [all + fetches.all, past + fetches.past_page_sets, unknown + fetches.unknown]
    });
    format!(
        "A run of mm_page_alloc_zone_locked of one CPU, order and type counts as a refill, unless it is a \
         single block that the page set would not have fetched. The event's field percpu_refill would be wrong \
         for {past} of {all} runs; {unknown} runs may be refills or not."
    )
}

/// Says whether the policy of the next older or next newer kernel fits better. `None` if these policies were
/// not tried. Vendors add changes from newer kernels to older ones.
fn nearest(one: &Verified) -> Option<String> {
    let own = one.verification.fit();
    let best = one.neighbours.iter().min_by_key(|fit| fit.wrong())?;
    let right = |fit: &Fit| format!("{} {} of {}", fit.policy, fit.right, fit.decisions);
    let others = one.neighbours.iter().map(right).collect::<Vec<_>>().join(", ");
    let verdict = if own.is_worse_than(best) {
        format!("{} fits best: name it with --policy", best.policy)
    } else {
        "no other policy fits better".to_owned()
    };
    Some(format!(
        "{}: decisions that are right: {}; {others}; {verdict}.",
        name(&one.verification),
        right(&own)
    ))
}

/// The name of the recording's file, without its extension.
fn name(one: &Verification) -> String {
    let path = Path::new(&one.trace);
    path.file_stem().map_or_else(|| one.trace.clone(), |stem| stem.to_string_lossy().into_owned())
}

fn provenance(invocation: &Invocation, verified: &[Verified]) -> Provenance {
    let mut kernels: Vec<_> = verified.iter().map(|one| one.verification.kernel.clone()).collect();
    kernels.dedup();
    let mut policies: Vec<_> = verified.iter().map(|one| one.verification.policy.clone()).collect();
    policies.dedup();
    Provenance {
        machine: format!("recorded on Linux {}", kernels.join(", ")),
        policies,
        ..invocation.provenance()
    }
}
