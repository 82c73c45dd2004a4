//! Describes a published table by simulations: rows, columns and fitted parameters.

use pageset_report::comparison::Quantity;
use pageset_study::simulate::RunSpec;
use serde::Deserialize;

use crate::metric::Metric;

/// One published table that is to be simulated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experiment {
    /// Name in JSON, and in the file of fitted parameters.
    pub(crate) id: String,
    /// The table's title.
    pub(crate) title: String,
    /// The columns, each with the simulated figure that is compared with it.
    pub(crate) columns: Vec<(Quantity, Compared)>,
    /// Name of the group of tables that the table is scored with. Default: the whole study.
    pub(crate) group: Option<String>,
    /// A text that says how the author withdrew the table. `None` if the table is not withdrawn.
    pub(crate) withdrawn: Option<String>,
    /// The rows, from top to bottom. The first row is a base row.
    pub(crate) cases: Vec<Case>,
    /// The parameters that are fitted on base rows.
    pub(crate) fits: Vec<Fit>,
    /// The parameters that rows use with values that were fitted on rows of other tables.
    pub(crate) borrowed: Vec<Borrowed>,
}

/// One row of a table that is to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Name of the row.
    pub(crate) name: String,
    /// Index of the base row that this row is compared with. `None` if this row is a base row.
    pub(crate) base: Option<usize>,
    /// The simulation of the row.
    pub(crate) run: RunSpec,
    /// The published values, one for each column.
    pub(crate) published: Vec<Option<f64>>,
    /// The published standard deviation of this row's values, in percent.
    pub(crate) variation_percent: Option<f64>,
}

/// How the results of a row's simulation are compared with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The published value is compared with the metric's value itself.
    AsIs(Metric),
    /// The published value is compared with the metric's value in percent of the base row's value.
    PercentOfBase(Metric),
    /// The published value is compared with the metric's value for each unit of work, in percent of the same
    /// figure of the base row.
    PerWorkPercentOfBase(Metric),
    /// The metric's value, multiplied by the factor that gives the base row its published value. This
    /// comparison is used if the published unit differs from ours.
    ScaledToBase(Metric),
}

impl Compared {
    /// The metric whose value is compared.
    pub(crate) fn metric(self) -> Metric {
        match self {
            Self::AsIs(metric)
            | Self::PercentOfBase(metric)
            | Self::PerWorkPercentOfBase(metric)
            | Self::ScaledToBase(metric) => metric,
        }
    }
}

/// A parameter of a workload, chosen so that one result of a base row equals the published result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Index of the base row. All rows that are compared with this base row use the same value of the
    /// parameter.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The smallest and the largest value of the parameter that the search tries.
    pub(crate) range: (u64, u64),
    /// Index of the column whose published value is the target.
    pub(crate) column: usize,
    /// The quantity that must equal its published value.
    pub(crate) target: FitTarget,
    /// Whether the fitted result rises when the parameter rises. If `rises` is false, the result falls.
    pub(crate) rises: bool,
}

/// The quantity that must equal the published quantity when a parameter is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FitTarget {
    /// The row's value.
    #[default]
    Value,
    /// The row's value in percent of the *lender's* value. The lender is a row of another table whose
    /// parameters this row uses.
    PercentOfLender,
}

/// A parameter that a row uses with the value that was fitted on a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Index of the row that uses the value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The value was fitted on this table and this base row.
    pub(crate) table: String,
    pub(crate) row: String,
}
