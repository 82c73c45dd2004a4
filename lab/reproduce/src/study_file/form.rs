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
    /// The tables. Several tables that share keys are one entry with `each`.
    pub(super) tables: Vec<Spanned<TableForm>>,
    /// Pictures.
    #[serde(default, rename = "figure")]
    pub(super) figures: Vec<Spanned<FigureForm>>,
    /// The kinds of further tables that are made from the published tables, and are shown after them.
    #[serde(default)]
    pub(super) more: Vec<More>,
    /// The table that helps to choose a row.
    pub(super) choice: Option<Spanned<ChoiceForm>>,
    /// The table that is simulated again with copies of a recording.
    pub(super) copies: Option<Spanned<CopiesForm>>,
    /// The table of used memory.
    pub(super) used_memory: Option<Spanned<UsedMemoryForm>>,
}

/// A kind of table that is made from the published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum More {
    /// The size of each change, and whether the published interval covers our change.
    Changes,
}

/// A table that helps to choose a row, for example a batch size. The table names the first row that is as
/// good as the best, and says how much worse other rows are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceForm {
    /// Keys of the columns that decide which row is best.
    pub(super) columns: Vec<Spanned<String>>,
    /// Names of the rows whose loss is shown.
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
    /// Keys of the columns that are compared with the copies.
    pub(super) columns: Vec<Spanned<String>>,
}

/// A table of used memory, on the machine of a published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsedMemoryForm {
    pub(super) table: Spanned<String>,
    /// The published use of memory, in percent of the base row: at the peak, and at the end of the run.
    pub(super) peak_percent: f64,
    pub(super) after_percent: f64,
    pub(super) rows: Vec<String>,
}

/// A misprint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrectionForm {
    pub(super) csv: String,
    pub(super) column: String,
    pub(super) printed: String,
    pub(super) meant: String,
}

/// A table, or several tables that share keys. If `each` is not empty, each entry of `each` is a table, and
/// the keys of this form hold for all these tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableForm {
    /// The table's name in JSON and its title.
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    /// Name of the group of tables that the table is scored with.
    pub(super) group: Option<String>,
    /// A text that says how the author withdrew the table. `None` if the table is not withdrawn.
    pub(super) withdrawn: Option<String>,
    /// The file of published values.
    pub(super) csv: Option<Spanned<String>>,
    /// Texts that select the lines of the CSV that belong to this table.
    pub(super) only: Option<Spanned<Texts>>,
    /// Name of the CSV column that holds the names of the rows.
    pub(super) named_by: Option<Spanned<String>>,
    /// Name of the CSV column whose text is different in each line. The key is set if each line of the CSV
    /// has a value for every row.
    pub(super) each_line: Option<Spanned<String>>,
    /// The columns and rows of the table.
    pub(super) columns: Option<Vec<Spanned<ColumnForm>>>,
    pub(super) rows: Option<Vec<Spanned<RowForm>>>,
    /// The simulation.
    pub(super) run: Option<Spanned<RunForm>>,
    /// Settings of the simulation that come from the CSV. The key is a setting, and the value is the CSV
    /// column that has its value.
    pub(super) from_line: Option<BTreeMap<String, Spanned<String>>>,
    /// The warm-up's length, in rounds of the workload.
    pub(super) warmup: Option<Spanned<WarmupForm>>,
    /// Lower limit of the measured time, summed over all CPUs, in milliseconds.
    pub(super) cpu_ms_min: Option<u64>,
    /// Parameters that are fitted on base rows, and parameters that were fitted on other tables.
    pub(super) fits: Option<Vec<Spanned<FitForm>>>,
    pub(super) borrows: Option<Vec<Spanned<BorrowForm>>>,
    /// Texts that select the lines with standard deviations.
    pub(super) deviation_line: Option<Spanned<Texts>>,
    /// Whether a quick run includes the table. `quick_rows` names the rows that a quick run includes.
    pub(super) is_quick: Option<bool>,
    pub(super) quick_rows: Option<Spanned<Vec<String>>>,
    /// The tables that share the keys above. An entry has only the keys whose values differ from the shared
    /// ones.
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
    /// Whether a change is counted in percentage points.
    #[serde(default)]
    pub(super) is_share: bool,
    pub(super) metric: Metric,
    #[serde(default)]
    pub(super) compared: ComparedForm,
    /// Name of the CSV column with the values. A row can name another CSV column instead.
    pub(super) printed: Option<Spanned<String>>,
    /// The CSV column that the printed value is divided by, and a factor for the quotient.
    pub(super) per: Option<Spanned<String>>,
    pub(super) times: Option<f64>,
    #[serde(default)]
    pub(super) printed_as: PrintedAs,
    /// Texts that select the lines of the CSV that have the column's values.
    pub(super) only: Option<Spanned<Texts>>,
    /// The CSV column with standard deviations, in percent of the mean. A change is computed from two values,
    /// and each of the two values has this deviation.
    pub(super) variation: Option<Spanned<String>>,
}

