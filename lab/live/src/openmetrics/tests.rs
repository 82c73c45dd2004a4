//! Tests that the text follows the format's rules: metadata before samples, each metric once, escaped labels,
//! `# EOF`.

use std::collections::BTreeSet;

use super::*;
use crate::counters::CpuCounts;
use crate::reading::Reading;
use crate::unchanged::Unchanged;
use crate::verdict::Verdict;
use crate::view::Counted;

fn view() -> View {
    let zoneinfo = "Node 0, zone Normal\n pages free 20\n low 30\n managed 100\n cpu: 0\n count: 4\n high: 9\n batch: 3\n \
                    high_min: 2\n high_max: 90\n cpu: 1\n count: 5\n high: 9\n batch: 3\n";
    let reading = |at_ns| Reading {
        at_ns,
        zoneinfo: pageset_trace::Zoneinfo::parse(zoneinfo).unwrap(),
        vmstat: pageset_trace::Vmstat::parse("pgfree 3\npgalloc_normal 4\n").unwrap(),
    };
    let counts = |refilled| [CpuCounts { cpu: 0, counts: [Some(refilled), Some(0), None, Some(2)] }];
    let share = |estimate, at_most| Some(Share { estimate, at_most });
    View {
        verdict: Some(Verdict {
            answer: Answer::Perhaps,
            why: None,
            waits_percent: Some(1.0),
            visits_percent: share(0.5, 2.5),
            all_percent: share(1.5, 3.5),
        }),
        counted: Some(Counted::between(&counts(0), &counts(8), 2_000_000_000)),
        ..View::between(&reading(0), &reading(2_000_000_000), &Unchanged::default())
    }
}

/// Violations of the format's rules for gauges.
fn offences(text: &str) -> Vec<String> {
    let mut offences = Vec::new();
    let mut finished = BTreeSet::new();
    let mut samples = BTreeSet::new();
    let mut current = String::new();
    let Some(lines) = text.strip_suffix("# EOF\n") else { return vec!["does not end with # EOF".to_owned()] };
    for line in lines.lines() {
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (kind, name, value) = (words.next(), words.next().unwrap_or_default(), words.next());
            match (kind, value) {
                (Some("TYPE"), Some("gauge")) => {
                    if !finished.insert(name.to_owned()) {
                        offences.push(format!("{name} is there twice"));
                    }
                    name.clone_into(&mut current);
                }
                (Some("HELP"), Some(_)) if name == current => {}
                (Some("UNIT"), Some(unit)) if name == current && name.ends_with(&format!("_{unit}")) => {}
                _ => offences.push(format!("metadata: {line}")),
            }
            continue;
        }
        let Some((series, value)) = line.rsplit_once(' ') else {
            offences.push(format!("no value: {line}"));
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        if name != current || !is_name(name) || !labels.ends_with('}') || value.parse::<f64>().is_err() {
            offences.push(format!("sample: {line}"));
        }
        if !samples.insert(series.to_owned()) {
            offences.push(format!("sample twice: {line}"));
        }
    }
    offences
}

#[test]
fn the_text_keeps_the_rules() {
    let text = openmetrics(&view());
    assert_eq!(offences(&text), Vec::<String>::new(), "{text}");
    for line in [
        "pageset_count_pages{node=\"0\",zone=\"Normal\",cpu=\"1\"} 5",
        "pageset_high_max_pages{node=\"0\",zone=\"Normal\",cpu=\"0\"} 90",
        "pageset_zone_above_low_pages{node=\"0\",zone=\"Normal\"} -10",
        "pageset_refilled_blocks_per_second{cpu=\"0\"} 4",
        "pageset_interval_seconds 2",
        "pageset_verdict{answer=\"no\"} 0",
        "pageset_verdict{answer=\"perhaps\"} 1",
        "pageset_verdict{answer=\"unknown\"} 0",
        "pageset_cpu_time_ratio{of=\"all\",bound=\"at_most\"} 0.035",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // There is no metric for a tracepoint that the kernel does not have.
    assert!(!text.contains("pageset_refills_per_second"), "{text}");
}

#[test]
fn an_unknown_verdict_has_no_figures() {
    let mut view = view();
    view.judge(None, 1.0);
    let text = openmetrics(&view);
    assert_eq!(offences(&text), Vec::<String>::new(), "{text}");
    assert!(text.contains("pageset_verdict{answer=\"unknown\"} 1\n"), "{text}");
    assert!(!text.contains("pageset_cpu_time_ratio"), "{text}");
}

#[test]
fn the_rules_find_what_breaks_them() {
    for wrong in [
        "# TYPE a gauge\na 1\n",
        "a 1\n# EOF\n",
        "# TYPE a gauge\na x\n# EOF\n",
        "# TYPE a gauge\n# TYPE a gauge\n# EOF\n",
        "# TYPE a gauge\n# UNIT a seconds\n# EOF\n",
        "# TYPE a gauge\na{b=\"c\"} 1\na{b=\"c\"} 2\n# EOF\n",
    ] {
        assert!(!offences(wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn labels_are_escaped() {
    assert_eq!(Labels::default().with("a", "b\\c\"d\ne").text(), r#"{a="b\\c\"d\ne"}"#);
}
