//! Plots as SVG: lines, points and bars, in one or several panels.
//!
//! A [`Figure`] is a value like a [`Table`](crate::Table): panels with axes and series, and a caption with
//! the origin of the numbers. [`Figure::to_svg`] turns the figure into text. The same figure gives the same
//! bytes.
//!
//! The modules, in the order of their use for a plot:
//!
//! - `axis`: label, range and ticks of an axis.
//! - `series`: points that belong together.
//! - `check`: errors for figures that cannot be drawn.
//! - `colour`: colours that colour-blind readers can distinguish, and shapes for further series.
//! - `layout`: the room for each part. The size of text is a guess, because the reader's fonts are unknown.
//! - `draw`: the only file that uses the drawing library.

mod axis;
mod check;
mod colour;
mod draw;
mod layout;
mod series;

pub use axis::{Axis, Scale};
pub use check::PlotError;
pub(crate) use colour::PALETTE;
pub use series::{Mark, Point, Series};

use crate::Provenance;

/// One or more panels under a common title, with a common legend and a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    panels: Vec<Panel>,
    caption: Vec<String>,
}

impl Figure {
    /// Makes a figure without panels.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panels: Vec::new(), caption: Vec::new() }
    }

    /// Adds a panel. Panels are laid out in rows, from left to right.
    pub fn push(&mut self, panel: Panel) {
        self.panels.push(panel);
    }

    /// Adds a sentence below the panels.
    pub fn note(&mut self, note: impl Into<String>) {
        self.caption.push(note.into());
    }

    /// Returns the figure with the provenance at the end of the caption.
    #[must_use]
    pub fn with_provenance(mut self, provenance: &Provenance) -> Self {
        let facts = provenance.facts();
        let lines = facts.iter().map(|(name, value)| format!("{name}: {value}"));
        self.caption.extend(lines);
        self
    }

    /// The title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// Returns the figure as an SVG document. Characters that XML forbids become U+FFFD. All other text is
    /// escaped.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if there is nothing to draw, or if a value cannot be placed on its axis. A figure with a
    /// value that cannot be drawn is never drawn without this value.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        check::check(self)?;
        Ok(draw::draw(self))
    }
}

/// A pair of axes, and the series that are drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Panel {
    /// Makes a panel without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    /// Adds a series. Later series are drawn over earlier series. Series with the same name have the same
    /// colour in all panels of a figure. Published series are dashed or hollow, to distinguish them from
    /// ours.
    pub fn push(&mut self, series: Series) {
        self.series.push(series);
    }
}
