//! What is drawn by the page's script: lines over time, heat maps.

use serde::Serialize;

/// A chart. Its text says what it shows to readers who do not see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Values over time.
    Lines(Lines),
    /// Counts by row and column, as colours.
    Heat(Heat),
}

impl Chart {
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Lines(lines) => &lines.title,
            Self::Heat(heat) => &heat.title,
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Lines(lines) => &lines.text,
            Self::Heat(heat) => &heat.text,
        }
    }

    /// Whether a part of it can be enlarged.
    pub(super) const fn has_time(&self) -> bool {
        match self {
            Self::Lines(_) => true,
            Self::Heat(heat) => heat.span.is_some(),
        }
    }

    pub(super) fn layers(&self) -> &[Layer] {
        match self {
            Self::Lines(_) => &[],
            Self::Heat(heat) => &heat.layers,
        }
    }
}

/// The time that a chart shows, in seconds from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Length.
    pub seconds: f64,
    /// Charts of one number are zoomed together.
    pub link: usize,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lines {
    /// What is shown.
    pub title: String,
    /// The same for who does not see it, with the extremes.
    pub text: String,
    /// What the values are counted in.
    pub unit: String,
    /// The y axis.
    pub height: Height,
    /// The x axis.
    pub span: Span,
    /// Later ones are drawn over earlier ones.
    pub lines: Vec<Line>,
    /// Counts by interval, below the lines.
    pub marks: Vec<Marks>,
    /// The changes of settings, by time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Something became different between two moments. It is drawn across all lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Second at which it was as before.
    pub after: f64,
    /// Second at which it was different.
    pub before: f64,
    /// What it was.
    pub text: String,
}

/// How heights are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Height {
    /// Evenly, from 0 on.
    Linear,
    /// By the logarithm of the value and one, for values that are far from each other.
    Log,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// A line over a filled ground.
    Filled,
    /// A line.
    Plain,
    /// A broken line: a limit.
    Limit,
}

/// Values that belong together. One holds until the next one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// Second, smallest and largest value from there on; by time. Several values that fall into one interval are its
    /// extremes.
    pub points: Vec<(f64, u64, u64)>,
}

/// How often something happened, in intervals of equal length over the whole span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marks {
    /// What happened.
    pub name: String,
    /// In each interval; empty if nowhere.
    pub counts: Vec<u64>,
}

/// Counts by row and column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// What is shown.
    pub title: String,
    /// The same for who does not see it, with the extremes.
    pub text: String,
    /// What a row is, as in `CPU`.
    pub row: String,
    /// What a column is; not used if there is a span.
    pub column: String,
    /// Names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// Rows that belong together, from top to bottom.
    pub groups: Vec<Group>,
    /// The x axis, if it is time.
    pub span: Option<Span>,
    /// Names of the columns, if there is no span.
    pub columns: Vec<String>,
    /// What can be shown; one at a time.
    pub layers: Vec<Layer>,
}

/// Rows that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Name; empty if it says nothing.
    pub name: String,
    /// How many rows.
    pub rows: usize,
}

/// One kind of count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// What is counted.
    pub name: String,
    /// Unit; empty for a number of things.
    pub unit: String,
    /// By row, then column. Zeros at the end of a row may be left out.
    pub cells: Vec<Vec<u64>>,
}

impl Layer {
    /// Sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells.iter().flatten().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
