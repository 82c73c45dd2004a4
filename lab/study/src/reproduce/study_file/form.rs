//! The keys of a study's file.

use std::collections::BTreeMap;

use pageset_report::plot::Mark;
use pageset_sim::TickPhase;
use serde::Deserialize;
use toml::Spanned;

use crate::metric::Metric;
use crate::reproduce::simulated::FitTarget;
use crate::sweep::{FileName, Several};

/// Allowed texts for each column of a CSV file.
pub(super) type Texts = BTreeMap<String, Several<String>>;

/// A study's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyForm {
    /// What the study compares, in one line.
    pub(super) summary: String,
    /// The machines: published name and simulated machine.
    #[serde(default)]
    pub(super) machines: BTreeMap<String, String>,
    /// Misprints in the published values, which are corrected.
    #[serde(default, rename = "correction")]
    pub(super) corrections: Vec<Spanned<CorrectionForm>>,
    /// The tables. Tables that share values have one entry with `each`.
    pub(super) tables: Vec<Spanned<TableForm>>,
    /// Pictures.
    #[serde(default, rename = "figure")]
    pub(super) figures: Vec<Spanned<FigureForm>>,
    /// Names of further tables that are made from the published ones and shown after them.
    #[serde(default)]
    pub(super) more: Vec<More>,
    /// The table that says which row to choose.
    pub(super) choice: Option<Spanned<ChoiceForm>>,
    /// The table that is simulated again with copies of a recording.
    pub(super) copies: Option<Spanned<CopiesForm>>,
    /// A table of used memory.
    pub(super) used_memory: Option<Spanned<UsedMemoryForm>>,
}

/// A kind of further table that is made from the published ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum More {
    /// The size of each change, and whether the published interval covers our change.
    Changes,
}

/// A table that says which row to choose, for example which batch size: the first row that is as good as the
/// best, and how much worse other rows are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceForm {
    /// Keys of the columns whose best value is wanted.
    pub(super) columns: Vec<Spanned<String>>,
    /// Rows whose loss is shown.
    pub(super) rows: Vec<String>,
}

/// A table that is simulated again. Copies of a recording run in place of the table's workload.
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

/// A table. If `each` is not empty, each entry of `each` is a table, and the keys here are the values that
/// these tables share.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableForm {
    /// The table's name in JSON, and its title.
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    /// Name of the group of tables that the table is scored with.
    pub(super) group: Option<String>,
    /// How the author withdrew the table. `None` if the author did not.
    pub(super) withdrawn: Option<String>,
    /// The file of published values.
    pub(super) csv: Option<Spanned<String>>,
    /// Texts that select the CSV's lines of this table.
    pub(super) only: Option<Spanned<Texts>>,
    /// Name of the CSV column that holds the names of the rows.
    pub(super) named_by: Option<Spanned<String>>,
    /// Name of the CSV column that tells lines apart, if each line of the CSV has a value for every row.
    pub(super) each_line: Option<Spanned<String>>,
    /// Columns and rows.
    pub(super) columns: Option<Vec<Spanned<ColumnForm>>>,
    pub(super) rows: Option<Vec<Spanned<RowForm>>>,
    /// The simulation.
    pub(super) run: Option<Spanned<RunForm>>,
    /// Settings of the simulation that come from the CSV: the setting, and the column that has its value.
    pub(super) from_line: Option<BTreeMap<String, Spanned<String>>>,
    /// The warm-up's length, in rounds of the workload.
    pub(super) warmup: Option<Spanned<WarmupForm>>,
    /// The shortest measured time, summed over all CPUs.
    pub(super) cpu_ms_min: Option<u64>,
    /// Parameters that are chosen on base rows, and parameters that were chosen on other tables.
    pub(super) fits: Option<Vec<Spanned<FitForm>>>,
    pub(super) borrows: Option<Vec<Spanned<BorrowForm>>>,
    /// Texts that select the lines with standard deviations.
    pub(super) deviation_line: Option<Spanned<Texts>>,
    /// Whether a quick run includes the table, and which rows it includes.
    pub(super) is_quick: Option<bool>,
    pub(super) quick_rows: Option<Spanned<Vec<String>>>,
    /// The tables that share the values above. Each table lists only the values that differ from the shared
    /// ones.
    #[serde(default)]
    pub(super) each: Vec<Spanned<TableForm>>,
}

/// One column.
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
    /// Name of the CSV column with the values. Rows can name a column of their own instead.
    pub(super) printed: Option<Spanned<String>>,
    /// The CSV column by whose value the printed value is divided, and a factor.
    pub(super) per: Option<Spanned<String>>,
    pub(super) times: Option<f64>,
    #[serde(default)]
    pub(super) printed_as: PrintedAs,
    /// Texts that select the CSV's lines with the column's values.
    pub(super) only: Option<Spanned<Texts>>,
    /// The CSV column with the standard deviation, in percent of the mean, of each of the two values of a
    /// change.
    pub(super) variation: Option<Spanned<String>>,
}

fn one() -> u8 {
    1
}

/// How the metric is compared with the published value.
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
    /// The value.
    #[default]
    Value,
    /// The number is the value in percent of the base row's value.
    ValueInPercentOfBase,
    /// The number is the change from the base row in percent. The base row counts as 100 and has no line in
    /// the CSV.
    Change,
}

/// One row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowForm {
    pub(super) name: Option<String>,
    /// Texts that select the CSV's lines with the row's values.
    pub(super) only: Option<Spanned<Texts>>,
    #[serde(default)]
    pub(super) run: RunForm,
    /// For each key of a column: the CSV column that has this row's value.
    #[serde(default)]
    pub(super) printed: BTreeMap<String, Spanned<String>>,
    /// The CSV's column with the standard deviation, in percent.
    pub(super) variation: Option<Spanned<String>>,
}

/// Parts of a simulation.
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

/// The warm-up's length: as long as the published machine takes for some rounds of the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarmupForm {
    pub(super) rounds: f64,
    /// Units of work of one CPU in one round.
    pub(super) units: u64,
    /// Key of the column that gives the work of all CPUs in a second, in the base row.
    pub(super) score: Spanned<String>,
}

/// A parameter that is chosen on each base row whose published value is not 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FitForm {
    pub(super) parameter: String,
    pub(super) range: (u64, u64),
    /// Key of the column that the result should agree with.
    pub(super) column: Spanned<String>,
    #[serde(default)]
    pub(super) rises: bool,
    #[serde(default)]
    pub(super) target: FitTarget,
}

/// Parameters that were chosen on a row of another table. In the table's name, `{machine}` stands for the
/// simulated machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BorrowForm {
    pub(super) parameters: Vec<String>,
    pub(super) table: String,
    /// Default: the name of the row's own base row.
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
    /// The tables that are drawn. Default: all tables that have one of these columns.
    pub(super) tables: Option<Vec<Spanned<String>>>,
}

/// How rows are placed along their axis.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScaleForm {
    #[default]
    Names,
    Linear,
    Log,
}

/// Merges two values of a struct: takes each field from `own` if it is set there, and from `shared`
/// otherwise.
macro_rules! or_shared {
    ($own:ident, $shared:ident, $($field:ident)*) => {
        Self { $($field: $own.$field.as_ref().or($shared.$field.as_ref()).cloned(),)* ..Self::default() }
    };
}

impl TableForm {
    /// Returns the table with the fields that `self` sets, and the other fields of `shared`. Texts that
    /// select lines and settings of the simulation are combined from both.
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

/// Combines both values into one, with the position in the file of the second.
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
    /// The settings of `self`, and the settings that only `shared` has.
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
