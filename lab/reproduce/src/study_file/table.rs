//! Makes an experiment from a table of a study's file.

use std::ops::Range;

use anyhow::{Context as _, Error, Result};
use pageset_report::comparison::{Band, Quantity};
use toml::Spanned;

use super::files::Files;
use super::form::{ColumnForm, ComparedForm, FitForm, StudyForm, TableForm};
use super::lines::{Condition, column};
use super::mistake::{At as _, mistake};
use super::rows::Rows;
use crate::published::Published;
use crate::simulated::{Borrowed, Case, Compared, Experiment, Fit, Fitted};

/// One table of a study's file. `form` includes the keys that the table shares with other tables.
pub(super) struct Table<'a> {
    pub(super) files: &'a Files,
    pub(super) study: &'a StudyForm,
    /// The table's keys, and the table's position in the file.
    pub(super) form: Spanned<TableForm>,
}

/// The columns of a table, in the order of the file.
pub(super) type Columns = [Spanned<ColumnForm>];

impl<'a> Table<'a> {
    /// Returns all tables of a study, from top to bottom.
    pub(super) fn all(files: &'a Files, study: &'a StudyForm) -> Vec<Self> {
        let tables = study.tables.iter().flat_map(|shared| {
            let each = shared.get_ref().each.iter();
            let own = each.map(|own| Spanned::new(own.span(), own.get_ref().over(shared.get_ref())));
            let own: Vec<_> = own.collect();
            if own.is_empty() { vec![shared.clone()] } else { own }
        });
        tables.map(|form| Self { files, study, form }).collect()
    }

    /// Whether a quick run includes the table.
    pub(super) fn is_quick(&self) -> bool {
        self.form.get_ref().is_quick.unwrap_or(true)
    }

    /// Makes an error about the whole table, with the table's position in the file.
    pub(super) fn mistake(&self, problem: &str) -> Error {
        mistake(&self.form, problem)
    }

    /// Returns the position of the key `run` in the file, which describes the simulations of the table's
    /// rows.
    pub(super) fn run_span(&self) -> Range<usize> {
        self.form.get_ref().run.as_ref().map_or_else(|| self.form.span(), Spanned::span)
    }

    /// Makes the experiment.
    pub(super) fn experiment(&self, is_quick: bool) -> Result<Experiment> {
        let form = self.form.get_ref();
        let id = form.id.clone();
        let id = id.ok_or_else(|| self.mistake("this table has no `id`: give it a name of its own"))?;
        let title = form.title.clone().unwrap_or_else(|| id.clone());
        let csv = self.csv()?;
        let columns = form.columns.as_deref().filter(|columns| !columns.is_empty());
        let columns =
            columns.ok_or_else(|| self.mistake("this table has no `columns`: write at least one"))?;
        let lines = Condition::default().and(&csv, &form.only)?;
        let quantities = columns.iter().map(|column| Ok((quantity(column, &csv, &lines)?, compared(column))));
        let quantities = quantities.collect::<Result<Vec<_>>>()?;
        for (index, column) in columns.iter().enumerate() {
            if columns[..index].iter().any(|other| other.get_ref().key == column.get_ref().key) {
                let problem = format!("two columns have the key `{}`: rename one", column.get_ref().key);
                return Err(mistake(column, problem));
            }
        }
        let cases = Rows { table: self, csv: &csv, columns, lines }.cases(is_quick)?;
        Ok(Experiment {
            id,
            title,
            columns: quantities,
            group: form.group.clone(),
            withdrawn: form.withdrawn.clone(),
            fits: self.fits(columns, &cases)?,
            borrowed: borrowed(form, &cases),
            cases,
        })
    }

    /// Reads the table's published values and corrects misprints.
    fn csv(&self) -> Result<Published> {
        let name = self.form.get_ref().csv.as_ref();
        let name =
            name.ok_or_else(|| self.mistake("this table has no `csv`: name the file of its values"))?;
        let text = self.files.read(name.get_ref()).map_err(|error| {
            mistake(name, format!("{error:#}: put the published values beside the study's file"))
        })?;
        let mut csv = Published::parse(self.files.beside(name.get_ref()), &text)?;
        for correction in &self.study.corrections {
            let form = correction.get_ref();
            if form.csv == *name.get_ref() && csv.correct(&form.column, &form.printed, &form.meant) == 0 {
                let problem =
                    format!("no line of {} has `{}` in `{}`", csv.file(), form.printed, form.column);
                return Err(mistake(correction, format!("{problem}: leave the correction out")));
            }
        }
        Ok(csv)
    }

