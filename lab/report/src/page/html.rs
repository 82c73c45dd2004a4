//! Writes a page as HTML.

use super::terms::{Place, pieces};
use super::writer::Html;
use super::{Bar, Bars, Chart, Page, Part, Section};
use crate::number::text_of;
use crate::plot::PALETTE;
use crate::{Align, Format, Table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The content security policy. Under the policy, a browser fetches nothing, whatever the page contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";
/// The help text about the mouse in a chart over time.
const DRAG: &str = "Drag to enlarge a part of all charts; a double-click or Esc shows all.";
const NO_SCRIPT: &str =
    "Charts are drawn by a script, which is switched off here. The tables have every number.";

pub(super) fn document(page: &Page) -> Result<String, serde_json::Error> {
    // Escape each `<`, because only `<` could end the script element. In JSON, `<` occurs only inside
    // strings.
    let data = serde_json::to_string(page)?.replace('<', "\\u003c");
    let mut html = Html::default();
    html.as_it_is("<!DOCTYPE html>\n");
    html.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], |html| head(page, html));
        html.element("body", &[], |html| {
            html.element("header", &[], |html| html.words("h1", &[], &page.title));
            html.element("nav", &[("aria-label", "Sections")], |html| {
                for (at, section) in page.sections.iter().enumerate() {
                    if let Some(name) = &section.listed {
                        html.words("a", &[("href", &format!("#s{at}"))], name);
                    }
                }
            });
            html.element("main", &[], |html| {
                html.element("noscript", &[], |html| html.words("p", &[("class", "note")], NO_SCRIPT));
                page.sections.iter().enumerate().for_each(|(at, each)| section(at, each, html));
            });
            html.element("script", &[("type", "application/json"), ("id", "data")], |html| {
                html.as_it_is(&data);
            });
            html.element("script", &[], |html| html.as_it_is(SCRIPT));
        });
    });
    Ok(html.finish())
}

fn head(page: &Page, html: &mut Html) {
    html.begin("meta", &[("charset", "utf-8")]);
    html.begin("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    html.begin("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.words("title", &[], &page.title);
    html.element("style", &[], |html| {
        let named =
            |(at, (red, green, blue)): (usize, &(u8, u8, u8))| format!("--c{at}:rgb({red},{green},{blue});");
        let colours: String = PALETTE.iter().enumerate().map(named).collect();
        html.as_it_is(&format!(":root{{{colours}}}\n{STYLE}"));
    });
}

fn section(at: usize, section: &Section, html: &mut Html) {
    html.element("section", &[("id", &format!("s{at}"))], |html| {
        html.element("h2", &[], |html| explained(&section.heading, Place::Label, html));
        for (place, each) in section.parts.iter().enumerate() {
            part(each, &format!("{at}.{place}"), html);
        }
    });
}

fn part(part: &Part, place: &str, html: &mut Html) {
    match part {
        Part::Lead(text) => html.element("p", &[("class", "lead")], |html| sentence(text, html)),
        Part::Text(text) => html.element("p", &[], |html| sentence(text, html)),
        Part::Facts(facts) => html.element("dl", &[], |html| {
            for (name, value) in facts {
                html.element("dt", &[], |html| explained(name, Place::Label, html));
                html.element("dd", &[], |html| html.words("bdi", &[], value));
            }
        }),
        Part::Table(shown) => table_with_copy(shown, table, html),
        Part::Transposed(shown) => table_with_copy(shown, transposed, html),
        Part::Evidence(evidence) => html.element("details", &[], |html| {
            html.element("summary", &[], |html| explained(evidence.title(), Place::Label, html));
            table_with_copy(evidence, table, html);
        }),
        Part::Bars(multiples) => html.element("div", &[("class", "multiples")], |html| {
            multiples.iter().for_each(|each| bars(each, html));
        }),
        Part::Chart(shown) => chart(shown, place, html),
        Part::FoldedChart(shown) => html.element("details", &[], |html| {
            html.words("summary", &[], &format!("{}: nothing changed", shown.title()));
            chart(shown, place, html);
        }),
        Part::Figure { title, svg } => html.element("figure", &[("class", "plot")], |html| {
            html.words("figcaption", &[("class", "hidden")], title);
            html.as_it_is(svg);
        }),
    }
}

/// Writes a sentence. Quoted commands in the sentence are formatted as code.
fn sentence(text: &str, html: &mut Html) {
    for (at, piece) in text.split('`').enumerate() {
        if at % 2 == 1 { html.words("code", &[], piece) } else { explained(piece, Place::Sentence, html) }
    }
}

/// Writes a text with explanations of its terms.
fn explained(text: &str, place: Place, html: &mut Html) {
    for piece in pieces(text, place) {
        match piece.meaning {
            Some(meaning) => html.words("abbr", &[("title", meaning)], piece.text),
            None => html.text(piece.text),
        }
    }
}

/// Writes a table, and all its digits as CSV for copying.
fn table_with_copy(shown: &Table, write: fn(&Table, &mut Html), html: &mut Html) {
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| write(shown, html));
    shown
        .notes()
        .iter()
        .for_each(|note| html.element("p", &[("class", "note")], |html| sentence(note, html)));
    let mut csv = Vec::new();
    // Writing to memory never fails.
    if Format::Csv.exporter().export(shown, &mut csv).is_ok() {
        html.element("details", &[("class", "csv")], |html| {
            html.words("summary", &[], "CSV, every digit");
            html.words("pre", &[("tabindex", "0")], &String::from_utf8_lossy(&csv));
        });
    }
}

