//! A published table, described as simulations: rows, columns and chosen parameters.

use pageset_report::comparison::Quantity;
use serde::Deserialize;

use crate::metric::Metric;
use crate::simulate::RunSpec;

/// One published table, to be simulated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experiment {
    /// Name in JSON, and in the file of fitted parameters.
    pub(crate) id: String,
    /// The table's title.
    pub(crate) title: String,
    /// The columns, each with the result that it is compared with.
    pub(crate) columns: Vec<(Quantity, Compared)>,
    /// Name of the group of tables that the table is scored with. Default: the whole study.
    pub(crate) group: Option<String>,
    /// How the author has withdrawn the table, if the author has.
    pub(crate) withdrawn: Option<String>,
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
    /// The published standard deviation of this row's values, in percent.
    pub(crate) variation_percent: Option<f64>,
}

/// How the results of a row's simulation are compared with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The result itself.
    AsIs(Metric),
    /// The result, in percent of the base row's result.
    PercentOfBase(Metric),
    /// The result for each unit of work, in percent of the base row's.
    PerWorkPercentOfBase(Metric),
    /// The result, scaled so that the base row has its published value. Used if our unit differs from the
    /// published one.
    ScaledToBase(Metric),
}

impl Compared {
    /// The result that is compared.
    pub(crate) fn metric(self) -> Metric {
        match self {
            Self::AsIs(metric)
            | Self::PercentOfBase(metric)
            | Self::PerWorkPercentOfBase(metric)
            | Self::ScaledToBase(metric) => metric,
        }
    }
}

/// A parameter of a workload, chosen so that one result of a base row equals the published one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The base row. The value is used in all rows that are compared with it.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// Smallest and largest value that is tried.
    pub(crate) range: (u64, u64),
    /// The column with the target value.
    pub(crate) column: usize,
    /// The quantity that must equal the published one.
    pub(crate) target: FitTarget,
    /// Whether the result rises with the parameter. Otherwise it falls.
    pub(crate) rises: bool,
}

/// The quantity that must equal the published one when a parameter is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FitTarget {
    /// The value.
    #[default]
    Value,
    /// The value in percent of another row's value: the row that this row borrows its other parameters from.
    PercentOfLender,
}

/// A parameter of one row whose value was chosen on a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// The row that takes the value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The table that chose the value, and that table's base row.
    pub(crate) table: String,
    pub(crate) row: String,
}
