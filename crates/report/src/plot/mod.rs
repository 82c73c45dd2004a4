//! Plots as SVG: lines, points and bars, in one panel or several.
//!
//! A [`Figure`] is a value like a [`Table`](crate::Table): panels with axes and series, and a caption that says where
//! the numbers come from. [`Figure::to_svg`] turns it into text; the same figure gives the same bytes.
//!
//! In the order in which a plot meets them:
//!
//! - `axis`: what an axis shows, its range, and where its ticks stand.
//! - `series`: points that belong together.
//! - `check`: what cannot be drawn, as errors.
//! - `colour`: colours that colour-blind readers can tell apart, and shapes for when they run out.
//! - `layout`: how much room each part gets; text is measured by guess, since readers' fonts are unknown.
//! - `draw`: the only file that knows the drawing library.

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
    /// A figure without panels.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panels: Vec::new(), caption: Vec::new() }
    }

    /// Adds a panel; panels are laid out in rows, from left to right.
    pub fn push(&mut self, panel: Panel) {
        self.panels.push(panel);
    }

    /// Adds a sentence below the panels.
    pub fn note(&mut self, note: impl Into<String>) {
        self.caption.push(note.into());
    }

    /// The same figure with the facts about its numbers as the last lines of the caption.
    #[must_use]
    pub fn with_provenance(mut self, provenance: &Provenance) -> Self {
        let facts = provenance.facts();
        let lines = facts.iter().map(|(name, value)| format!("{name}: {value}"));
        self.caption.extend(lines);
        self
    }

    /// What the figure shows.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// The figure as an SVG document. Characters that XML forbids become U+FFFD; all other text is escaped.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if there is nothing to draw, or a value has no place on its axis. Nothing is left out silently.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        check::check(self)?;
        Ok(draw::draw(self))
    }
}

/// One pair of axes and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Panel {
    /// A panel without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    /// Adds a series; later ones are drawn over earlier ones. Series of one name have one colour in all panels of a
    /// figure, and what is published is dashed or hollow, so that it can be told from our own.
    pub fn push(&mut self, series: Series) {
        self.series.push(series);
    }
}
