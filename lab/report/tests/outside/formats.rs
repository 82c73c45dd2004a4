//! Tests all formats of one fixed result. The expected texts are in this file, so that its readers see the
//! output that users see.

use pageset_report::{Cell, Column, Format, Provenance, Row, Seeds, Table, json_document, relative_to_first};

fn result() -> Table {
    let columns = vec![
        Column::label("policy", "policy"),
        Column::count("allocations", "allocations"),
        Column::ratio("pcp_hit_percent", "PCP hits").with_unit("%"),
        Column::count("refilled_pages", "refilled pages"),
        Column::ratio("pages_per_acquisition", "pages per acquisition"),
    ];
    let mut table = Table::new("Replay of tcp, 54775 events", columns);
    table.push(Row::new([
        "base".into(),
        Cell::Count(9048),
        Cell::real(97.5497, 1),
        Cell::Count(12_345_678),
        Cell::real(63.0, 2),
    ]));
    table.push(Row::new([
        "linux-6.12".into(),
        Cell::Count(9048),
        Cell::Absent,
        Cell::Count(2_500_000_000),
        Cell::real(101.25, 2),
    ]));
    table.note("606 pages were allocated before the recording began.");
    table.with_provenance(Provenance {
        command: "pageset replay tcp.pgtrace --policy base,linux-6.12".to_owned(),
        version: "pageset 0.1.0".to_owned(),
        commit: Some("0123abc".to_owned()),
        machine: "2 CPUs, 1 node, Linux 6.12.117".to_owned(),
        policies: vec!["base".to_owned(), "linux-6.12".to_owned()],
        seeds: Some(Seeds::one(42)),
    })
}

#[track_caller]
fn check(format: Format, expected: &str) {
    let text = format.exporter().to_string(&result());
    assert_eq!(text, expected, "\n--- got:\n{text}\n--- expected:\n{expected}");
}

#[test]
fn text() {
    check(
        Format::Table,
        "\
Replay of tcp, 54775 events

                          PCP
                         hits  refilled    pages per
policy      allocations     %     pages  acquisition
----------------------------------------------------
base               9048  97.5  12345678        63.00
linux-6.12         9048     -    2.500G       101.25

606 pages were allocated before the recording began.
G, T, P, E = 10^9, 10^12, 10^15, 10^18, rounded; the JSON and CSV formats have
every digit.

command  pageset replay tcp.pgtrace --policy base,linux-6.12
version  pageset 0.1.0
commit   0123abc
machine  2 CPUs, 1 node, Linux 6.12.117
policies base, linux-6.12
seed     42
",
    );
}

#[test]
fn json() {
    check(
        Format::Json,
        r#"{
  "title": "Replay of tcp, 54775 events",
  "columns": [
    {
      "key": "policy",
      "heading": "policy",
      "kind": "label"
    },
    {
      "key": "allocations",
      "heading": "allocations",
      "kind": "count"
    },
    {
      "key": "pcp_hit_percent",
      "heading": "PCP hits",
      "unit": "%",
      "kind": "ratio"
    },
    {
      "key": "refilled_pages",
      "heading": "refilled pages",
      "kind": "count"
    },
    {
      "key": "pages_per_acquisition",
      "heading": "pages per acquisition",
      "kind": "ratio"
    }
  ],
  "rows": [
    {
      "policy": "base",
      "allocations": 9048,
      "pcp_hit_percent": 97.5497,
      "refilled_pages": 12345678,
      "pages_per_acquisition": 63.0
    },
    {
      "policy": "linux-6.12",
      "allocations": 9048,
      "pcp_hit_percent": null,
      "refilled_pages": 2500000000,
      "pages_per_acquisition": 101.25
    }
  ],
  "notes": [
    "606 pages were allocated before the recording began."
  ],
  "provenance": {
    "command": "pageset replay tcp.pgtrace --policy base,linux-6.12",
    "version": "pageset 0.1.0",
    "commit": "0123abc",
    "machine": "2 CPUs, 1 node, Linux 6.12.117",
    "policies": [
      "base",
      "linux-6.12"
    ],
    "seeds": {
      "first": 42,
      "count": 1
    }
  }
}
"#,
    );
}

#[test]
fn csv() {
    let run = "\"pageset replay tcp.pgtrace --policy base,linux-6.12\",pageset 0.1.0,0123abc,\
        \"2 CPUs, 1 node, Linux 6.12.117\",\"base, linux-6.12\",42";
    let expected = format!(
        "policy,allocations,pcp_hit_percent,refilled_pages,pages_per_acquisition,\
         run_command,run_version,run_commit,run_machine,run_policies,run_seed\n\
         base,9048,97.5497,12345678,63,{run}\n\
         linux-6.12,9048,,2500000000,101.25,{run}\n"
    );
    check(Format::Csv, &expected);
}

