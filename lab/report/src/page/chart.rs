//! Charts that the page's script draws: lines over time, and heat maps.

use serde::Serialize;

/// A chart, with a text that describes the chart for readers who do not see the chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Values over time.
    Lines(LineChart),
    /// Counts by row and column, which are shown as colours.
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

    /// Whether the x axis is time, so that a part of the chart can be enlarged.
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

/// The time that a chart covers, in seconds from 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Length of the time, in seconds.
    pub seconds: f64,
    /// Charts with the same number are enlarged together.
    pub link: usize,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineChart {
    /// The title.
    pub title: String,
    /// The title and the extreme values, for readers who do not see the chart.
    pub text: String,
    /// The unit of the values.
    pub unit: String,
    /// The y axis.
    pub height: Height,
    /// The x axis.
    pub span: Span,
    /// The lines. Later lines are drawn over earlier lines.
    pub lines: Vec<Line>,
    /// Counts per interval, below the lines.
    pub marks: Vec<Marks>,
    /// The changes of settings, by time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// A change that happened between two moments. The chart draws the change across all lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Last second before the change.
    pub after: f64,
    /// First second after the change.
    pub before: f64,
    /// Description of the change.
    pub text: String,
}

/// The scale of heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Height {
    /// The height is proportional to the value.
    Linear,
    /// The height is the logarithm of the value plus one, for values that differ by large factors.
    Log,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// A line over a filled area.
    Filled,
    /// A line without a filled area.
    Plain,
    /// A dashed line, for a limit.
    Limit,
}

/// The values of one line. Each value holds until the next value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Style of the line.
    pub look: Look,
    /// The second, and the smallest and largest value from this second on, by time. Several values in one
    /// interval are reduced to their extremes.
    pub points: Vec<(f64, u64, u64)>,
}

/// Numbers of occurrences, in intervals of equal length that cover the whole span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marks {
    /// Name of the occurrences.
    pub name: String,
    /// Number of occurrences in each interval. The list is empty if there are no occurrences.
    pub counts: Vec<u64>,
}

/// Counts by row and column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// The title.
    pub title: String,
    /// The title and the extreme values, for readers who do not see the chart.
    pub text: String,
    /// The meaning of a row, such as `CPU`.
    pub row: String,
    /// The meaning of a column. If the x axis is time, the page does not show this text.
    pub column: String,
    /// Names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// Groups of rows, from top to bottom.
    pub groups: Vec<Group>,
    /// The x axis, if the x axis is time. `None` if columns have names.
    pub span: Option<Span>,
    /// Names of the columns, if the x axis is not time.
    pub columns: Vec<String>,
    /// The layers. The page shows one layer at a time.
    pub layers: Vec<Layer>,
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Name of the group. The text is empty for a group without a name.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
}

/// One kind of count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Name of the counted thing.
    pub name: String,
    /// Unit of the counts. The text is empty if the counts are numbers of things.
    pub unit: String,
    /// Counts by row and column. Zeros at the end of a row may be left out.
    pub cells: Vec<Vec<u64>>,
}

impl Layer {
    /// Sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells.iter().flatten().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
