//! A page as HTML. Everything that comes from outside passes through [`shown`] and the escaping of `maud`.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Bar, Bars, Chart, Page, Part, Section};
use crate::number::text_of;
use crate::plot::PALETTE;
use crate::{Align, Format, Table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Nothing is fetched, whatever the page says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

pub(super) fn document(page: &Page) -> Result<String, serde_json::Error> {
    // Inside a script only `<` could end it; in JSON it stands in strings only.
    let data = serde_json::to_string(page)?.replace('<', "\\u003c");
    let style = format!("{}{STYLE}", colours());
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (shown(&page.title)) }
                style { (PreEscaped(style)) }
            }
            body {
                header { h1 { bdi { (shown(&page.title)) } } }
                nav aria-label="Sections" {
                    @for (at, section) in page.sections.iter().enumerate() {
                        a href=(format!("#s{at}")) { (shown(&section.heading)) }
                    }
                }
                main {
                    noscript { p.note { "Charts are drawn by a script, which is switched off here. The tables have every number." } }
                    @for (at, each) in page.sections.iter().enumerate() { (section(at, each)) }
                }
                script type="application/json" id="data" { (PreEscaped(data)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(document.into_string())
}

/// Text as it can be shown: characters that turn the direction of what follows, or cannot be seen, become U+FFFD.
fn shown(text: &str) -> String {
    let is_hidden = |character: char| {
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
        turns || (character.is_control() && character != '\n')
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

/// The colours of plots, as the script finds them.
fn colours() -> String {
    let named =
        |(at, (red, green, blue)): (usize, (u8, u8, u8))| format!("--c{at}:rgb({red},{green},{blue});");
    format!(":root{{{}}}\n", PALETTE.into_iter().enumerate().map(named).collect::<String>())
}

fn section(at: usize, section: &Section) -> Markup {
    html! {
        section id=(format!("s{at}")) {
            h2 { (shown(&section.heading)) }
            @for (place, each) in section.parts.iter().enumerate() { (part(each, &format!("{at}.{place}"))) }
        }
    }
}

fn part(part: &Part, place: &str) -> Markup {
    match part {
        Part::Lead(text) => html! { p.lead { (sentence(text)) } },
        Part::Text(text) => html! { p { (sentence(text)) } },
        Part::Facts(facts) => html! {
            dl { @for (name, value) in facts { dt { (shown(name)) } dd { bdi { (shown(value)) } } } }
        },
        Part::Table(shown_table) => {
            html! { div.scroll tabindex="0" { (table(shown_table)) } (copy(shown_table)) }
        }
        Part::Evidence(evidence) => html! {
            details { summary { (shown(evidence.title())) } div.scroll tabindex="0" { (table(evidence)) } (copy(evidence)) }
        },
        Part::Bars(multiples) => html! { div.multiples { @for each in multiples { (bars(each)) } } },
        Part::Chart(shown_chart) => chart(shown_chart, place),
    }
}

/// A sentence whose quoted commands are set as code.
fn sentence(text: &str) -> Markup {
    html! {
        @for (at, piece) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { bdi { (shown(piece)) } } } @else { (shown(piece)) }
        }
    }
}

fn table(table: &Table) -> Markup {
    let side = |align: Align| if align == Align::Right { "number" } else { "name" };
    html! {
        table {
            caption { (shown(table.title())) }
            thead { tr { @for column in table.columns() { th scope="col" class=(side(column.align)) { (shown(&column.heading_with_unit())) } } } }
            tbody {
                @for row in table.rows() {
                    tr { @for (column, cell) in table.columns().iter().zip(&row.cells) { td class=(side(column.align)) { bdi { (shown(&text_of(cell))) } } } }
                }
            }
        }
        @for note in table.notes() { p.note { (sentence(note)) } }
    }
}

/// The exact table, to copy.
fn copy(table: &Table) -> Markup {
    let mut csv = Vec::new();
    // Memory takes all of it; a table without provenance has nothing else that could fail.
    let is_written = Format::Csv.exporter().export(table, &mut csv).is_ok();
    let csv = String::from_utf8_lossy(&csv).into_owned();
    html! { @if is_written { details.csv { summary { "CSV, every digit" } pre tabindex="0" { (shown(&csv)) } } } }
}

fn bars(bars: &Bars) -> Markup {
    let scale = bars.scale();
    html! {
        table.bars {
            caption { (shown(&bars.title)) @if !bars.unit.is_empty() { " (" (shown(&bars.unit)) ")" } }
            tbody {
                @for bar in &bars.bars {
                    tr { th scope="row" { (shown(&bar.name)) } td.number { (bar.value) } td.track { (track(bar, scale)) } td.range { (range(bar)) } }
                }
            }
        }
    }
}

fn range(bar: &Bar) -> Markup {
    html! { @if let Some((low, high)) = bar.range { (low) " to " (high) } }
}

fn track(bar: &Bar, scale: u64) -> Markup {
    let percent = |value: u64| value as f64 * 100.0 / scale as f64;
    html! {
        span.track {
            span.bar style=(format!("width:{:.2}%", percent(bar.value.min(scale)))) {}
            @if let Some((low, high)) = bar.range {
                @let (low, end) = (percent(low.min(scale)), percent(high.min(scale)));
                span class=(if high > scale { "error open" } else { "error" }) style=(format!("left:{low:.2}%;width:{:.2}%", end - low)) {}
            }
        }
    }
}

fn chart(chart: &Chart, place: &str) -> Markup {
    html! {
        figure data-chart=(place) {
            figcaption { (shown(chart.title())) }
            @if chart.layers().len() > 1 {
                fieldset {
                    legend.hidden { "Shown" }
                    @for (at, layer) in chart.layers().iter().enumerate() {
                        label { input type="radio" name=(format!("layer{place}")) value=(at) checked[at == 0]; " " (shown(&layer.name)) }
                    }
                }
            }
            div.legend aria-hidden="true" {}
            canvas tabindex="0" role="img" aria-label=(shown(chart.text())) {}
            output aria-live="polite" {}
            p.text { (shown(chart.text())) }
        }
    }
}
