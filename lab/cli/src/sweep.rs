//! `pageset sweep` runs many simulations from one plan.
//!
//! `args` has the options, and `elsewhere` runs the plan in other processes or on other computers. `table`
//! prints finished runs, and `figure` draws the answers to the plan's questions.

pub(crate) mod args;
mod elsewhere;
mod figure;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_report::{Format, Provenance, Table};
use pageset_reproduce::sweep::{Plan, Question, Sweep, keys, rows_path};

use crate::invocation::Invocation;
use crate::options::{RowsFormat, jobs};
use crate::progress::Progress;
use crate::{hint, output, page};
use args::SweepArgs;
use table::Shown;

pub(crate) fn run(args: &SweepArgs, invocation: &Invocation) -> Result<()> {
    args.output.check()?;
    let plan = Plan::read(&args.plan)?;
    for (directory, question) in
        args.svg.iter().flat_map(|directory| plan.questions.iter().map(move |question| (directory, question)))
    {
        output::check_file(&drawing(directory, question), args.output.target.existing())?;
    }
    let in_plan = || args.plan.display().to_string();
    let mut sweep = Sweep::new(&plan).with_context(in_plan)?;
    figure::check(&plan.questions, sweep.runs().iter().map(|(_, spec)| keys(spec))).with_context(in_plan)?;
    match args.on.as_ref() {
        Some(engine) => {
            let results = args.into.clone().unwrap_or_else(|| args.plan.with_extension("results"));
            engine.finish(&args.plan, &results, args.jobs, &mut sweep)?;
        }
        None => {
            let rows = args.rows.clone().unwrap_or_else(|| rows_path(&args.plan));
            sweep
                .finish(&rows, jobs(args.jobs), &mut Progress::on_terminal())
                .map_err(hint::of_conversion)?;
        }
    }
    let finished = sweep
        .finished()
        .map(|run| Shown { keys: keys(&run.spec), results: table::flattened(&run.result) })
        .collect::<Vec<_>>();
    let table = show(args, invocation.provenance(), &plan, &finished)?;
    output::write(&args.output.target, |out| match args.output.format {
        RowsFormat::Printed(format) => {
            format.exporter().export(&table, out)?;
            // CSV and JSON contain one table, with a row for every run.
            for question in
                plan.questions.iter().filter(|_| matches!(format, Format::Table | Format::Markdown))
            {
                let answer = figure::table(question, &finished);
                let answer = answer.with_context(|| args.plan.display().to_string())?;
                writeln!(out)?;
                format.exporter().export(&answer, out)?;
            }
            Ok(())
        }
        RowsFormat::Columnar(format) => format.write_runs(sweep.finished(), out),
    })
}

/// With `--svg`, draws a figure for each question of the plan. With `--html`, writes a page. Returns a table
/// with a row for each run.
fn show(args: &SweepArgs, mut provenance: Provenance, plan: &Plan, finished: &[Shown]) -> Result<Table> {
    provenance.policies = distinct(finished, "policy");
    provenance.machine = distinct(finished, "machine").join(", ");
    let mut table = table::table(&plan.title, finished);
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
    Ok(table.with_provenance(provenance))
}

/// The file into which a question's figure is drawn.
fn drawing(directory: &Path, question: &Question) -> PathBuf {
    directory.join(format!("{}.svg", question.file))
}

/// The different values of a key, in the order of the runs.
fn distinct(finished: &[Shown], key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for run in finished {
        let value = run.keys.get(key).map(table::text);
        values.extend(value.filter(|value| !values.contains(value)));
    }
    values
}
