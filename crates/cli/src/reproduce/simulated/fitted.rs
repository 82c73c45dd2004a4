//! Parameters that were chosen so that a base row comes out as published.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::output;
use crate::simulate::RunSpec;

/// The file in the sources.
const BUNDLED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/fitted.toml"));

const HEADER: &str = "\
# Parameters chosen on the base rows of published tables, by bisection. Everything else is a prediction.
# Written by `pageset reproduce STUDY --fit studies/fitted.toml`, for one study at a time.
";

/// All fitted parameters, of all studies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fitted {
    #[serde(default, rename = "fit")]
    values: Vec<FittedValue>,
}

/// One fitted parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FittedValue {
    /// The table and its base row.
    pub(crate) table: String,
    pub(crate) row: String,
    /// The workload's parameter and its value.
    pub(crate) parameter: String,
    pub(crate) value: u64,
    /// The column that was to be met, what is published there, and what is reached.
    pub(crate) column: String,
    pub(crate) published: f64,
    pub(crate) reached: f64,
}

impl Fitted {
    /// Those that are built in.
    pub(crate) fn bundled() -> Result<Self> {
        toml::from_str(BUNDLED).context("studies/fitted.toml")
    }

    /// Those of a file that is being written, if it exists; else those that are built in.
    pub(crate) fn current(file: Option<&Path>) -> Result<Self> {
        match file.filter(|path| path.exists()) {
            None => Self::bundled(),
            Some(path) => {
                let name = || format!("{}: these are no fitted parameters", path.display());
                toml::from_str(&std::fs::read_to_string(path).with_context(name)?).with_context(name)
            }
        }
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{HEADER}\n{}", toml::to_string(self)?);
        output::write(Some(path), |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// The value of a parameter, if it was fitted on a row of a table.
    pub(crate) fn get(&self, table: &str, row: &str, parameter: &str) -> Option<u64> {
        self.find(table, row, parameter).map(|fitted| fitted.value)
    }

    fn find(&self, table: &str, row: &str, parameter: &str) -> Option<&FittedValue> {
        let is_it = |fitted: &&FittedValue| {
            fitted.table == table && fitted.row == row && fitted.parameter == parameter
        };
        self.values.iter().find(is_it)
    }

    /// Adds a value, in place of an older one.
    pub(crate) fn insert(&mut self, value: FittedValue) {
        let is_same = |other: &FittedValue| {
            (&other.table, &other.row, &other.parameter) == (&value.table, &value.row, &value.parameter)
        };
        match self.values.iter_mut().find(|other| is_same(other)) {
            Some(other) => *other = value,
            None => self.values.push(value),
        }
    }

    /// The experiment with its fitted parameters set.
    pub(crate) fn applied(&self, experiment: &Experiment) -> Experiment {
        let mut applied = experiment.clone();
        for fit in &experiment.fits {
            let row = &experiment.cases[fit.case].name;
            let Some(value) = self.get(&experiment.id, row, fit.parameter) else { continue };
            let cases = applied.cases.iter_mut().enumerate();
            for (_, case) in cases.filter(|(at, case)| *at == fit.case || case.base == Some(fit.case)) {
                set(&mut case.run, fit.parameter, value);
            }
        }
        applied
    }

    /// What the reader of a table has to know.
    pub(super) fn sentences(&self, experiment: &Experiment) -> Vec<String> {
        let sentence = |fit: &super::Fit| {
            let row = &experiment.cases[fit.case].name;
            let Some(fitted) = self.find(&experiment.id, row, fit.parameter) else {
                return format!("{} has its default: nothing was fitted", fit.parameter);
            };
            let FittedValue { parameter, value, column, published, reached, .. } = fitted;
            format!(
                "{parameter} = {value}, on {column} of row {row}: published {published}, reached {reached:.1}"
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
