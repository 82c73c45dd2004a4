//! Results as one HTML file, which needs no network and no other file.
//!
//! A [`Page`] is a value like a [`Table`]: sections with sentences, tables and charts. [`Page::to_html`]
//! turns the page into text. The same page gives the same bytes. The file also has all values as JSON, with
//! every digit. A script draws the charts from the JSON. A browser that runs no scripts draws no charts, but
//! shows the tables.
//!
//! The modules, in the order of their use for a page:
//!
//! - `chart`: charts that a script draws: lines over time, and heat maps.
//! - `bars`: pictures without a script: values side by side, with their ranges.
//! - `terms`: explanations of terms, which the page shows when the mouse is over a term.
//! - `html`: writes the parts of a page as elements. `writer` writes elements, and escapes their text.
//! - `page.css`, `page.js`: style and script, which are copied into the file unchanged.

mod bars;
mod chart;
mod html;
mod terms;
#[cfg(test)]
mod tests;
mod writer;

pub use bars::{Bar, Bars};
pub use chart::{Change, Chart, Group, Heat, Height, Layer, Line, LineChart, Look, Marks, Span};

use serde::Serialize;

use crate::Table;
use crate::plot::{Figure, PlotError};

/// A page, which becomes one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    title: String,
    sections: Vec<Section>,
}

impl Part {
    /// Returns the narrower form of a table: the table itself, or the table with rows and columns exchanged.
    #[must_use]
    pub fn narrow_table(table: Table) -> Self {
        if table.rows().len() < table.columns().len() { Self::Transposed(table) } else { Self::Table(table) }
    }

    /// Draws a figure for a page.
    ///
    /// # Errors
    /// The errors of [`Figure::to_svg`].
    pub fn figure(figure: &Figure) -> Result<Self, PlotError> {
        Ok(Self::Figure { title: figure.title().to_owned(), svg: figure.to_svg()? })
    }
}

/// A heading and the parts below it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    heading: String,
    /// The name of the section in the list of sections. `None` if the section is not in the list.
    #[serde(skip)]
    listed: Option<String>,
    parts: Vec<Part>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A sentence that readers should read first.
    Lead(String),
    /// A sentence.
    Text(String),
    /// Names and their values.
    Facts(Vec<(String, String)>),
    /// A table, with its CSV for copying.
    Table(Table),
    /// A table that is shown only on request, with its CSV for copying.
    Evidence(Table),
    /// Small multiples: several pictures of values, side by side.
    Bars(Vec<Bars>),
    /// A table with rows and columns exchanged, for few rows with many values each.
    Transposed(Table),
    /// A chart.
    Chart(Chart),
    /// A chart that is shown only on request, because its values do not change.
    FoldedChart(Chart),
    /// A figure that was drawn before. The values of a drawn figure are not in the page's JSON.
    Figure {
        /// The title.
        title: String,
        /// The drawing.
        #[serde(skip)]
        svg: String,
    },
}

impl Page {
    /// Makes a page without sections.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), sections: Vec::new() }
    }

    /// Adds a section at the end.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Returns the page as an HTML document. Characters that could hide the text after them become U+FFFD.
    /// All text of the page is escaped.
    ///
    /// # Errors
    /// An error if a value cannot be written as JSON.
    pub fn to_html(&self) -> Result<String, serde_json::Error> {
        html::document(self)
    }
}

impl Section {
    /// Whether the section has no parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Makes a section without parts.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        let heading = heading.into();
        Self { listed: Some(heading.clone()), heading, parts: Vec::new() }
    }

    /// Returns the section with another name in the list of sections. With `None`, the section is not in the
    /// list.
    #[must_use]
    pub fn listed(mut self, name: Option<&str>) -> Self {
        self.listed = name.map(str::to_owned);
        self
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: Part) {
        self.parts.push(part);
    }
}
