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
    /// How the author withdrew the table. `None` if the author did not.
    pub(crate) withdrawn: Option<String>,
    /// The rows, from top to bottom; the first is a base row.
    pub(crate) cases: Vec<Case>,
    /// Parameters that are chosen on base rows.
    pub(crate) fits: Vec<Fit>,
    /// Parameters of rows whose values were chosen on rows of other tables.
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
    /// The value of the metric itself.
    AsIs(Metric),
    /// The value, in percent of the base row's value.
    PercentOfBase(Metric),
    /// The value for each unit of work, in percent of the base row's value for each unit.
    PerWorkPercentOfBase(Metric),
    /// The value, scaled so that the base row has its published value. Used if the published unit differs
    /// from ours.
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
    /// The base row. All rows that are compared with it use the same value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// Smallest and largest value that is tried.
    pub(crate) range: (u64, u64),
    /// The column with the target value.
    pub(crate) column: usize,
    /// The quantity that must equal the published one.
    pub(crate) target: FitTarget,
    /// Whether the result rises with the parameter. If `rises` is false, the result falls.
    pub(crate) rises: bool,
}

/// The quantity that must equal the published one when a parameter is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FitTarget {
    /// The value.
    #[default]
    Value,
    /// The value, in percent of the value of another table's row, whose parameters this row uses (the
    /// *lender*).
    PercentOfLender,
}

/// A parameter of one row whose value was chosen on a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// The row that uses the value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The table on which the value was chosen, and that table's base row.
    pub(crate) table: String,
    pub(crate) row: String,
}
