//! Points that belong together.

use serde::Deserialize;

use crate::Origin;

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the x axis, in the axis's unit. On an axis of names, `x` is the index of a name.
    pub x: f64,
    /// Position on the y axis, in the axis's unit.
    pub y: f64,
    /// The smallest and the largest result of the runs that `y` comes from, in the unit of the y axis.
    pub range: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, range: None }
    }
}

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Points joined by a line.
    Line,
    /// Points alone.
    Points,
    /// Bars that begin at 0, side by side with the bars of other series. Use bars on an axis of names.
    Bars,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) mark: Mark,
    pub(super) points: Vec<Point>,
}

impl Series {
    /// Makes a series of these points. The caller leaves out missing values. A line then joins the points on
    /// both sides of a missing value.
    #[must_use]
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        origin: Origin,
        mark: Mark,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { name: name.into(), origin, mark, points: points.into_iter().map(Into::into).collect() }
    }

    /// The text in the legend.
    pub(super) fn legend(&self) -> String {
        format!("{} ({})", self.name, self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_says_where_the_values_come_from() {
        let series = Series::new("zone lock", Origin::Simulated, Mark::Line, [(0.0, 1.0)]);
        assert_eq!(series.legend(), "zone lock (simulated)");
        assert_eq!(series.points, [Point { x: 0.0, y: 1.0, range: None }]);
    }
}
