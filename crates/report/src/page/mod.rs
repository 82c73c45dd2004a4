//! Results as one HTML file that needs nothing else: no network, no other file.
//!
//! A [`Page`] is a value like a [`Table`]: sections with sentences, tables and charts. [`Page::to_html`] turns it into
//! text; the same page gives the same bytes. All of its values are in the file once more as JSON, with every digit, and
//! charts are drawn from those by the script. A reader without a script has the tables.
//!
//! In the order in which a page meets them:
//!
//! - `chart`: what is drawn by the script: lines over time, heat maps.
//! - `bars`: what needs no script: values side by side, with their ranges.
//! - `terms`: what explains a term where the mouse rests on it.
//! - `html`: the parts as elements. `writer` writes these, and escapes all text.
//! - `page.css`, `page.js`: what the file brings along, as they are.

mod bars;
mod chart;
mod html;
mod terms;
#[cfg(test)]
mod tests;
mod writer;

pub use bars::{Bar, Bars};
pub use chart::{Change, Chart, Group, Heat, Height, Layer, Line, Lines, Look, Marks, Span};

use serde::Serialize;

use crate::Table;
use crate::plot::{Figure, PlotError};

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    title: String,
    sections: Vec<Section>,
}

impl Part {
    /// A table as it is narrower: with its rows one below the other, or side by side.
    #[must_use]
    pub fn narrow_table(table: Table) -> Self {
        if table.rows().len() < table.columns().len() { Self::Transposed(table) } else { Self::Table(table) }
    }

    /// A figure as it is drawn.
    ///
    /// # Errors
    /// As [`Figure::to_svg`].
    pub fn figure(figure: &Figure) -> Result<Self, PlotError> {
        Ok(Self::Figure { title: figure.title().to_owned(), svg: figure.to_svg()? })
    }
}

/// A heading and what stands below it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    heading: String,
    /// What the list of sections calls it; nothing if it is not there.
    #[serde(skip)]
    listed: Option<String>,
    parts: Vec<Part>,
}

/// What a section is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A sentence that is read first.
    Lead(String),
    /// A sentence.
    Text(String),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
    /// A table, with its CSV to copy.
    Table(Table),
    /// A table that is shown when asked for, with its CSV to copy.
    Evidence(Table),
    /// Small multiples: values side by side, and such pictures side by side.
    Bars(Vec<Bars>),
    /// The same with a column for each row: of few rows that have many figures each.
    Transposed(Table),
    /// A chart.
    Chart(Chart),
    /// A chart that is shown when asked for, since nothing changes in it.
    FoldedChart(Chart),
    /// A figure that is drawn already; its values are not in the JSON.
    Figure {
        /// What it shows.
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

    /// The page as an HTML document. Characters that could hide what follows become U+FFFD; all other text is escaped.
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

    /// The same section under another name in the list of sections, or without one.
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
