//! The fitted parameters, and the file that holds them. Each parameter was chosen so that a simulated value
//! of a base row equals its published value.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use pageset_replay::file::{self, Existing};
use pageset_study::simulate::RunSpec;
use pageset_trace::read_description;
use serde::{Deserialize, Serialize};

use super::experiment::{Borrowed, Experiment, Fit};

/// The text of the built-in file of fitted parameters.
const BUNDLED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/bundled/fitted.toml"));

/// The fitted parameters of all studies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    #[serde(default, rename = "fit")]
    values: Vec<FittedValue>,
}

/// One fitted parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FittedValue {
    /// The name of the table that the parameter was fitted on. `row` is the name of this table's base row.
    pub(crate) table: String,
    pub(crate) row: String,
    /// The name of the workload's parameter, and the fitted value.
    pub(crate) parameter: String,
    pub(crate) value: u64,
    /// The column that the parameter was fitted on. `published` is the published value, and `reached` is the
    /// simulated value.
    pub(crate) column: String,
    pub(crate) published: f64,
    pub(crate) reached: f64,
}

impl Fitted {
    /// The first lines of a file of fitted parameters.
    pub const HEADING: &str = "\
# Parameters chosen on the base rows of published tables, by bisection. Everything else is a prediction.
# Written by `pageset reproduce STUDY --fit studies/fitted.toml`, for one study at a time.
";

    /// Returns the built-in parameters.
    pub fn bundled() -> Result<Self> {
        toml::from_str(BUNDLED).context("studies/fitted.toml")
    }

    /// Reads a file of fitted parameters. Fails unless the file begins with [`Self::HEADING`], as
    /// [`Self::write`] writes it. So a caller that replaces the file afterwards cannot overwrite a file of
    /// another kind.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = || format!("{}: these are not fitted parameters", path.display());
        let text = read_description(path)?;
        Self::parse(&text).with_context(name)
    }

    /// Reads parameters from a text that [`Self::text`] has written.
    pub fn parse(text: &str) -> Result<Self> {
        if !text.starts_with(Self::HEADING) {
            bail!("--fit did not write this file; name a new file, or a file that --fit wrote");
        }
        Ok(toml::from_str(text)?)
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path, existing: Existing) -> Result<()> {
        let text = self.text()?;
        file::write_file(path, existing, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Returns the text of a file with these parameters.
    pub fn text(&self) -> Result<String> {
        Ok(format!("{}\n{}", Self::HEADING, toml::to_string(self)?))
    }

    /// Returns the value of `parameter`, if the parameter was fitted on the row `row` of the table `table`.
    pub(crate) fn get(&self, table: &str, row: &str, parameter: &str) -> Option<u64> {
        self.find(table, row, parameter).map(|fitted| fitted.value)
    }

    fn find(&self, table: &str, row: &str, parameter: &str) -> Option<&FittedValue> {
        let is_it = |fitted: &&FittedValue| {
            fitted.table == table && fitted.row == row && fitted.parameter == parameter
        };
        self.values.iter().find(is_it)
    }

    /// Adds all values of `other`. New values replace older values of the same parameters.
    pub(crate) fn extend(&mut self, other: Self) {
        other.values.into_iter().for_each(|value| self.insert(value));
    }

    /// Adds a value. The new value replaces an older value of the same parameter.
    pub(crate) fn insert(&mut self, value: FittedValue) {
        let is_same = |other: &FittedValue| {
            (&other.table, &other.row, &other.parameter) == (&value.table, &value.row, &value.parameter)
        };
        match self.values.iter_mut().find(|other| is_same(other)) {
            Some(other) => *other = value,
            None => self.values.push(value),
        }
    }

    /// Returns the experiment with all of its fitted parameters set: the parameters that were fitted on its
    /// own rows, and the parameters that it takes from other tables. A run of a study gets its fitted
    /// parameters only from `applied`.
    pub(crate) fn applied(&self, experiment: &Experiment) -> Experiment {
        let mut applied = experiment.clone();
        for fit in &experiment.fits {
            let row = &experiment.cases[fit.case].name;
            let Some(value) = self.get(&experiment.id, row, &fit.parameter) else { continue };
            let cases = applied.cases.iter_mut().enumerate();
            for (_, case) in cases.filter(|(at, case)| *at == fit.case || case.base == Some(fit.case)) {
                set(&mut case.run, &fit.parameter, value);
            }
        }
        for Borrowed { case, parameter, table, row } in &experiment.borrowed {
            if let Some(value) = self.get(table, row, parameter) {
                set(&mut applied.cases[*case].run, parameter, value);
            }
        }
        applied
    }

    /// Makes a note on each fitted parameter for the reader of a table. The note has the published value and
    /// this run's value. This run's value may differ from the simulated value when the parameter was fitted.
    /// `here` returns this run's value in a row and column.
    pub(super) fn sentences(
        &self,
        experiment: &Experiment,
        here: impl Fn(usize, usize) -> Option<f64>,
    ) -> Vec<String> {
        let sentence = |fit: &Fit| {
            let row = &experiment.cases[fit.case].name;
            let Some(fitted) = self.find(&experiment.id, row, &fit.parameter) else {
                return format!("{} has its default: nothing was fitted", fit.parameter);
            };
            let FittedValue { parameter, value, column, published, reached, .. } = fitted;
            let chosen = format!("{parameter} = {value}, on {column} of row {row}: published {published}");
            // The parameter was fitted on a figure that is not a column of the table, so this run has no
            // value of this figure.
            if experiment.columns[fit.column].0.heading != *column {
                return format!("{chosen}, {reached:.1} when it was chosen");
            }
            here(fit.case, fit.column).map_or_else(
                || format!("{chosen}, no value here"),
                |here| format!("{chosen}, {here:.1} here"),
            )
        };
        experiment.fits.iter().map(sentence).collect()
    }
}

/// Sets a parameter of the workload.
pub(crate) fn set(run: &mut RunSpec, parameter: &str, value: u64) {
    run.settings.insert(parameter.to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(row: &str, value: u64) -> FittedValue {
        FittedValue {
            table: "t".to_owned(),
            row: row.to_owned(),
            parameter: "page_ns".to_owned(),
            value,
            column: "zone lock".to_owned(),
            published: 43.6,
            reached: 43.0,
        }
    }

    #[test]
    fn the_bundled_file_is_valid() {
        Fitted::bundled().unwrap();
    }

    #[test]
    fn a_file_of_others_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        for text in ["", "# precious\n", "[[fit]]\n"] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", Fitted::read(&path).unwrap_err());
            assert!(
                error.contains("these are not fitted parameters: --fit did not write this file"),
                "{error}"
            );
        }
        Fitted::bundled().unwrap().write(&path, Existing::Refuse).unwrap_err();
        Fitted::bundled().unwrap().write(&path, Existing::Replace).unwrap();
        assert_eq!(Fitted::read(&path).unwrap(), Fitted::bundled().unwrap());
    }

    #[test]
    fn a_newer_value_replaces_the_older_one() {
        let mut fitted = Fitted::default();
        for (row, number) in [("a", 1), ("b", 2), ("a", 3)] {
            fitted.insert(value(row, number));
        }
        assert_eq!((fitted.get("t", "a", "page_ns"), fitted.get("t", "b", "page_ns")), (Some(3), Some(2)));
        let text = toml::to_string(&fitted).unwrap();
        assert_eq!(toml::from_str::<Fitted>(&text).unwrap(), fitted);
    }
}
