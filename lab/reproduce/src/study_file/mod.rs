//! Studies that files describe: one TOML file has the simulations (`form`), CSV files have the published
//! values, and one Markdown file has the notes (`super::prose`). A user's own study consists of the same
//! kinds of files.
//!
//! `files` finds and reads the files. `table` makes an experiment from each table, and `rows` makes the rows
//! of an experiment. `lines` finds the CSV line of a value. `mistake` makes errors that name a position in
//! the file and a remedy. `choice`, `copies` and `memory` make further tables.

mod choice;
mod copies;
mod files;
mod form;
mod lines;
mod memory;
mod mistake;
mod rows;
mod table;

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use pageset_report::Progress;
use pageset_report::comparison::Comparison;
use pageset_report::plot::{Axis, Figure};
use toml::Spanned;

use super::prose::{COPIES, EXPLANATIONS, MEMORY, NOTES, Prose, QUICK};
use super::simulated::{self, Experiment, Fitted, Panels, changes, variability};
use super::study::{Findings, Options, Study};
use files::Files;
use form::{FigureForm, More, ScaleForm, StudyForm};
use mistake::{mistake, placed};
use table::Table;

/// A study that files describe.
#[derive(Debug)]
pub struct StudyFile {
    files: Files,
    form: StudyForm,
    prose: Prose,
    /// File names of the study's figures, without extension.
    figures: Vec<String>,
}

impl StudyFile {
    /// Returns the built-in studies.
    pub(super) fn bundled() -> impl Iterator<Item = Self> {
        Files::bundled().map(|files| Self::new(files).expect("a test reads every study"))
    }

    /// Reads a user's study from its TOML file. The published values and the notes must be in the same
    /// directory.
    ///
    /// # Errors
    ///
    /// Fails if one of the files is missing or has a mistake. The error names the file and a remedy, and if a
    /// text is wrong, its line.
    pub fn read(path: &Path) -> Result<Self> {
        let study = Self::new(Files::open(path)?)?;
        study.check()?;
        Ok(study)
    }

    /// Makes a study with the text `text` in its TOML file. The published values and the notes are small
    /// examples.
    pub(crate) fn fuzzed(text: &str) -> Result<Self> {
        let study = Self::new(Files::fuzzed(text))?;
        study.check()?;
        Ok(study)
    }

    /// Checks that all tables of a quick run and of a full run can be made.
    pub(crate) fn check(&self) -> Result<()> {
        self.experiments(true).and_then(|_| self.experiments(false)).map(drop)
    }

    fn new(files: Files) -> Result<Self> {
        let form: StudyForm = toml::from_str(&files.text).map_err(|error| {
            let problem = error.message().trim().replace('\n', "; ");
            let written = Spanned::new(error.span().unwrap_or_default(), ());
            placed(mistake(&written, problem), &files.shown(), &files.text)
        })?;
        let markdown = format!("{}.md", files.name);
        let text = files.read(&markdown).map_err(|error| {
            anyhow!("{error:#}; put notes there, below the headings `{NOTES}` and `{EXPLANATIONS}`")
        })?;
        let prose = Prose::parse(&files.beside(&markdown), &text)?;
        let figures = form.figures.iter().map(|figure| match &figure.get_ref().part {
            None => files.name.clone(),
            Some(part) => format!("{}-{part}", files.name),
        });
        Ok(Self { figures: figures.collect(), files, form, prose })
    }

    /// Makes an experiment from each table.
    pub(super) fn experiments(&self, is_quick: bool) -> Result<Vec<Experiment>> {
        self.made(is_quick).map_err(|error| placed(error, &self.files.shown(), &self.files.text))
    }

    fn made(&self, is_quick: bool) -> Result<Vec<Experiment>> {
        for each in self.form.tables.iter().flat_map(|shared| &shared.get_ref().each) {
            if !each.get_ref().each.is_empty() {
                let problem = "a table of `each` has an `each` of its own: write [[tables]] twice";
                return Err(mistake(each, problem));
            }
        }
        let mut experiments: Vec<Experiment> = Vec::new();
        let tables = Table::all(&self.files, &self.form);
        for table in tables.iter().filter(|table| !is_quick || table.is_quick()) {
            let experiment = table.experiment(is_quick)?;
            if index(&experiments, &experiment.id).is_some() {
                return Err(table.mistake("two tables have this `id`: rename one"));
            }
            experiments.push(experiment);
        }
        if !is_quick {
            self.check_shown(&experiments)?;
            if self.files.is_users() {
                let fitted = self.fitted()?;
                for (table, experiment) in tables.iter().zip(&experiments) {
                    table.check_borrowed(experiment, &experiments, &fitted)?;
                }
            }
        }
        Ok(experiments)
    }

