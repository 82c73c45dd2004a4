//! The keys of a study's TOML file.

use std::collections::BTreeMap;

use pageset_report::plot::Mark;
use pageset_sim::TickPhase;
use serde::Deserialize;
use toml::Spanned;

use crate::metric::Metric;
use crate::simulated::FitTarget;
use crate::sweep::{FileName, Several};

/// Allowed texts for each column of a CSV file.
pub(super) type Texts = BTreeMap<String, Several<String>>;

/// A study's TOML file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyForm {
    /// A description of the study in one line.
    pub(super) summary: String,
    /// For each published name of a machine, the machine to simulate.
    #[serde(default)]
    pub(super) machines: BTreeMap<String, String>,
    /// Misprints of the published values, and their corrections.
    #[serde(default, rename = "correction")]
    pub(super) corrections: Vec<Spanned<CorrectionForm>>,
    /// The tables. An entry of `tables` with the key `each` stands for several tables that share keys.
    pub(super) tables: Vec<Spanned<TableForm>>,
    /// The figures that the study draws.
    #[serde(default, rename = "figure")]
    pub(super) figures: Vec<Spanned<FigureForm>>,
    /// The kinds of further tables that are made from the published tables.
    #[serde(default)]
    pub(super) more: Vec<More>,
    /// The further table that helps to choose a row of a published table.
    pub(super) choice: Option<Spanned<ChoiceForm>>,
    /// The published table that is simulated again with copies of a recording.
    pub(super) copies: Option<Spanned<CopiesForm>>,
    /// The table of used memory.
    pub(super) used_memory: Option<Spanned<UsedMemoryForm>>,
}

/// A kind of table that is made from the published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum More {
    /// The size of each change, and whether the published interval covers the simulated change.
    Changes,
    /// The published standard deviation of each row, and the deviation of our seeds.
    Variability,
}

/// A table that helps to choose a row, for example a batch size. The table names the first row that is about
/// as good as the best row, and shows how much worse other rows are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceForm {
    /// Keys of the columns that decide which row is best.
    pub(super) columns: Vec<Spanned<String>>,
    /// Names of the rows whose losses the table shows.
    pub(super) rows: Vec<String>,
}

/// A published table that is simulated again. Copies of a recording run in place of the table's workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CopiesForm {
    pub(super) table: Spanned<String>,
    pub(super) workload: String,
    pub(super) warmup_ms: u64,
    pub(super) duration_ms: u64,
    /// Keys of the columns to compare with the copies.
    pub(super) columns: Vec<Spanned<String>>,
}

/// A table of used memory, on the machine of a published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsedMemoryForm {
    pub(super) table: Spanned<String>,
    /// The published use of memory at the peak, in percent of the base row. `after_percent` is the published
    /// use of memory at the end of the run.
    pub(super) peak_percent: f64,
    pub(super) after_percent: f64,
    pub(super) rows: Vec<String>,
}

/// A misprint of a published value, and its correction.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrectionForm {
    pub(super) csv: String,
    pub(super) column: String,
    pub(super) printed: String,
    pub(super) meant: String,
}

