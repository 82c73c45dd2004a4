//! Pages as a whole: nothing escapes, and what is shown is what the JSON says.

use serde_json::Value;

use super::*;
use crate::{Cell, Column, Row};

/// Names that would do harm if they were more than text.
fn hostile() -> [String; 4] {
    [
        "</script><script>alert(1)</script>".to_owned(),
        "\"' onmouseover='alert(1) &amp; <!--".to_owned(),
        "abc\u{202e}txt.exe\u{0}".to_owned(),
        "x".repeat(10_000),
    ]
}

fn page_of(name: &str) -> Page {
    let mut table = Table::new(name, vec![Column::label("name", name), Column::count("pages", "pages")]);
    table.push(Row::new([Cell::Text(name.to_owned()), Cell::Count(u64::MAX)]));
    table.push(Row::new([Cell::Text("b".to_owned()), Cell::real(0.123_456, 2)]));
    table.note(name);
    let bars = Bars {
        title: name.to_owned(),
        unit: name.to_owned(),
        bars: vec![Bar { name: name.to_owned(), value: 7, range: Some((3, 90)) }],
    };
    let layer = Layer { name: name.to_owned(), unit: name.to_owned(), cells: vec![vec![1, 2], vec![]] };
    let heat = Heat {
        title: name.to_owned(),
        text: name.to_owned(),
        row: name.to_owned(),
        column: name.to_owned(),
        rows: vec![name.to_owned(), "1".to_owned()],
        groups: vec![Group { name: name.to_owned(), rows: 2 }],
        span: None,
        columns: vec![name.to_owned(), "1".to_owned()],
        layers: vec![layer.clone(), layer],
    };
    let mut section = Section::new(name);
    section.push(Part::Lead(name.to_owned()));
    section.push(Part::Text(name.to_owned()));
    section.push(Part::Facts(vec![(name.to_owned(), name.to_owned())]));
    section.push(Part::Table(table.clone()));
    section.push(Part::Evidence(table));
    section.push(Part::Bars(vec![bars]));
    section.push(Part::Chart(Chart::Heat(heat)));
    let mut page = Page::new(name);
    page.push(section);
    page
}

/// The JSON of a page.
fn data(html: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"data\">";
    let from = html.find(begin).expect("the page has its values") + begin.len();
    let end = from + html[from..].find("</script>").expect("the script ends");
    serde_json::from_str(&html[from..end]).expect("the values are JSON")
}

#[test]
fn hostile_names_stay_text() {
    let tags = |html: &str| html.matches('<').count();
    let harmless = tags(&page_of("plain").to_html().unwrap());
    for name in hostile() {
        let html = page_of(&name).to_html().unwrap();
        // A quoted word between backticks would be code; none of these has any.
        assert_eq!(tags(&html), harmless, "{name:.40}");
        assert!(!html.contains("alert(1)</script>"), "{name:.40}");
        assert_eq!(data(&html)["title"], Value::String(name));
        let shown = &html[..html.find("<script").unwrap()];
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{0}'));
    }
}

#[test]
fn the_page_asks_no_network() {
    let html = page_of("plain").to_html().unwrap();
    assert!(html.contains("content=\"default-src &#39;none&#39;;"), "the policy is there");
    for word in ["http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket"] {
        assert!(!html.contains(word), "{word}");
    }
}

/// Texts of all elements of a kind.
fn texts<'h>(html: &'h str, open: &str) -> Vec<&'h str> {
    let rests = html.split(open).skip(1);
    let text = |rest: &'h str| {
        let rest = &rest[rest.find('>').map_or(0, |end| end + 1)..];
        &rest[..rest.find('<').unwrap_or(0)]
    };
    rests.map(text).collect()
}

#[test]
fn each_number_shown_is_that_of_the_json() {
    let html = page_of("plain").to_html().unwrap();
    let json = data(&html);
    let parts = json["sections"][0]["parts"].as_array().unwrap();
    let table = parts.iter().find_map(|part| part.get("table")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let numbers: Vec<&str> = texts(&html, "<td class=\"number\"");
    assert_eq!(rows[0]["pages"], u64::MAX);
    assert_eq!(rows[1]["pages"], 0.123_456);
    assert_eq!(numbers, ["18.447E", "0.12", "18.447E", "0.12", "7"], "rounded as in every table");
    assert!(html.contains(&format!("plain,{}\nb,0.123456", u64::MAX)), "CSV has every digit");
    let bar = &parts.iter().find_map(|part| part.get("bars")).unwrap()[0]["bars"][0];
    assert_eq!((&bar["value"], &bar["range"][1]), (&Value::from(7), &Value::from(90)));
    assert_eq!(texts(&html, "<td class=\"range\""), ["3 to 90"]);
}

#[test]
fn the_script_is_short() {
    assert!(include_str!("page.js").lines().count() <= 400);
}
