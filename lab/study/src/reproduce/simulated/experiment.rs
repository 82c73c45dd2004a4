//! A published table as simulations: rows, columns, chosen parameters.

use anyhow::{Context as _, Result};
use pageset_report::comparison::Quantity;

use crate::reproduce::published::Published;
use crate::simulate::{RunResult, RunSpec};

/// One published table, to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// Name in JSON, and in the file of fitted parameters.
    pub(crate) id: String,
    /// The table's title.
    pub(crate) title: String,
    /// The columns, each with the result that it is compared with.
    pub(crate) columns: Vec<(Quantity, Metric)>,
    /// The rows, from top to bottom; the first is a base row.
    pub(crate) cases: Vec<Case>,
    /// Parameters that are chosen on base rows.
    pub(crate) fits: Vec<Fit>,
    /// Parameters whose values were chosen on other tables.
    pub(crate) borrowed: Vec<Borrowed>,
}

/// One row of a table to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Name of the row.
    pub(crate) name: String,
    /// The row that this row is compared with; `None` for a base row.
    pub(crate) base: Option<usize>,
    /// The simulation.
    pub(crate) run: RunSpec,
    /// The published values, one for each column.
    pub(crate) published: Vec<Option<f64>>,
    /// The standard deviation that the text prints of this row's values, in percent.
    pub(crate) variation_percent: Option<f64>,
}

impl Case {
    /// Makes one case for each state of a published table: its name in the column `state`, and the policy of
    /// its simulation. All cases are compared with the first. `printed` are the columns of the values.
    ///
    /// # Errors
    ///
    /// Fails if the table does not have such a row or column.
    pub(crate) fn of_states(
        table: &Published,
        states: &[(&str, &str)],
        printed: &[&str],
        run: &RunSpec,
    ) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for (state, policy) in states {
            let row = table.rows_with("state", state).next().with_context(|| format!("no row {state}"))?;
            let values = printed.iter().map(|column| row.number(column));
            cases.push(Self {
                name: (*state).to_owned(),
                base: (!cases.is_empty()).then_some(0),
                run: RunSpec { policy: (*policy).to_owned(), ..run.clone() },
                published: values.collect::<Result<_>>()?,
                variation_percent: None,
            });
        }
        Ok(cases)
    }
}

/// A figure of a simulation's result.
pub(crate) type Figure = fn(&RunResult) -> f64;

/// The result of a simulation that is compared with a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Metric {
    /// The result itself.
    Result(Figure),
    /// The sum of two results.
    Sum(Figure, Figure),
    /// The result, in percent of the base row's result.
    OfBase(Figure),
    /// The result for each unit of work, in percent of the base row's.
    PerWorkOfBase(Figure),
    /// The result, scaled so that the base row has its published value, because our unit is another.
    Scaled(Figure),
}

impl Metric {
    /// The work done in the same time.
    pub(crate) const SCORE: Self = Self::Scaled(|result| result.score_per_s);
    /// The time for the same work.
    pub(crate) const TIME: Self = Self::Scaled(|result| 1.0 / result.score_per_s);
}

/// A parameter of a workload, chosen so that a result of a base row is as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The base row. The value is used in all rows that are compared with it.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: &'static str,
    /// Smallest and largest value that is tried.
    pub(crate) range: (u64, u64),
    /// The column with the target value.
    pub(crate) column: usize,
    /// Whether the result rises with the parameter. Otherwise it falls.
    pub(crate) rises: bool,
}

/// A parameter of one row whose value was chosen on a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// The row that takes the value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: &'static str,
    /// The table on which the value was chosen, and that table's base row.
    pub(crate) table: String,
    pub(crate) row: String,
}

impl Borrowed {
    /// Makes a borrowed parameter for each of the first `rows` rows. The value was chosen on the row `base`
    /// of another table.
    pub(crate) fn of_base(table: &str, parameter: &'static str, rows: usize) -> Vec<Self> {
        let (table, row) = (table.to_owned(), "base".to_owned());
        (0..rows).map(|case| Self { case, parameter, table: table.clone(), row: row.clone() }).collect()
    }
}