/// The settings of one table. If `each` has entries, each entry is a table, and the other settings apply to
/// all of these tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableForm {
    /// The table's name in JSON and its title.
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    /// Name of the group of tables that are judged together.
    pub(super) group: Option<String>,
    /// A text that says how the author withdrew the table. `None` if the author has not withdrawn the table.
    pub(super) withdrawn: Option<String>,
    /// The file of published values.
    pub(super) csv: Option<Spanned<String>>,
    /// Texts that select the lines of the CSV that belong to this table.
    pub(super) only: Option<Spanned<Texts>>,
    /// Name of the CSV column that has the names of the rows.
    pub(super) named_by: Option<Spanned<String>>,
    /// Name of a CSV column that has a different text in each line. If a table has the key `each_line`, the
    /// table has all rows of its key `rows` once for each line of the CSV.
    pub(super) each_line: Option<Spanned<String>>,
    /// The columns and rows of the table.
    pub(super) columns: Option<Vec<Spanned<ColumnForm>>>,
    pub(super) rows: Option<Vec<Spanned<RowForm>>>,
    /// The keys of the simulation that all rows share.
    pub(super) run: Option<Spanned<RunForm>>,
    /// Settings of the simulation whose values are in the CSV. A key of `from_line` is the name of a setting,
    /// and the value of the key is the name of a CSV column.
    pub(super) from_line: Option<BTreeMap<String, Spanned<String>>>,
    /// The warm-up's length, in rounds of the workload.
    pub(super) warmup: Option<Spanned<WarmupForm>>,
    /// Smallest measured time, summed over all CPUs, in milliseconds.
    pub(super) cpu_ms_min: Option<u64>,
    /// Parameters that a fit chooses on base rows of this table. `borrows` has parameters that rows of this
    /// table take from other tables.
    pub(super) fits: Option<Vec<Spanned<FitForm>>>,
    pub(super) borrows: Option<Vec<Spanned<BorrowForm>>>,
    /// Texts that select the lines of the CSV that have standard deviations.
    pub(super) deviation_line: Option<Spanned<Texts>>,
    /// Whether a quick run includes the table. `quick_rows` names the rows that a quick run includes.
    pub(super) is_quick: Option<bool>,
    pub(super) quick_rows: Option<Spanned<Vec<String>>>,
    /// The tables that share the keys of this entry. An entry of `each` has only the keys that the tables do
    /// not share.
    #[serde(default)]
    pub(super) each: Vec<Spanned<TableForm>>,
}

/// A column of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnForm {
    pub(super) key: String,
    pub(super) heading: String,
    #[serde(default)]
    pub(super) unit: String,
    #[serde(default = "one")]
    pub(super) decimals: u8,
    /// Whether changes of this column are in percentage points.
    #[serde(default)]
    pub(super) is_share: bool,
    pub(super) metric: Metric,
    #[serde(default)]
    pub(super) compared: ComparedForm,
    /// Name of the CSV column with the values, unless a row names another CSV column.
    pub(super) printed: Option<Spanned<String>>,
    /// A CSV column whose value divides the printed value. `times` multiplies the quotient.
    pub(super) per: Option<Spanned<String>>,
    pub(super) times: Option<f64>,
    #[serde(default)]
    pub(super) printed_as: PrintedAs,
    /// Texts that select the lines of the CSV that have values of this column.
    pub(super) only: Option<Spanned<Texts>>,
    /// The CSV column with the standard deviation of this column's values, in percent of their mean.
    pub(super) variation: Option<Spanned<String>>,
}

fn one() -> u8 {
    1
}

/// The figure of a simulation that is compared with the published value; see
/// [`Compared`](crate::simulated::Compared).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ComparedForm {
    #[default]
    AsIs,
    PercentOfBase,
    PerWorkPercentOfBase,
    ScaledToBase,
}

/// The meaning of a printed number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PrintedAs {
    /// The printed number is the value itself.
    #[default]
    Value,
    /// The printed number is the value in percent of the base row's value.
    ValueInPercentOfBase,
    /// The printed number is the change from the base row in percent. With `Change`, the base row has the
    /// value 100 and no line in the CSV.
    Change,
}

/// A row of a table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowForm {
    pub(super) name: Option<String>,
    /// Texts that select the lines of the CSV that have the row's values.
    pub(super) only: Option<Spanned<Texts>>,
    #[serde(default)]
    pub(super) run: RunForm,
    /// For each key of a column, the CSV column that has this row's value.
    #[serde(default)]
    pub(super) printed: BTreeMap<String, Spanned<String>>,
    /// The CSV column with the standard deviation of the row's values, in percent.
    pub(super) variation: Option<Spanned<String>>,
}

