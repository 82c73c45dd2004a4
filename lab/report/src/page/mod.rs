//! Results as one HTML file that needs no network and no other file.
//!
//! A [`Page`] is a value like a [`Table`]: sections with sentences, tables and charts. [`Page::to_html`]
//! turns it into text; the same page gives the same bytes. The file also has all values as JSON, with every
//! digit. The script draws the charts from the JSON. A reader without a script has the tables.
//!
//! A page meets the modules in this order:
//!
//! - `chart`: charts that the script draws: lines over time, heat maps.
//! - `bars`: pictures without a script: values side by side, with their ranges.
//! - `terms`: explanations of terms, shown when the mouse rests on them.
//! - `html`: the parts as elements. `writer` writes elements, and escapes all text.
//! - `page.css`, `page.js`: style and script, copied into the file unchanged.

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
    /// The table in its narrower form: as it is, or with rows and columns exchanged.
    #[must_use]
    pub fn narrow_table(table: Table) -> Self {
        if table.rows().len() < table.columns().len() { Self::Transposed(table) } else { Self::Table(table) }
    }

    /// A figure, drawn.
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
    /// Its name in the list of sections. None if it is not listed.
    #[serde(skip)]
    listed: Option<String>,
    parts: Vec<Part>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A sentence to be read first.
    Lead(String),
    /// A sentence.
    Text(String),
    /// Names and their values.
    Facts(Vec<(String, String)>),
    /// A table, with its CSV for copying.
    Table(Table),
    /// A table that is shown on request, with its CSV for copying.
    Evidence(Table),
    /// Small multiples: several pictures of values, side by side.
    Bars(Vec<Bars>),
    /// A table with rows and columns exchanged, for few rows with many figures each.
    Transposed(Table),
    /// A chart.
    Chart(Chart),
    /// A chart that is shown on request, because nothing in it changes.
    FoldedChart(Chart),
    /// A figure that is already drawn. Its values are not in the JSON.
    Figure {
        /// The title.
        title: String,
        /// The drawing.
        #[serde(skip)]
        svg: String,
    },
}

impl Page {
    /// A page without sections.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), sections: Vec::new() }
    }

    /// Adds a section at the end.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The page as an HTML document. Characters that could hide the following text become U+FFFD. All other
    /// text is escaped.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub fn to_html(&self) -> Result<String, serde_json::Error> {
        html::document(self)
    }
}

impl Section {
    /// Whether there is nothing below the heading.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A section without parts.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        let heading = heading.into();
        Self { listed: Some(heading.clone()), heading, parts: Vec::new() }
    }

    /// The same section with another name in the list of sections, or without one.
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