    /// Checks the parameters that rows of a user's study take from other tables. Each of these tables must
    /// belong to this study, or must have a fitted value of the parameter.
    pub(super) fn check_borrowed(&self, own: &Experiment, all: &[Experiment], fitted: &Fitted) -> Result<()> {
        for Borrowed { parameter, table, row, .. } in &own.borrowed {
            let is_known = all.iter().any(|other| other.id == *table);
            if is_known || fitted.get(table, row, parameter).is_some() {
                continue;
            }
            let mut borrows = self.form.get_ref().borrows.iter().flatten();
            let borrow = borrows.find(|borrow| borrow.get_ref().parameters.contains(parameter));
            let problem = format!("no `{parameter}` was chosen on row `{row}` of a table `{table}`");
            let problem =
                format!("{problem}: name a table of this study, or one that studies/fitted.toml has");
            return Err(borrow.map_or_else(|| self.mistake(&problem), |borrow| mistake(borrow, &problem)));
        }
        Ok(())
    }

    /// Returns the parameters that are fitted on base rows. Leaves out base rows without a published value
    /// above 0.
    fn fits(&self, columns: &Columns, cases: &[Case]) -> Result<Vec<Fit>> {
        let mut fits = Vec::new();
        for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.base.is_none()) {
            for fit in self.form.get_ref().fits.iter().flatten() {
                let FitForm { parameter, range, column, rises, target } = fit.get_ref();
                if range.0 >= range.1 {
                    return Err(mistake(fit, "`range` is empty: the smaller value comes first"));
                }
                if self.files.is_users() {
                    let mut run = case.run.clone();
                    run.settings.insert(parameter.clone(), range.0);
                    run.check().at(fit)?;
                }
                let column = index_of(columns, column)?;
                if case.published[column].is_some_and(|value| value > 0.0) {
                    let (parameter, range, target) = (parameter.clone(), *range, *target);
                    fits.push(Fit { case: index, parameter, range, column, target, rises: *rises });
                }
            }
        }
        Ok(fits)
    }
}

fn quantity(form: &Spanned<ColumnForm>, csv: &Published, lines: &Condition) -> Result<Quantity> {
    let ColumnForm { key, heading, unit, decimals, is_share, variation, only, .. } = form.get_ref();
    let mut quantity = match is_share {
        true if unit.is_empty() => Quantity::share(key, heading, *decimals),
        true => return Err(mistake(form, "a share is in %: leave `unit` out")),
        false => Quantity::relative(key, heading, unit, *decimals),
    };
    if let Some(name) = variation {
        let line = lines.clone().and(csv, only)?.line(csv).at(form)?;
        let percent = line.number(column(csv, name)?)?;
        let percent = percent.with_context(|| format!("`{}` is empty there", name.get_ref())).at(name)?;
        // A change is computed from two values, and both values vary.
        quantity.band = Band::Percent(percent * std::f64::consts::SQRT_2);
    }
    Ok(quantity)
}

fn compared(form: &Spanned<ColumnForm>) -> Compared {
    let form = form.get_ref();
    let compared = match form.compared {
        ComparedForm::AsIs => Compared::AsIs,
        ComparedForm::PercentOfBase => Compared::PercentOfBase,
        ComparedForm::PerWorkPercentOfBase => Compared::PerWorkPercentOfBase,
        ComparedForm::ScaledToBase => Compared::ScaledToBase,
    };
    compared(form.metric)
}

/// Returns the index of the column that has the given key.
pub(super) fn index_of(columns: &Columns, key: &Spanned<String>) -> Result<usize> {
    let found = columns.iter().position(|column| column.get_ref().key == *key.get_ref());
    found.ok_or_else(|| {
        let keys: Vec<_> = columns.iter().map(|column| column.get_ref().key.as_str()).collect();
        mistake(key, format!("no column has the key `{}`; use {}", key.get_ref(), keys.join(", ")))
    })
}

/// Returns the parameters that rows take from other tables.
fn borrowed(form: &TableForm, cases: &[Case]) -> Vec<Borrowed> {
    let mut borrowed = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let base = case.base.map_or(case, |base| &cases[base]);
        for borrow in form.borrows.iter().flatten().map(Spanned::get_ref) {
            let row = borrow.row.as_ref().unwrap_or(&base.name);
            let table = borrow.table.replace("{machine}", &case.run.machine);
            borrowed.extend(borrow.parameters.iter().map(|parameter| Borrowed {
                case: index,
                parameter: parameter.clone(),
                table: table.clone(),
                row: row.clone(),
            }));
        }
    }
    borrowed
}
