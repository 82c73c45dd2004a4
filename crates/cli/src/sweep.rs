//! `pageset sweep`: many simulations from one plan.
//!
//! `args` is what can be typed; `table` and `figure` show what is finished.

mod args;
mod figure;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pageset_lab::sweep::{Plan, Question, Sweep, keys, rows_path};
use pageset_report::Provenance;

use crate::invocation::Invocation;
use crate::options::jobs;
use crate::progress::Progress;
use crate::{hint, output, page};
pub(crate) use args::SweepArgs;
use table::Shown;

pub(crate) fn run(args: &SweepArgs, invocation: &Invocation) -> Result<()> {
    let plan = Plan::read(&args.plan)?;
    for (directory, question) in
        args.svg.iter().flat_map(|directory| plan.questions.iter().map(move |question| (directory, question)))
    {
        output::check_file(&drawing(directory, question), args.output.target.existing())?;
    }
    let mut sweep = Sweep::new(&plan)?;
    args.merge.iter().try_for_each(|path| sweep.merge(path))?;
    if args.merge.is_empty() {
        let rows = args.rows.clone().unwrap_or_else(|| rows_path(&args.plan, args.shard));
        sweep
            .finish(&rows, args.shard, jobs(args.jobs), &mut Progress::on_terminal())
            .map_err(hint::of_conversion)?;
    }
    let finished = sweep
        .finished()
        .map(|run| Shown { keys: keys(&run.spec), results: table::flattened(&run.result) })
        .collect::<Vec<_>>();
    let missing = sweep.run_count() - finished.len();
    if !args.merge.is_empty() && missing > 0 {
        bail!("{missing} of {} runs are in none of the files: run their parts too", sweep.run_count());
    }
    show(args, invocation.provenance(), &plan, &finished, missing)
}

fn show(
    args: &SweepArgs,
    mut provenance: Provenance,
    plan: &Plan,
    finished: &[Shown],
    missing: usize,
) -> Result<()> {
    provenance.policies = distinct(finished, "policy");
    provenance.machine = distinct(finished, "machine").join(", ");
    let mut table = table::table(&plan.title, finished);
    if missing > 0 {
        table.note(format!("{missing} runs of the plan are not here: they belong to other parts."));
    }
    table.note("Simulated: our allocator on modelled machines, in virtual time.");
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make this directory", directory.display()))?;
        for question in &plan.questions {
            let figure = figure::figure(question, finished);
            let figure = figure.with_context(|| args.plan.display().to_string())?;
            let path = drawing(directory, question);
            let svg = figure.with_provenance(&provenance).to_svg()?;
            output::write_file(&path, args.output.target.existing(), |out| {
                Ok(out.write_all(svg.as_bytes())?)
            })?;
        }
    }
    args.page.write(args.output.target.existing(), || {
        let figures = plan.questions.iter().map(|question| figure::figure(question, finished));
        let figures = figures.collect::<Result<Vec<_>>>().with_context(|| args.plan.display().to_string())?;
        let sections = [page::figures(&figures)?, page::tables([table.clone()]), page::origin(&provenance)];
        Ok(page::page(table.title(), sections))
    })?;
    let table = table.with_provenance(provenance);
    let exporter = args.output.format().exporter();
    output::write(&args.output.target, |out| Ok(exporter.export(&table, out)?))
}

/// Where a question's figure goes.
fn drawing(directory: &Path, question: &Question) -> PathBuf {
    directory.join(format!("{}.svg", question.file))
}

/// The values of a key, in order of appearance.
fn distinct(finished: &[Shown], key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for run in finished {
        let value = run.keys.get(key).map(table::text);
        values.extend(value.filter(|value| !values.contains(value)));
    }
    values
}