    /// Checks that the tables and columns that figures and further tables name exist.
    fn check_shown(&self, experiments: &[Experiment]) -> Result<()> {
        let figures = || self.form.figures.iter().map(Spanned::get_ref);
        let copies = || self.form.copies.iter().map(Spanned::get_ref);
        let memory = self.form.used_memory.iter().map(Spanned::get_ref);
        let columns = || experiments.iter().flat_map(|experiment| &experiment.columns);
        let drawn = figures().flat_map(|figure| &figure.columns);
        let chosen = || self.form.choice.iter().flat_map(|form| &form.get_ref().columns);
        for key in chosen() {
            for (_, compared) in columns().filter(|(quantity, _)| quantity.key == *key.get_ref()) {
                if compared.metric().better().is_none() {
                    let problem =
                        format!("`{}` is neither a score nor a time: no row is its best", key.get_ref());
                    return Err(mistake(key, problem));
                }
            }
        }
        for key in drawn.chain(copies().flat_map(|copies| &copies.columns)).chain(chosen()) {
            if !columns().any(|(quantity, _)| quantity.key == *key.get_ref()) {
                return Err(mistake(key, format!("no column has the key `{}`", key.get_ref())));
            }
        }
        let drawn = figures().flat_map(|figure| figure.tables.iter().flatten());
        for id in drawn.chain(copies().map(|copies| &copies.table)).chain(memory.map(|memory| &memory.table))
        {
            if index(experiments, id.get_ref()).is_none() {
                return Err(mistake(id, format!("no table has the id `{}`", id.get_ref())));
            }
        }
        for (index, figure) in self.form.figures.iter().enumerate() {
            if self.figures[..index].contains(&self.figures[index]) {
                return Err(mistake(figure, "two figures have one name: give one a `part` of its own"));
            }
        }
        Ok(())
    }

    /// Returns the fitted parameters: the built-in parameters, and the parameters in the file `fitted.toml`
    /// beside a user's study.
    fn fitted(&self) -> Result<Fitted> {
        let mut fitted = Fitted::bundled()?;
        let own = self.files.beside("fitted.toml");
        if self.files.is_users() && Path::new(&own).exists() {
            fitted.extend(Fitted::read(Path::new(&own))?);
        }
        Ok(fitted)
    }

    fn draw(&self, figure: &FigureForm, tables: &[Comparison]) -> Figure {
        let is_drawn = |table: &&Comparison| match &figure.tables {
            Some(ids) => ids.iter().any(|id| id.get_ref() == table.id()),
            None => true,
        };
        let drawn: Vec<_> = tables.iter().filter(is_drawn).cloned().collect();
        let rows = drawn.first().into_iter().flat_map(Comparison::row_names);
        let panels = Panels {
            title: &figure.title,
            axis: match figure.scale {
                ScaleForm::Names => Axis::categories(&figure.rows, rows),
                ScaleForm::Linear => Axis::linear(&figure.rows, &figure.unit),
                ScaleForm::Log => Axis::log(&figure.rows, &figure.unit),
            },
            mark: figure.mark,
            columns: &figure.columns.iter().map(|key| key.get_ref().as_str()).collect::<Vec<_>>(),
        };
        panels.draw(&drawn)
    }
}

impl Study for StudyFile {
    fn name(&self) -> &str {
        &self.files.name
    }

    fn summary(&self) -> &str {
        &self.form.summary
    }

    fn figures(&self) -> Vec<&str> {
        self.figures.iter().map(String::as_str).collect()
    }

    fn has_parameters(&self) -> bool {
        Table::all(&self.files, &self.form).iter().any(|table| table.form.get_ref().fits.is_some())
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let all = self.experiments(false)?;
        let mut experiments = if options.is_quick { self.experiments(true)? } else { all.clone() };
        let copied = self.form.copies.as_ref().filter(|_| !options.is_quick).map(Spanned::get_ref);
        let copied = copied.and_then(|form| Some((form, index(&experiments, form.table.get_ref())?)));
        if let Some((form, of)) = copied {
            experiments.push(copies::experiment(form, &experiments[of]));
        }
        let fitted = simulated::fitted(&experiments, self.fitted()?, options, progress)?;
        let mut simulated = simulated::run(&experiments, &fitted, options, progress)?;
        let further = self.form.more.iter().map(|kind| match kind {
            More::Changes => changes(&simulated.tables),
            More::Variability => variability(&simulated.tables),
        });
        let mut more: Vec<_> = further.collect();
        if let Some((_, of)) = copied {
            // `run` removes the comparison of the copies from the published tables, because this comparison
            // is not a published table.
            let table = simulated.tables.pop().context("the copies are the last table")?;
            let drains = copies::base_drains(&simulated, [experiments.len() - 1, of]);
            more.push(copies::table(&table, &simulated.tables[of], drains, self.prose.below(COPIES)));
        }
        if let Some(form) = &self.form.choice {
            more.insert(0, choice::table(form.get_ref(), &experiments, &simulated.tables));
        }
        if let Some(form) = self.form.used_memory.as_ref().map(Spanned::get_ref) {
            let of = index(&experiments, form.table.get_ref());
            more.extend(
                of.map(|of| memory::table(form, &experiments[of], of, &simulated, self.prose.below(MEMORY))),
            );
        }
        let runs = || all.iter().flat_map(|experiment| &experiment.cases).map(|case| &case.run);
        let figures = self.figures.iter().zip(&self.form.figures);
        let quick = self.prose.below(QUICK).iter().filter(|_| options.is_quick);
        Ok(Findings {
            figures: figures
                .map(|(name, figure)| (name.clone(), self.draw(figure.get_ref(), &simulated.tables)))
                .collect(),
            more,
            notes: self.prose.below(NOTES).iter().chain(quick).cloned().collect(),
            explanations: simulated.explanations(self.prose.below(EXPLANATIONS), options),
            machine: format!("simulated: {}", distinct(runs().map(|run| &run.machine)).join(", ")),
            policies: distinct(runs().map(|run| &run.policy)),
            tables: simulated.tables,
            timeline: None,
            seeds: Some(options.seeds()),
        })
    }
}

/// Returns the index of the experiment with the id `id`.
fn index(experiments: &[Experiment], id: &str) -> Option<usize> {
    experiments.iter().position(|experiment| experiment.id == id)
}

/// Returns each text once, in the order of first occurrence.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        if !distinct.contains(text) {
            distinct.push(text.clone());
        }
    }
    distinct
}
#[cfg(test)]
mod tests;
