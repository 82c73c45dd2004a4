//! The option `--html FILE`: a subcommand also writes its output as an HTML page.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;
use pageset_report::page::{Bar, Bars, Page, Part, Section};
use pageset_report::plot::Figure;
use pageset_report::{Cell, Kind, Provenance, Table};

use crate::output::{self, Existing};

/// The option `--html`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PageArgs {
    /// Also write figures and tables to FILE, as one HTML page that needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,
}

impl PageArgs {
    /// Whether the user gave `--html`.
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.html.is_some()
    }

    /// Writes the page, if the user gave `--html`.
    pub(crate) fn write(&self, existing: Existing, make: impl FnOnce() -> Result<Page>) -> Result<()> {
        let Some(path) = &self.html else { return Ok(()) };
        let html = make()?.to_html()?;
        output::write_file(path, existing, |out| Ok(out.write_all(html.as_bytes())?))
    }
}

/// Makes a page of the given sections, without empty sections.
pub(crate) fn page(title: &str, sections: impl IntoIterator<Item = Section>) -> Page {
    let mut page = Page::new(title);
    let filled = sections.into_iter().filter(|section| !section.is_empty());
    filled.for_each(|section| page.push(section));
    page
}

/// Makes the section `Figures` with the drawn figures.
pub(crate) fn figures<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Result<Section> {
    let mut section = Section::new("Figures");
    for figure in figures {
        section.push(Part::figure(figure)?);
    }
    Ok(section)
}

/// Makes the section `Tables` with the given tables.
pub(crate) fn tables(tables: impl IntoIterator<Item = Table>) -> Section {
    let mut section = Section::new("Tables");
    tables.into_iter().for_each(|table| section.push(Part::narrow_table(table)));
    section
}

/// Makes a section with a heading and sentences.
pub(crate) fn sentences<'s>(heading: &str, sentences: impl IntoIterator<Item = &'s str>) -> Section {
    let mut section = Section::new(heading);
    sentences.into_iter().for_each(|sentence| section.push(Part::Text(sentence.to_owned())));
    section
}

/// Draws each column of numbers as a picture, with a bar for each row. A bar's name is the first label of its
/// row.
pub(crate) fn multiples(table: &Table) -> Section {
    let label = table.columns().iter().position(|column| column.kind == Kind::Label);
    let name = |cells: &[Cell]| match label.map(|label| &cells[label]) {
        Some(Cell::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let numbers = table.columns().iter().enumerate().filter(|(_, column)| column.kind != Kind::Label);
    let bars = numbers.map(|(at, column)| Bars {
        title: column.heading.clone(),
        unit: column.unit.clone(),
        bars: table
            .rows()
            .iter()
            .filter_map(|row| {
                let value = row.cells[at].number()?;
                Some(Bar { name: name(&row.cells), value: value.round().max(0.0) as u64, range: None })
            })
            .collect(),
    });
    let mut section = Section::new("Side by side");
    section.push(Part::Bars(bars.collect()));
    section
}

/// Makes a section with the provenance (command, version, commit, machine) of the results.
pub(crate) fn origin(provenance: &Provenance) -> Section {
    let mut section = Section::new("Where this comes from");
    let facts = provenance.facts().into_iter().map(|(name, value)| (name.to_owned(), value));
    section.push(Part::Facts(facts.collect()));
    section
}