fn one() -> u8 {
    1
}

/// How the metric of a column is compared with the published value.
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
    /// The printed number is the change from the base row in percent. The base row counts as 100 and has no
    /// line in the CSV.
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
    /// For each key of a column: the CSV column that has this row's value.
    #[serde(default)]
    pub(super) printed: BTreeMap<String, Spanned<String>>,
    /// The CSV's column with the standard deviation, in percent.
    pub(super) variation: Option<Spanned<String>>,
}

/// The description of a simulation. A row that leaves a key out has the value of its table.
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

/// The length of the warm-up: the published machine then does some rounds of the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarmupForm {
    pub(super) rounds: f64,
    /// Number of units of work that one CPU does in one round.
    pub(super) units: u64,
    /// Key of the column that gives the work of all CPUs in a second, in the base row.
    pub(super) score: Spanned<String>,
}

/// A parameter that is fitted on each base row whose published value is not 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FitForm {
    pub(super) parameter: String,
    pub(super) range: (u64, u64),
    /// Key of the column whose published value the result should have.
    pub(super) column: Spanned<String>,
    #[serde(default)]
    pub(super) rises: bool,
    #[serde(default)]
    pub(super) target: FitTarget,
}

/// Parameters that were fitted on a row of another table. In the name of that table, `{machine}` stands for
/// the simulated machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BorrowForm {
    pub(super) parameters: Vec<String>,
    pub(super) table: String,
    /// The row that the parameters were fitted on. Default: the row of the other table that has the same name
    /// as this row's base row.
    pub(super) row: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureForm {
    pub(super) title: String,
    /// The part of the picture's file name that comes after the study's name.
    pub(super) part: Option<FileName>,
    /// The axis of rows.
    pub(super) rows: String,
    #[serde(default)]
    pub(super) unit: String,
    #[serde(default)]
    pub(super) scale: ScaleForm,
    pub(super) mark: Mark,
    /// Keys of the columns that are drawn.
    pub(super) columns: Vec<Spanned<String>>,
    /// The ids of the tables that are drawn. Default: all tables that have one of the drawn columns.
    pub(super) tables: Option<Vec<Spanned<String>>>,
}

/// How rows are placed along an axis.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScaleForm {
    #[default]
    Names,
    Linear,
    Log,
}

/// Merges two values of a struct. Takes each field from `own` if `own` sets the field, and from `shared`
/// otherwise.
macro_rules! or_shared {
    ($own:ident, $shared:ident, $($field:ident)*) => {
        Self { $($field: $own.$field.as_ref().or($shared.$field.as_ref()).cloned(),)* ..Self::default() }
    };
}

impl TableForm {
    /// Returns a table with the fields that `self` sets, and the other fields of `shared`. Two kinds of
    /// fields are combined from both: texts that select lines, and settings of the simulation.
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

/// Combines two values of a key into one. The result has the second value's position in the file.
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
    /// Returns the settings of `self`, and the settings that only `shared` has.
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