/// The CSS class for the alignment of a cell.
const fn side(align: Align) -> &'static str {
    match align {
        Align::Right => "number",
        Align::Left => "name",
    }
}

/// Writes a table with rows and columns exchanged.
fn transposed(table: &Table, html: &mut Html) {
    html.element("table", &[("class", "transposed")], |html| {
        html.element("caption", &[], |html| explained(table.title(), Place::Label, html));
        html.element("tbody", &[], |html| {
            for (at, column) in table.columns().iter().enumerate() {
                html.element("tr", &[], |html| {
                    let heading = column.heading_with_unit();
                    html.element("th", &[("scope", "row")], |html| explained(&heading, Place::Label, html));
                    for row in table.rows() {
                        html.words("td", &[("class", side(column.align))], &text_of(&row.cells[at]));
                    }
                });
            }
        });
    });
}

fn table(table: &Table, html: &mut Html) {
    html.element("table", &[], |html| {
        html.element("caption", &[], |html| explained(table.title(), Place::Label, html));
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| {
                for column in table.columns() {
                    let attributes = [("scope", "col"), ("class", side(column.align))];
                    let heading = column.heading_with_unit();
                    html.element("th", &attributes, |html| explained(&heading, Place::Label, html));
                }
            });
        });
        html.element("tbody", &[], |html| {
            for row in table.rows() {
                html.element("tr", &[], |html| {
                    for (column, cell) in table.columns().iter().zip(&row.cells) {
                        html.words("td", &[("class", side(column.align))], &text_of(cell));
                    }
                });
            }
        });
    });
}

fn bars(bars: &Bars, html: &mut Html) {
    let scale = bars.scale();
    let unit = if bars.unit.is_empty() { String::new() } else { format!(" ({})", bars.unit) };
    html.element("table", &[("class", "bars")], |html| {
        let caption = format!("{}{unit}", bars.title);
        html.element("caption", &[], |html| explained(&caption, Place::Label, html));
        html.element("tbody", &[], |html| {
            for bar in &bars.bars {
                html.element("tr", &[], |html| {
                    html.words("th", &[("scope", "row")], &bar.name);
                    html.words("td", &[("class", "number")], &bar.value.to_string());
                    html.element("td", &[], |html| track(bar, scale, html));
                    let range = bar.range.map(|(low, high)| format!("{low} to {high}"));
                    html.words("td", &[("class", "range")], &range.unwrap_or_default());
                });
            }
        });
    });
}

fn track(bar: &Bar, scale: u64, html: &mut Html) {
    let percent = |value: u64| value.min(scale) as f64 * 100.0 / scale as f64;
    html.element("span", &[("class", "track")], |html| {
        let style = format!("width:{:.2}%", percent(bar.value));
        html.words("span", &[("class", "bar"), ("style", &style)], "");
        if let Some((low, high)) = bar.range {
            let style = format!("left:{:.2}%;width:{:.2}%", percent(low), percent(high) - percent(low));
            let class = if high > scale { "error open" } else { "error" };
            html.words("span", &[("class", class), ("style", &style)], "");
        }
    });
}

fn chart(chart: &Chart, place: &str, html: &mut Html) {
    html.element("figure", &[("data-chart", place)], |html| {
        html.element("figcaption", &[], |html| explained(chart.title(), Place::Label, html));
        if chart.has_time() {
            html.words("p", &[("class", "drag")], DRAG);
        }
        if chart.layers().len() > 1 {
            html.element("fieldset", &[], |html| layers(chart, place, html));
        }
        html.words("div", &[("class", "legend"), ("aria-hidden", "true")], "");
        html.words("canvas", &[("tabindex", "0"), ("role", "img"), ("aria-label", chart.text())], "");
        html.words("output", &[("aria-live", "polite")], "");
        html.words("p", &[("class", "text")], chart.text());
    });
}

/// Writes the controls for choosing the layer of a heat map.
fn layers(chart: &Chart, place: &str, html: &mut Html) {
    html.words("legend", &[("class", "hidden")], "Shown");
    let name = format!("layer{place}");
    for (at, layer) in chart.layers().iter().enumerate() {
        html.element("label", &[], |html| {
            let at = at.to_string();
            let input = [("type", "radio"), ("name", name.as_str()), ("value", at.as_str()), ("checked", "")];
            html.begin("input", if at == "0" { &input } else { &input[..3] });
            html.text(&format!(" {}", layer.name));
        });
    }
}
