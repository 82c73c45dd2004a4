//! The description of a published table for the simulation: rows, columns and fitted parameters.

use pageset_report::comparison::Quantity;
use pageset_study::simulate::RunSpec;
use serde::Deserialize;

use crate::metric::Metric;

/// A published table, and the simulations that should reproduce it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experiment {
    /// The table's name in JSON, and in the file of fitted parameters.
    pub(crate) id: String,
    /// The table's title.
    pub(crate) title: String,
    /// The columns, each with the simulated figure that is compared with it.
    pub(crate) columns: Vec<(Quantity, Compared)>,
    /// Name of the group of tables that are judged together. Default: all tables of the study form one group.
    pub(crate) group: Option<String>,
    /// A text that says how the author withdrew the table. `None` if the author has not withdrawn the table.
    pub(crate) withdrawn: Option<String>,
    /// The rows, from top to bottom. The first row is a base row.
    pub(crate) cases: Vec<Case>,
    /// The parameters that are chosen to make base rows agree with published values.
    pub(crate) fits: Vec<Fit>,
    /// The parameters whose values were fitted on rows of other tables.
    pub(crate) borrowed: Vec<Borrowed>,
}

/// One row of a table, and its simulation.
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

/// The figure of a row's simulation that is compared with the published value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The metric's value.
    AsIs(Metric),
    /// The metric's value, in percent of the base row's value.
    PercentOfBase(Metric),
    /// The metric's value for each unit of work, in percent of the base row's value for each unit of work.
    PerWorkPercentOfBase(Metric),
    /// The metric's value, multiplied by the factor that gives the base row its published value.
    /// `ScaledToBase` is for columns with a published unit that differs from the simulated unit.
    ScaledToBase(Metric),
}

impl Compared {
    /// Returns the metric whose value is compared.
    pub(crate) fn metric(self) -> Metric {
        match self {
            Self::AsIs(metric)
            | Self::PercentOfBase(metric)
            | Self::PerWorkPercentOfBase(metric)
            | Self::ScaledToBase(metric) => metric,
        }
    }
}

/// A parameter of a workload that is chosen so that a simulated value of a base row equals its published
/// value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Index of the base row. All rows that are compared with this base row use the chosen value too.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The smallest and the largest value of the parameter that the search tries.
    pub(crate) range: (u64, u64),
    /// Index of the column whose published value is the target.
    pub(crate) column: usize,
    /// The simulated quantity that must equal the published quantity.
    pub(crate) target: FitTarget,
    /// Whether the simulated value rises when the parameter rises. If `rises` is false, the simulated value
    /// falls.
    pub(crate) rises: bool,
}

/// The simulated quantity that must equal the published quantity when a fit chooses a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FitTarget {
    /// The row's value.
    #[default]
    Value,
    /// The row's value in percent of the value of the row's *lender*. The lender is a row of another table
    /// that this row takes parameters from.
    PercentOfLender,
}

/// A parameter with a value that was fitted on a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Index of the row that uses the fitted value.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: String,
    /// The table that the value was fitted on. `row` is the base row of this table.
    pub(crate) table: String,
    pub(crate) row: String,
}