#[test]
fn markdown() {
    check(
        Format::Markdown,
        "\
**Replay of tcp, 54775 events**

| policy | allocations | PCP hits (%) | refilled pages | pages per acquisition |
| --- | ---: | ---: | ---: | ---: |
| base | 9048 | 97.5 | 12345678 | 63.00 |
| linux-6.12 | 9048 | - | 2.500G | 101.25 |

- 606 pages were allocated before the recording began.
- G, T, P, E = 10^9, 10^12, 10^15, 10^18, rounded; the JSON and CSV formats have every digit.
- command: `pageset replay tcp.pgtrace --policy base,linux-6.12`
- version: `pageset 0.1.0`
- commit: `0123abc`
- machine: `2 CPUs, 1 node, Linux 6.12.117`
- policies: `base, linux-6.12`
- seed: `42`
",
    );
}

#[test]
fn relative_tables_go_through_the_same_exporters() {
    let relative = relative_to_first(&result(), &["refilled_pages", "allocations"]);
    let text = Format::Table.exporter().to_string(&relative);
    assert!(text.contains("\nlinux-6.12        100.0     -   20250.0       101.25\n"), "{text}");
    assert!(text.contains("\nFirst row = 100: allocations, refilled pages.\n"), "{text}");
}

/// A table with one wide text column and enough numbers for several blocks.
fn wide() -> Table {
    let mut columns = vec![Column::label("recording", "recording")];
    columns.extend((0..12).map(|index| Column::count(&format!("counter_{index}"), "some counter")));
    let mut table = Table::new("caf\u{e9} at noon", columns);
    for name in ["fork", "a very long name of a recording that goes on and on, and on"] {
        let mut cells = vec![Cell::from(name)];
        cells.extend((0..12).map(|index| Cell::Count(10u64.pow(index))));
        table.push(Row::new(cells));
    }
    table
}

#[test]
fn wide_tables_are_split_and_every_block_names_its_rows() {
    let text = Format::Table.exporter().to_string(&wide());
    for line in text.lines() {
        assert!(line.len() <= 80, "{} columns: {line}", line.len());
        assert!(line.is_ascii(), "not ASCII: {line}");
        assert_eq!(line, line.trim_end(), "trailing spaces");
    }
    let blocks = text.matches("\nrecording ").count();
    assert!(blocks > 1, "{text}");
    assert_eq!(text.matches("\nfork ").count(), blocks, "{text}");
    for value in (0..9).map(|digits| 10u64.pow(digits).to_string()) {
        let shown = text.split_whitespace().filter(|word| **word == value).count();
        assert_eq!(shown, 2, "{value} stands in both rows\n{text}");
    }
    assert!(text.starts_with("caf? at noon\n"), "{text}");
}

#[test]
fn no_table_is_wider_than_80_columns() {
    for label in [1, 20, 38, 39, 100] {
        for numbers in 0..14 {
            for heading in ["n", "pages per acquisition", "a_heading_of_a_single_word_that_is_far_too_long"] {
                let mut columns = vec![Column::label("name", "name")];
                let number = |index| Column::count(&format!("k{index}"), heading).with_unit("pages");
                columns.extend((0..numbers).map(number));
                let mut table = Table::new("t", columns);
                let cells = (0..numbers).map(|_| Cell::Count(999_999_999));
                table.push(Row::new([Cell::Text("x".repeat(label))].into_iter().chain(cells)));
                let text = Format::Table.exporter().to_string(&table);
                let width = text.lines().map(str::len).max().unwrap();
                assert!(width <= 80, "{width} columns with a label of {label}, {numbers} numbers\n{text}");
                assert_eq!(text.matches("999999999").count(), numbers, "{text}");
            }
        }
    }
}

#[test]
fn a_table_without_rows_or_columns_is_still_written() {
    for format in Format::ALL {
        let text = format.exporter().to_string(&Table::new("nothing", Vec::new()));
        assert!(text.ends_with('\n'), "{format}: {text:?}");
        let text = format.exporter().to_string(&Table::new("no rows", vec![Column::count("pages", "pages")]));
        assert!(text.contains("pages"), "{format}: {text:?}");
    }
}

#[test]
fn markup_in_a_name_stays_in_its_cell() {
    let mut table = Table::new("t", vec![Column::label("name", "name")]);
    table.push(Row::new(["a|b\n*c*".into()]));
    let text = Format::Markdown.exporter().to_string(&table);
    assert!(text.contains("| a\\|b \\*c\\* |\n"), "{text}");
    let text = Format::Csv.exporter().to_string(&table);
    assert_eq!(text, "name\n\"a|b\n*c*\"\n");
}

#[test]
fn documents_around_a_table_are_json_too() {
    #[derive(serde::Serialize)]
    struct Document {
        trace: &'static str,
        table: Table,
    }
    let mut out = Vec::new();
    let table = Table::new("t", Vec::new());
    json_document(&Document { trace: "tcp", table }, &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["trace"], "tcp");
    assert_eq!(value["table"]["title"], "t");
}

#[test]
fn errors_of_the_writer_are_passed_on() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for format in Format::ALL {
        let error = format.exporter().export(&result(), &mut Full).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{format}");
    }
}