/// The description of a simulation. If a row lacks a key, the table's key applies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunForm {
    pub(super) machine: Option<String>,
    pub(super) workload: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) batch: Option<u32>,
    pub(super) high: Option<u32>,
    pub(super) kernel_of: Option<String>,
    pub(super) tick_phase: Option<TickPhase>,
    pub(super) warmup_ms: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, u64>,
}

/// The length of the warm-up: as long as the published machine needs for some rounds of the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarmupForm {
    pub(super) rounds: f64,
    /// Number of units of work that one CPU does in one round.
    pub(super) units: u64,
    /// Key of the column that has the work of all CPUs in a second. The warm-up is computed from the base
    /// row's published value in this column.
    pub(super) score: Spanned<String>,
}

/// A parameter that is fitted on each base row with a published value above 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FitForm {
    pub(super) parameter: String,
    pub(super) range: (u64, u64),
    /// Key of the column with the published value that the simulation should reach.
    pub(super) column: Spanned<String>,
    #[serde(default)]
    pub(super) rises: bool,
    #[serde(default)]
    pub(super) target: FitTarget,
}

/// Parameters that were fitted on a row of another table. In the name of the other table, `{machine}` stands
/// for the simulated machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BorrowForm {
    pub(super) parameters: Vec<String>,
    pub(super) table: String,
    /// The row that the parameters were fitted on. Default: the row with the same name as this row's base
    /// row.
    pub(super) row: Option<String>,
}

/// A figure that the study draws.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureForm {
    pub(super) title: String,
    /// The part of the figure's file name after the study's name.
    pub(super) part: Option<FileName>,
    /// The label of the axis of rows.
    pub(super) rows: String,
    #[serde(default)]
    pub(super) unit: String,
    #[serde(default)]
    pub(super) scale: ScaleForm,
    pub(super) mark: Mark,
    /// Keys of the columns to draw.
    pub(super) columns: Vec<Spanned<String>>,
    /// The ids of the tables to draw. Default: all tables that have one of the columns.
    pub(super) tables: Option<Vec<Spanned<String>>>,
}

/// The scale of the axis of rows.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScaleForm {
    #[default]
    Names,
    Linear,
    Log,
}

/// Merges two structs. Takes each listed field from `own` if `own` has a value in this field, and from
/// `shared` otherwise.
macro_rules! or_shared {
    ($own:ident, $shared:ident, $($field:ident)*) => {
        Self { $($field: $own.$field.as_ref().or($shared.$field.as_ref()).cloned(),)* ..Self::default() }
    };
}

impl TableForm {
    /// Returns a table with the fields of `self`, and with the fields of `shared` that `self` does not set.
    /// Texts that select lines are combined from `self` and `shared`, and so are settings of the simulation.
    pub(super) fn over(&self, shared: &Self) -> Self {
        let mut table = or_shared!(
            self, shared, id title group withdrawn csv named_by each_line columns rows from_line warmup
            cpu_ms_min fits borrows deviation_line is_quick quick_rows
        );
        table.only = joined(&shared.only, &self.only, |all, own| all.extend(own));
        table.run = joined(&shared.run, &self.run, |all, own| *all = own.over(all));
        table
    }
}

/// Combines two values of a key into one value, which gets the position of `own` in the file.
fn joined<T: Clone>(
    shared: &Option<Spanned<T>>,
    own: &Option<Spanned<T>>,
    join: impl Fn(&mut T, T),
) -> Option<Spanned<T>> {
    let (Some(shared), Some(own)) = (shared, own) else { return own.clone().or_else(|| shared.clone()) };
    let mut all = shared.get_ref().clone();
    join(&mut all, own.get_ref().clone());
    Some(Spanned::new(own.span(), all))
}

impl RunForm {
    /// Returns the keys of `self`, and the keys that only `shared` has.
    pub(super) fn over(&self, shared: &Self) -> Self {
        let mut run = or_shared!(
            self, shared, machine workload policy cpus batch high kernel_of tick_phase warmup_ms
            duration_ms
        );
        run.set = shared.set.clone();
        run.set.extend(self.set.clone());
        run
    }
}
