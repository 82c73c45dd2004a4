//! Studies that are files: simulations are TOML (`form`), published values are CSV, and notes are Markdown
//! (`super::prose`). A user's study is the same three files.
//!
//! `files` finds them. `table` makes an experiment of each table, `rows` its rows, and `lines` finds the line
//! of the CSV that has a value. A `mistake` is told with its place and a remedy. `copies` and `memory` are
//! further tables of a study.

mod copies;
mod files;
mod form;
mod lines;
mod memory;
mod mistake;
mod rows;
mod table;

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_report::comparison::Comparison;
use pageset_report::plot::{Axis, Figure, Mark};
use toml::Spanned;

use super::prose::{COPIES, EXPLANATIONS, MEMORY, NOTES, Prose, QUICK};
use super::simulated::{self, Experiment, Fitted, Panels, changes};
use super::study::{Findings, Options, Study};
use files::Files;
use form::{FigureForm, MarkForm, More, ScaleForm, StudyForm};
use mistake::Mistake;
use table::Table;

/// A study that is described by files.
#[derive(Debug)]
pub struct StudyFile {
    files: Files,
    form: StudyForm,
    prose: Prose,
    /// Names of the figures' files.
    figures: Vec<String>,
}

impl StudyFile {
    /// The studies that are built in.
    pub(super) fn bundled() -> impl Iterator<Item = Self> {
        Files::bundled().map(|files| Self::new(files).expect("a test reads every study"))
    }

    /// Reads a user's study. The published values and the Markdown are beside the file.
    ///
    /// # Errors
    ///
    /// Fails if one of the files is missing or has a mistake. The error has file, line and a remedy.
    pub fn read(path: &Path) -> Result<Self> {
        let study = Self::new(Files::open(path)?)?;
        study.check()?;
        Ok(study)
    }

    /// A study whose file has this text, beside small files of ours.
    pub(crate) fn fuzzed(text: &str) -> Result<Self> {
        let study = Self::new(Files::fuzzed(text))?;
        study.check()?;
        Ok(study)
    }

    /// Checks that all tables can be made, of a quick run and of a full one.
    pub(crate) fn check(&self) -> Result<()> {
        self.experiments(true).and_then(|_| self.experiments(false)).map(drop)
    }

    fn new(files: Files) -> Result<Self> {
        let form: StudyForm = toml::from_str(&files.text).map_err(|error| {
            let problem = error.message().trim().replace('\n', "; ");
            Mistake::At(error.span().unwrap_or_default(), problem).placed(&files.shown(), &files.text)
        })?;
        let markdown = format!("{}.md", files.name);
        let text = files
            .read(&markdown)
            .with_context(|| format!("put notes there, below the headings `{NOTES}` and `{EXPLANATIONS}`"))?;
        let prose = Prose::parse(&files.beside(&markdown).display().to_string(), &text)?;
        let figures = form.figures.iter().map(|figure| match &figure.get_ref().part {
            None => files.name.clone(),
            Some(part) => format!("{}-{part}", files.name),
        });
        Ok(Self { figures: figures.collect(), files, form, prose })
    }

    /// The tables as experiments.
    pub(super) fn experiments(&self, is_quick: bool) -> Result<Vec<Experiment>> {
        self.made(is_quick).map_err(|mistake| mistake.placed(&self.files.shown(), &self.files.text))
    }

    fn made(&self, is_quick: bool) -> mistake::Result<Vec<Experiment>> {
        for each in self.form.tables.iter().flat_map(|shared| &shared.get_ref().each) {
            if !each.get_ref().each.is_empty() {
                return Err(Mistake::at(
                    each,
                    "a table of `each` has an `each` of its own: write [[tables]] twice",
                ));
            }
        }
        let mut experiments: Vec<Experiment> = Vec::new();
        let tables = Table::all(&self.files, &self.form);
        for table in &tables {
            if is_quick && !table.is_quick() {
                continue;
            }
            let experiment = table.experiment(is_quick)?;
            if experiments.iter().any(|other| other.id == experiment.id) {
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

    /// Checks that figures and further tables show tables and columns that there are.
    fn check_shown(&self, experiments: &[Experiment]) -> mistake::Result<()> {
        let copied = self.form.copies.iter().map(|form| &form.get_ref().table);
        let drawn = self.form.figures.iter().flat_map(|figure| &figure.get_ref().columns);
        let shown = self.form.copies.iter().flat_map(|form| &form.get_ref().columns);
        for key in drawn.chain(shown) {
            let mut columns = experiments.iter().flat_map(|experiment| &experiment.columns);
            if !columns.any(|(quantity, _)| quantity.key == *key.get_ref()) {
                return Err(Mistake::at(key, format!("no column has the key `{}`", key.get_ref())));
            }
        }
        for id in copied.chain(self.form.used_memory.iter().map(|form| &form.get_ref().table)) {
            if index(experiments, id.get_ref()).is_none() {
                return Err(Mistake::at(id, format!("no table has the id `{}`", id.get_ref())));
            }
        }
        for (index, written) in self.form.figures.iter().enumerate() {
            if self.figures[..index].contains(&self.figures[index]) {
                return Err(Mistake::at(written, "two figures have one name: give one a `part` of its own"));
            }
            let figure = written.get_ref();
            if !figure.part.iter().all(|part| files::is_name(part)) {
                return Err(Mistake::at(written, "`part` has small letters, digits and - only"));
            }
            for id in figure.tables.iter().flatten() {
                if experiments.iter().all(|experiment| experiment.id != *id.get_ref()) {
                    return Err(Mistake::at(id, format!("no table has the id `{}`", id.get_ref())));
                }
            }
        }
        Ok(())
    }

    /// The parameters that were chosen. A user's study adds the parameters of the file `fitted.toml` beside it.
    fn fitted(&self) -> Result<Fitted> {
        let mut fitted = Fitted::bundled()?;
        let own = self.files.beside("fitted.toml");
        if self.files.is_users() && own.exists() {
            fitted.extend(Fitted::read(&own)?);
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
            mark: match figure.mark {
                MarkForm::Bars => Mark::Bars,
                MarkForm::Points => Mark::Points,
                MarkForm::Line => Mark::Line,
            },
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
        let mut more: Vec<_> =
            self.form.more.iter().map(|More::Changes| changes(&simulated.tables)).collect();
        if let Some((_, of)) = copied {
            // The copies' results are no further table of the text.
            let table = simulated.tables.pop().context("copies are the last")?;
            let drains = copies::base_drains(&simulated, [experiments.len() - 1, of]);
            more.push(copies::table(&table, &simulated.tables[of], drains, self.prose.below(COPIES)));
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

/// The number of the experiment with this id.
fn index(experiments: &[Experiment], id: &str) -> Option<usize> {
    experiments.iter().position(|experiment| experiment.id == id)
}

/// The texts, each where it occurs first.
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
