//! `pageset sweep`: many simulations from one plan.
//!
//! `args` is what can be typed. `plan` is the file that says what to run, `grid` makes runs of it, `shard` takes a part of
//! them. `rows` keeps what is finished, by the `key` of each run, a hash (`fnv`); `table` and `figure` show it.

mod args;
mod figure;
mod fnv;
mod grid;
mod key;
mod plan;
mod rows;
mod shard;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pageset_report::Provenance;
use serde_json::Value;

use crate::invocation::Invocation;
use crate::progress::Progress;
use crate::simulate::{self, RunSpec};
use crate::{jobs, output};
pub(crate) use args::SweepArgs;
pub(crate) use grid::runs;
use key::Keys;
pub(crate) use plan::Plan;
use plan::Question;
pub(crate) use rows::{Ending, Extent, Rows};
use rows::{FinishedRun, RowsFile};
pub(crate) use shard::Shard;
use table::Shown;

pub(crate) fn run(args: &SweepArgs, invocation: &Invocation) -> Result<()> {
    let plan = Plan::read(&args.plan)?;
    for (directory, question) in
        args.svg.iter().flat_map(|directory| plan.questions.iter().map(move |question| (directory, question)))
    {
        output::check_file(&drawing(directory, question), args.output.target.existing())?;
    }
    let specs = grid::runs(&plan);
    let mut keys = Keys::default();
    let keyed: Vec<_> = specs.into_iter().map(|spec| Ok((keys.of(&spec)?, spec))).collect::<Result<_>>()?;
    let mut rows = Rows::default();
    for path in &args.merge {
        rows.read(path)?;
    }
    if args.merge.is_empty() {
        let mine = keyed.iter().enumerate().filter(|(run, _)| args.shard.is_none_or(|shard| shard.has(*run)));
        let mine: Vec<_> = mine.map(|(_, keyed)| keyed).collect();
        finish(&mine, &mut rows, args)?;
    }
    let (finished, missing) = collect(&keyed, &rows);
    if !args.merge.is_empty() && missing > 0 {
        bail!("{missing} of {} runs are in none of the files: run their parts too", keyed.len());
    }
    show(args, invocation.provenance(), &plan, &finished, missing)
}

/// Runs what is not in the file of rows yet, and adds it there.
fn finish(mine: &[&(String, RunSpec)], rows: &mut Rows, args: &SweepArgs) -> Result<()> {
    let path = args.rows.clone().unwrap_or_else(|| rows_path(&args.plan, args.shard));
    let mut file = RowsFile::open(&path, rows)?;
    let todo: Vec<_> = mine.iter().copied().filter(|(key, _)| rows.get(key).is_none()).collect();
    let mut progress = Progress::new("simulating", "runs", Some(todo.len() as u64));
    let mut done = 0;
    jobs::each(
        &todo,
        jobs::count(args.jobs),
        |(_, spec)| simulate::run(spec),
        |index, result| {
            let (key, spec) = todo[index];
            let result = result.with_context(|| format!("the run {}", grid::canonical(spec)))?;
            let Value::Object(result) = serde_json::to_value(&result)? else {
                bail!("a result is an object")
            };
            let run = FinishedRun { key: key.clone(), spec: spec.clone(), result };
            file.append(&run)?;
            rows.insert(run);
            done += 1;
            progress.update(done);
            Ok(())
        },
    )
}

/// `plan.toml` has its rows in `plan.rows.jsonl`, its second part of four in `plan.2-of-4.rows.jsonl`.
fn rows_path(plan: &Path, shard: Option<Shard>) -> PathBuf {
    let part = shard.map_or_else(String::new, |shard| format!("{}.", shard.to_string().replace('/', "-of-")));
    plan.with_extension(format!("{part}rows.jsonl"))
}

/// Keys and results of the finished runs, in the order of the plan, and how many are missing.
fn collect(keyed: &[(String, RunSpec)], rows: &Rows) -> (Vec<Shown>, usize) {
    let found = keyed.iter().filter_map(|(key, spec)| {
        let run = rows.get(key)?;
        Some(Shown { keys: grid::keys(spec), results: table::flattened(&run.result) })
    });
    let found: Vec<_> = found.collect();
    let missing = keyed.len() - found.len();
    (found, missing)
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
