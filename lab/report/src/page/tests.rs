//! Tests whole pages. Hostile text must do no harm, and the shown values must equal the values in the JSON.

use serde_json::Value;

use super::*;
use crate::{Cell, Column, Row};

/// Names that would do harm if they were not escaped.
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
    section.push(Part::Transposed(table.clone()));
    section.push(Part::Evidence(table));
    section.push(Part::Bars(vec![bars]));
    section.push(Part::FoldedChart(Chart::Heat(heat.clone())));
    section.push(Part::Chart(Chart::Heat(heat)));
    let mut page = Page::new(name);
    page.push(section);
    page
}

/// Returns the JSON of a page.
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
        // A quoted word between backticks would become code, but none of these names has such a word.
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

/// Returns the texts of all elements of one kind.
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
    assert_eq!(
        numbers,
        ["18.447E", "0.12", "18.447E", "0.12", "18.447E", "0.12", "7"],
        "rounded as in every table"
    );
    assert!(html.contains(&format!("plain,{}\nb,0.123456", u64::MAX)), "CSV has every digit");
    let bar = &parts.iter().find_map(|part| part.get("bars")).unwrap()[0]["bars"][0];
    assert_eq!((&bar["value"], &bar["range"][1]), (&Value::from(7), &Value::from(90)));
    assert_eq!(texts(&html, "<td class=\"range\""), ["3 to 90"]);
}

#[test]
fn a_table_of_few_rows_and_many_columns_is_turned() {
    let columns = ["policy", "a", "b", "c"];
    let columns =
        columns.map(|key| if key == "policy" { Column::label(key, key) } else { Column::count(key, key) });
    let mut table = Table::new("t", columns.into());
    for name in ["x", "y"] {
        table.push(Row::new([name.into(), Cell::Count(1), Cell::Count(2), Cell::Count(3)]));
    }
    let Part::Transposed(turned) = Part::narrow_table(table.clone()) else { panic!("it is turned") };
    let mut section = Section::new("s");
    section.push(Part::Transposed(turned));
    let mut page = Page::new("p");
    page.push(section);
    let html = page.to_html().unwrap();
    assert_eq!(html.matches("<tr>").count(), 4, "a row for each figure");
    assert!(html.contains("policy,a,b,c\nx,1,2,3"), "the CSV stays as it is");
    assert_eq!(data(&html)["sections"][0]["parts"][0]["transposed"]["rows"][1]["c"], 3);
    for _ in 0..3 {
        table.push(Row::new(["z".into(), Cell::Count(1), Cell::Count(2), Cell::Count(3)]));
    }
    assert!(matches!(Part::narrow_table(table), Part::Table(_)), "many rows stand one below the other");
}

#[test]
fn charts_over_time_say_that_they_can_be_enlarged() {
    let line = Line { name: "held".to_owned(), look: Look::Plain, points: vec![(0.0, 1, 2)] };
    let lines = LineChart {
        title: "Pages in page sets".to_owned(),
        text: "From 1 to 2.".to_owned(),
        unit: "pages".to_owned(),
        height: Height::Linear,
        span: Span { seconds: 2.0, link: 0 },
        lines: vec![line],
        marks: Vec::new(),
        changes: vec![Change { after: 0.5, before: 0.6, text: "vm.stat_interval from 1 to 5".to_owned() }],
    };
    let mut section = Section::new("Over time");
    section.push(Part::FoldedChart(Chart::Lines(lines.clone())));
    section.push(Part::Chart(Chart::Lines(lines)));
    let mut page = Page::new("p");
    page.push(section);
    let html = page.to_html().unwrap();
    assert_eq!(html.matches("<p class=\"drag\">Drag to enlarge").count(), 2);
    assert!(
        html.contains("<details><summary>Pages in page sets: nothing changed</summary><figure"),
        "{html}"
    );
    assert!(
        html.contains(
            "<abbr title=\"A page set (PCP, per-CPU page set) has the free pages that one CPU keeps of one"
        ),
        "terms explain themselves"
    );
    let part = &data(&html)["sections"][0]["parts"][1];
    assert_eq!(part["chart"]["changes"][0]["text"], "vm.stat_interval from 1 to 5");
    assert!(!page_of("plain").to_html().unwrap().contains("class=\"drag\""), "a matrix has no time");
}

#[test]
fn figures_follow_dark_colours() {
    let css = include_str!("page.css");
    assert!(css.contains("@media (prefers-color-scheme:dark){figure.plot svg{filter:invert("), "{css}");
}

#[test]
fn the_script_is_short() {
    assert!(include_str!("page.js").lines().count() <= 400);
}
