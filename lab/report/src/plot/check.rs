//! Checks that a figure can be drawn.

use thiserror::Error;

use super::axis::{Axis, Scale};
use super::{Figure, Panel, Series};

/// Largest absolute value that is drawn. The limit is chosen so that the sum of two values cannot overflow.
const VALUE_MAX: f64 = 1e150;
/// Smallest value that is drawn on a logarithmic axis.
const LOG_VALUE_MIN: f64 = 1e-150;

/// The reason why a figure cannot be drawn. Each message names the panel or series.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The figure has no panel.
    #[error("the figure \"{figure}\" has no panel: add one before drawing it")]
    NoPanels {
        /// Title of the figure.
        figure: String,
    },
    /// A panel has no series.
    #[error("the panel \"{panel}\" has no series: add one, or leave the panel out")]
    NoSeries {
        /// Title of the panel.
        panel: String,
    },
    /// A series has no points.
    #[error("the series \"{series}\" of the panel \"{panel}\" has no points: leave it out")]
    EmptySeries {
        /// Title of the panel.
        panel: String,
        /// Name of the series.
        series: String,
    },
    /// A value cannot be placed on its axis.
    #[error("point {index} of the series \"{series}\" has the {axis} value {value}: {reason}")]
    BadValue {
        /// Name of the series.
        series: String,
        /// Position of the point in the series, from 0.
        index: usize,
        /// `x` or `y`.
        axis: char,
        /// The value.
        value: f64,
        /// The requirement of the axis that the value does not meet.
        reason: &'static str,
    },
    /// An axis of categories has no categories.
    #[error("the {axis} axis of the panel \"{panel}\" has no categories: name at least one")]
    NoCategories {
        /// Title of the panel.
        panel: String,
        /// `x` or `y`.
        axis: char,
    },
}

/// Checks all conditions that `draw` relies on.
pub(super) fn check(figure: &Figure) -> Result<(), PlotError> {
    if figure.panels.is_empty() {
        return Err(PlotError::NoPanels { figure: figure.title.clone() });
    }
    figure.panels.iter().try_for_each(check_panel)
}

fn check_panel(panel: &Panel) -> Result<(), PlotError> {
    let title = || panel.title.clone();
    if panel.series.is_empty() {
        return Err(PlotError::NoSeries { panel: title() });
    }
    for (name, axis) in [('x', &panel.x), ('y', &panel.y)] {
        if matches!(&axis.scale, Scale::Categories(names) if names.is_empty()) {
            return Err(PlotError::NoCategories { panel: title(), axis: name });
        }
    }
    for series in &panel.series {
        if series.points.is_empty() {
            return Err(PlotError::EmptySeries { panel: title(), series: series.name.clone() });
        }
        check_points(panel, series)?;
    }
    Ok(())
}

fn check_points(panel: &Panel, series: &Series) -> Result<(), PlotError> {
    for (index, point) in series.points.iter().enumerate() {
        let range = point.range.map(|(low, high)| [low, high]);
        let ys = std::iter::once(point.y).chain(range.into_iter().flatten());
        let values = std::iter::once(('x', &panel.x, point.x)).chain(ys.map(|y| ('y', &panel.y, y)));
        for (axis_name, axis, value) in values {
            if let Some(reason) = objection(axis, value) {
                let series = series.name.clone();
                return Err(PlotError::BadValue { series, index, axis: axis_name, value, reason });
            }
        }
    }
    Ok(())
}

/// The reason why a value cannot be placed on an axis.
fn objection(axis: &Axis, value: f64) -> Option<&'static str> {
    if !value.is_finite() {
        return Some("it is not a number that can be drawn; leave the point out");
    }
    if value.abs() > VALUE_MAX {
        return Some("it is too large; use a larger unit");
    }
    match &axis.scale {
        Scale::Log if value < LOG_VALUE_MIN => {
            Some("a logarithmic axis has only values above 0; use a linear one")
        }
        Scale::Categories(names) => {
            let is_index = value >= 0.0 && value < names.len() as f64 && value.fract() == 0.0;
            (!is_index).then_some("the axis has no such category")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::plot::Mark;

    fn figure(x: Axis, y: Axis, points: &[(f64, f64)]) -> Figure {
        let mut panel = Panel::new("p", x, y);
        panel.push(Series::new("s", Origin::Measured, Mark::Line, points.iter().copied()));
        let mut figure = Figure::new("f");
        figure.push(panel);
        figure
    }

    #[track_caller]
    fn refuses(figure: &Figure, message: &str) {
        assert_eq!(figure.to_svg().map_err(|error| error.to_string()), Err(message.to_owned()));
    }

    fn linear() -> Axis {
        Axis::linear("CPUs", "")
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        refuses(&Figure::new("f"), "the figure \"f\" has no panel: add one before drawing it");
        let mut figure_without_series = Figure::new("f");
        figure_without_series.push(Panel::new("p", linear(), linear()));
        refuses(&figure_without_series, "the panel \"p\" has no series: add one, or leave the panel out");
        refuses(
            &figure(linear(), linear(), &[]),
            "the series \"s\" of the panel \"p\" has no points: leave it out",
        );
        refuses(
            &figure(Axis::categories("policy", Vec::<String>::new()), linear(), &[(0.0, 1.0)]),
            "the x axis of the panel \"p\" has no categories: name at least one",
        );
    }

    #[test]
    fn values_without_a_place_are_errors() {
        refuses(
            &figure(linear(), linear(), &[(0.0, 1.0), (1.0, f64::NAN)]),
            "point 1 of the series \"s\" has the y value NaN: it is not a number that can be drawn; leave the point out",
        );
        refuses(
            &figure(linear(), Axis::log("pages", ""), &[(1.0, 0.0)]),
            "point 0 of the series \"s\" has the y value 0: a logarithmic axis has only values above 0; use a linear one",
        );
        refuses(
            &figure(Axis::categories("policy", ["a"]), linear(), &[(1.0, 1.0)]),
            "point 0 of the series \"s\" has the x value 1: the axis has no such category",
        );
        refuses(
            &figure(linear(), linear(), &[(1.0, 1e200)]),
            &format!(
                "point 0 of the series \"s\" has the y value {}: it is too large; use a larger unit",
                1e200
            ),
        );
    }
}
