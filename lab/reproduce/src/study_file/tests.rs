//! Tests built-in studies, a study of a user, and study files with mistakes.

use std::fs;
use std::path::Path;

use pageset_report::comparison::Band;
use pageset_sim::{Machine, TickPhase};

use super::*;
use crate::metric::Metric;
use crate::published::published;

#[track_caller]
fn bundled(name: &str) -> StudyFile {
    StudyFile::bundled().find(|study| study.name() == name).expect("it is built in")
}

#[test]
fn every_study_can_be_simulated() {
    let fitted = Fitted::bundled().unwrap();
    for study in StudyFile::bundled() {
        for is_quick in [false, true] {
            for experiment in study.experiments(is_quick).unwrap() {
                let applied = fitted.applied(&experiment);
                assert!(experiment.cases[0].base.is_none(), "{}", experiment.id);
                for case in applied.cases {
                    let checked = case.run.check();
                    assert!(checked.is_ok(), "{} {}: {checked:?}", experiment.id, case.name);
                }
            }
        }
        assert!(
            ![NOTES, EXPLANATIONS].iter().any(|heading| study.prose.below(heading).is_empty()),
            "{}",
            study.name()
        );
    }
}

fn book() -> String {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference/study-files.md");
    fs::read_to_string(book).unwrap()
}

#[test]
fn metrics_have_distinct_names_that_the_book_explains() {
    let book = book();
    for (index, (metric, name, meaning)) in Metric::ALL.iter().enumerate() {
        assert!(Metric::ALL[..index].iter().all(|(_, other, _)| other != name), "{metric:?}");
        let row = format!("| `{name}` | {meaning} |");
        assert!(book.lines().any(|line| line == row), "no line `{row}` in reference/study-files.md");
    }
}

/// Tests that the book explains every key and choice. Errors about an unknown key list all known keys, and
/// errors about an unknown choice list all known choices.
#[test]
fn the_book_has_every_key_and_choice() {
    let book = book();
    let table = "summary = ''\n[[tables]]\n";
    let column = format!("{table}[[tables.columns]]\nkey = ''\nheading = ''\nmetric = 'visits'\n");
    let figure =
        "summary = ''\ntables = []\n[[figure]]\ntitle = ''\nrows = ''\ncolumns = []\nmark = 'bars'\n";
    for text in [
        "x = 1",
        "more = ['x']",
        "[[correction]]\nx = 1",
        "[choice]\nx = 1",
        "[copies]\nx = 1",
        "[used_memory]\nx = 1",
        &format!("{table}x = 1"),
        &format!("{table}run = {{ x = 1 }}"),
        &format!("{table}run = {{ tick_phase = 'x' }}"),
        &format!("{table}rows = [{{ x = 1 }}]"),
        &format!("{table}warmup = {{ x = 1 }}"),
        &format!("{table}fits = [{{ x = 1 }}]"),
        &format!("{table}fits = [{{ target = 'x' }}]"),
        &format!("{table}borrows = [{{ x = 1 }}]"),
        &format!("{column}x = 1"),
        &format!("{column}compared = 'x'"),
        &format!("{column}printed_as = 'x'"),
        &format!("{figure}x = 1"),
        &format!("{figure}scale = 'x'"),
        &figure.replace("bars", "x"),
    ] {
        let error = toml::from_str::<StudyForm>(text).expect_err(text).message().to_owned();
        let (_, all) = error.split_once("expected ").unwrap_or_else(|| panic!("{text}: {error}"));
        for name in all.split('`').skip(1).step_by(2) {
            let written = [format!("`{name}`"), format!("`[{name}]`"), format!("`[[{name}]]`")];
            assert!(written.iter().any(|key| book.contains(key)), "{name}, of: {error}");
        }
    }
}

#[test]
fn sliced_frees_machines_have_as_many_cpus_and_as_much_memory_as_published() {
    let table = published!("sliced-frees/kbuild.csv").unwrap();
    for experiment in bundled("sliced-frees").experiments(false).unwrap() {
        let name = experiment.id.strip_prefix("kbuild-").unwrap();
        let line = table.rows_with("machine", name).next().unwrap();
        let machine = Machine::named(&experiment.cases[0].run.machine).unwrap();
        assert_eq!(Some(f64::from(machine.cpus())), line.number("cpus").unwrap(), "{name}");
        assert!(machine.title.ends_with(&format!(" {} GiB", line.text("memory_gib").unwrap())), "{name}");
        assert!(experiment.title.contains(&format!("-j{0} on {0} CPUs", machine.cpus())), "{name}");
    }
}

#[test]
fn sliced_frees_changes_are_counted_from_100_and_within_their_variation_none() {
    let experiments = bundled("sliced-frees").experiments(false).unwrap();
    let large = experiments.iter().find(|experiment| experiment.id == "kbuild-large").unwrap();
    assert_eq!(large.cases[0].published, [Some(100.0); 3]);
    assert_eq!(large.cases[1].published[2], Some(100.0 - 11.8737));
    let Band::Percent(band) = large.columns[2].0.band else { panic!("a band in percent") };
    assert!((band - 7.109).abs() < 0.001, "{band}");
}

#[test]
fn tick_spread_rows_are_those_without_kasan_in_percent_of_aligned() {
    let experiments = bundled("tick-spread").experiments(false).unwrap();
    let [aligned, spread] = &experiments[0].cases[..] else { panic!("two rows") };
    assert_eq!(aligned.published[..3], [Some(100.0); 3]);
    let rounded = [0, 1, 2, 3].map(|column| spread.published[column].unwrap().round());
    assert_eq!(rounded, [55.0, 72.0, 140.0, 185.0]);
    assert_eq!(spread.run.tick_phase, Some(TickPhase::Spread));
}

#[test]
fn drain_picks_rows_are_the_patches_that_they_say() {
    let table = published!("drain-picks/page-fault1.csv").unwrap();
    let fitted = Fitted::bundled().unwrap();
    let experiments = bundled("drain-picks").experiments(false).unwrap();
    assert_eq!(table.rows().count(), experiments.iter().map(|one| one.cases.len()).sum::<usize>());
    for experiment in experiments {
        let cases = fitted.applied(&experiment).cases;
        let rows: Vec<_> = cases.iter().map(|case| (case.name.as_str(), case.run.policy.as_str())).collect();
        let patches = [("patch 1", "linux-4.15-picks"), ("patch 2", "linux-4.15-prefetch")];
        assert_eq!(rows, [&[("v4.15-rc4", "linux-4.9")], &patches[..]].concat());
        assert!(cases.iter().all(|case| case.run.settings.len() == 2), "{}", experiment.id);
        assert!(cases.iter().all(|case| case.run.warmup_ms == cases[0].run.warmup_ms));
    }
}

#[test]
fn free_high_threshold_rows_are_the_kernels_that_they_say() {
    let table = published!("free-high-threshold/relative.csv").unwrap();
    let experiments = bundled("free-high-threshold").experiments(false).unwrap();
    for experiment in &experiments {
        let names = experiment.cases.iter().map(|case| case.name.as_str());
        assert!(names.eq(table.rows().map(|row| row.text("state").unwrap())), "{}", experiment.id);
    }
    assert_eq!(experiments.iter().map(|one| one.cases.len()).sum::<usize>(), 12);
    assert_eq!(experiments[0].cases[1].published, [Some(69.0)]);
    assert!(experiments[0].borrowed.is_empty() && experiments[3].borrowed.len() == 3);
}

#[test]
fn high_order_pcp_means_have_their_base_and_their_band() {
    let experiments = bundled("high-order-pcp").experiments(false).unwrap();
    let rows: Vec<_> = experiments.iter().map(|experiment| experiment.cases.len()).collect();
    assert_eq!(rows, [18, 18, 10, 10, 12, 12]);
    let pipes = &experiments[4].cases;
    assert_eq!((pipes[6].name.as_str(), pipes[7].base), ("7 4.9", Some(6)));
    assert_eq!(pipes[7].published, [Some(23.0550)]);
    for (case, printed) in [(6, 0.5310), (7, 0.6680)] {
        let percent = pipes[case].variation_percent.unwrap();
        assert!((percent - printed / 24.5690 * 100.0).abs() < 1e-9, "{percent}");
    }
    assert!(experiments[0].cases[0].variation_percent.is_none(), "netperf prints no deviation");
    let withdrawn = experiments.iter().filter(|experiment| experiment.withdrawn.is_some());
    assert!(
        withdrawn.map(|experiment| experiment.id.as_str()).eq(["netperf-udp-1socket", "netperf-udp-2socket"])
    );
}

#[test]
fn batch_size_has_every_published_row_of_phase_two() {
    let experiments = bundled("batch-size").experiments(false).unwrap();
    let (one, two): (Vec<_>, Vec<_>) = experiments.iter().partition(|one| one.id.starts_with("phase1-"));
    assert_eq!((one.len(), two.len()), (9, 21));
    assert_eq!(two.iter().map(|experiment| experiment.cases.len()).sum::<usize>(), 181 * 3);
    let oltp = two.iter().find(|experiment| experiment.id.contains("oltp")).unwrap();
    let corrected = oltp.cases.iter().find(|case| case.name == "lkp-skl-d01 31").unwrap();
    assert_eq!(corrected.published, [Some(4_418_485.0)], "the correction adds a digit that the text lacks");
}

#[test]
fn batch_size_machines_have_a_copy_time_and_all_their_rows_use_it() {
    const COPYING: &str = "phase2-will-it-scale.page_fault2.processes";
    const COPY: &str = "copy_fault_ns";
    let fitted = Fitted::bundled().unwrap();
    let experiments = bundled("batch-size").experiments(false).unwrap();
    let copying = experiments.iter().filter(|experiment| experiment.id.contains("page_fault2"));
    for case in copying.flat_map(|experiment| fitted.applied(experiment).cases) {
        let machine = case.name.split(' ').next().unwrap();
        let value = fitted.get(COPYING, &format!("{machine} 31"), COPY);
        assert!(value.is_some(), "{machine}");
        assert_eq!(case.run.settings.get(COPY).copied(), value, "{}", case.name);
    }
    // A table gets the parameter from only one source: fits of its own rows, or rows of another table.
    for experiment in &experiments {
        let fits = experiment.fits.iter().filter(|fit| fit.parameter == COPY).count();
        let borrowed = experiment.borrowed.iter().filter(|borrowed| borrowed.parameter == COPY).count();
        assert!(fits == 0 || borrowed == 0, "{}", experiment.id);
        assert_eq!(fits, if experiment.id == COPYING { 9 } else { 0 });
    }
}

/// A user's study with a small machine and a table of three rows.
const TOML: &str = r#"summary = "batches on a small machine"
more = ["changes"]

[machines]
small = "epyc-2"

[[tables]]
id = "mine"
title = "page_fault1, by batch"
csv = "mine.csv"
each_line = "batch"
from_line = { machine = "machine", batch = "batch" }
run = { workload = "page_fault1", policy = "linux-4.18", warmup_ms = 1, duration_ms = 2 }
quick_rows = ["31", "63"]
columns = [
    { key = "score", heading = "score", metric = "score_per_s", compared = "scaled_to_base", printed = "score" },
]

[[figure]]
title = "By batch"
rows = "batch"
mark = "points"
columns = ["score"]
"#;
const CSV: &str = "machine,batch,score\nsmall,31,1000\nsmall,63,1100\nsmall,127,1200\n";
const MARKDOWN: &str =
    "# Mine\n\n## How to read this\n\nA note.\n\n## What did not reproduce, and why\n\nA reason.\n";

/// Writes a user's study to a directory, and reads it. `change` has a text of the study's file, and the text
/// that replaces it.
fn read(directory: &Path, change: (&str, &str), csv: &str, markdown: &str) -> Result<StudyFile> {
    assert!(TOML.contains(change.0), "{}", change.0);
    let path = directory.join("mine.toml");
    fs::write(&path, TOML.replacen(change.0, change.1, 1)).unwrap();
    fs::write(directory.join("mine.csv"), csv).unwrap();
    fs::write(directory.join("mine.md"), markdown).unwrap();
    StudyFile::read(&path)
}

const CHOICE: &str = "[choice]\ncolumns = ['score']\nrows = ['31', '127']\n[machines]";

#[test]
fn a_choice_is_the_first_of_the_further_tables() {
    let directory = tempfile::tempdir().unwrap();
    let study = read(directory.path(), ("[machines]", CHOICE), CSV, MARKDOWN).unwrap();
    let options = Options { seeds: Some(1), ..Options::default() };
    let findings = study.run(&options, &mut ()).unwrap();
    assert_eq!(findings.more.len(), 2);
    let table = serde_json::to_value(&findings.more[0]).unwrap();
    let row = &table["rows"][0];
    assert_eq!((row["table"].as_str(), row["published_choice"].as_str()), (Some("mine"), Some("127")));
    let lost = |key: &str| row[key].as_f64().map(|lost| (10.0 * lost).round() / 10.0);
    assert_eq!(lost("published_lost_31_percent"), Some(16.7));
    assert_eq!(lost("published_lost_127_percent"), Some(0.0));
    assert_eq!(table["rows"].as_array().unwrap().len(), 1);
    // The column `ours_costs_percent` has the published loss of the row that our values choose.
    let ours = row["ours_choice"].as_str().unwrap();
    let of_ours = [("31", 16.7), ("63", 8.3), ("127", 0.0)].iter().find(|(name, _)| *name == ours);
    assert_eq!(lost("ours_costs_percent"), of_ours.map(|(_, lost)| *lost), "{row}");
}

#[test]
fn a_choice_needs_a_column_that_has_a_best_value() {
    let directory = tempfile::tempdir().unwrap();
    for (from, to, message) in [
        ("score", "scor", "no column has the key `scor`"),
        ("score", "pages", "`pages` is neither a score nor a time: no row is its best"),
    ] {
        let choice = CHOICE.replace(from, to);
        let column = "columns = [\n    { key = \"pages\", heading = \"pages\", metric = \"alloc_zone\", printed = \"score\" },";
        let study = TOML.replace("[machines]", &choice).replace("columns = [\n", &format!("{column}\n"));
        let path = directory.path().join("mine.toml");
        fs::write(&path, study).unwrap();
        fs::write(directory.path().join("mine.csv"), CSV).unwrap();
        fs::write(directory.path().join("mine.md"), MARKDOWN).unwrap();
        let error = format!("{:#}", StudyFile::read(&path).unwrap_err());
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_users_study_runs() {
    let directory = tempfile::tempdir().unwrap();
    let study = read(directory.path(), ("", ""), CSV, MARKDOWN).unwrap();
    assert_eq!((study.name(), study.has_parameters()), ("mine", false));
    let options = |is_quick| Options { is_quick, jobs: 1, fit: None, seeds: Some(1), ..Options::default() };
    let findings = study.run(&options(false), &mut ()).unwrap();
    let table = &findings.tables[0];
    assert_eq!(table.row_names().collect::<Vec<_>>(), ["31", "63", "127"]);
    assert!(table.pairs(0).all(|pair| pair.ours.is_some_and(|score| score > 0.0)));
    assert_eq!(
        (findings.notes, findings.explanations),
        (vec!["A note.".to_owned()], vec!["A reason.".to_owned()])
    );
    assert_eq!((findings.figures[0].0.as_str(), findings.more.len()), ("mine", 1));
    assert_eq!(
        (findings.machine.as_str(), findings.policies),
        ("simulated: epyc-2", vec!["linux-4.18".to_owned()])
    );
    let quick = study.run(&options(true), &mut ()).unwrap();
    assert_eq!(quick.tables[0].row_names().collect::<Vec<_>>(), ["31", "63"]);
}

#[test]
fn a_users_machines_and_policies_are_beside_the_study() {
    let directory = tempfile::tempdir().unwrap();
    let machine = pageset_sim::MACHINES.iter().find(|machine| machine.name == "epyc-2").unwrap();
    fs::write(directory.path().join("own.toml"), machine.text()).unwrap();
    let study = read(directory.path(), ("\"epyc-2\"", "\"own.toml\""), CSV, MARKDOWN).unwrap();
    let run = &study.experiments(true).unwrap()[0].cases[0].run;
    assert_eq!(Path::new(&run.machine), directory.path().join("own.toml"));
}

#[test]
fn a_users_parameters_are_read_beside_the_study() {
    let directory = tempfile::tempdir().unwrap();
    let fits = "fits = [{ parameter = \"fault_ns\", range = [100, 9000], column = \"score\" }]\nquick_rows";
    let study = read(directory.path(), ("quick_rows", fits), CSV, MARKDOWN).unwrap();
    assert!(study.has_parameters());
    let value = |study: &StudyFile| study.fitted().unwrap().get("mine", "31", "fault_ns");
    assert_eq!(value(&study), None);
    let chosen = "[[fit]]\ntable = \"mine\"\nrow = \"31\"\nparameter = \"fault_ns\"\nvalue = 777\n\
                  column = \"score\"\npublished = 1000.0\nreached = 999.0\n";
    let path = directory.path().join("fitted.toml");
    fs::write(&path, format!("{}\n{chosen}", Fitted::HEADING)).unwrap();
    assert_eq!(value(&study), Some(777));
    fs::write(&path, chosen).unwrap();
    let error = format!("{:#}", study.fitted().unwrap_err());
    assert!(
        error.contains("fitted.toml: these are not fitted parameters: --fit did not write this file"),
        "{error}"
    );
}

#[test]
fn a_mistake_is_told_with_its_file_its_line_and_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let mistake = |change: (&str, &str), csv: &str, markdown: &str| {
        let error = read(directory.path(), change, csv, markdown).expect_err("there is a mistake");
        format!("{error:#}").replace(&format!("{}/", directory.path().display()), "")
    };
    for (change, expected) in [
        (("summary = ", "summary "), "mine.toml:1: "),
        (("each_line", "every_line"), "mine.toml:11: unknown field `every_line`, expected one of `id`"),
        (
            ("metric = \"score_per_s\"", "metric = \"speed\""),
            "mine.toml:16: no metric is called `speed`; use one of score_per_s, ",
        ),
        (
            ("\"scaled_to_base\"", "\"scaled\""),
            "mine.toml:16: unknown variant `scaled`, expected one of `as_is`",
        ),
        (("mine.csv", "his.csv"), "mine.toml:10: his.csv: "),
        (
            ("printed = \"score\"", "printed = \"scor\""),
            "mine.toml:16: mine.csv has no column `scor`; its columns are machine, batch, score",
        ),
        (
            (", printed = \"score\"", ""),
            "mine.toml:16: neither the column nor the row says `printed`: name the CSV's column",
        ),
        (
            ("each_line = \"batch\"", "each_line = \"machine\""),
            "mine.toml:13: two rows have the name `small`: a name tells rows apart",
        ),
        (
            ("each_line = \"batch\"", "only = { machine = \"large\" }\neach_line = \"batch\""),
            "mine.toml:12: mine.csv has no line of the table: change `only`",
        ),
        (
            ("small = \"epyc-2\"", "large = \"epyc-2\""),
            "mine.toml:12: no machine stands for `small`: add it to [machines]",
        ),
        (
            ("\"epyc-2\"", "\"epyc-3\""),
            "mine.toml:13: row `31`: `epyc-3` is not a file, nor a machine that `pageset simulate --list` names; did you mean `epyc-2`?",
        ),
        (
            ("page_fault1\", policy", "page_fault9\", policy"),
            "mine.toml:13: row `31`: unknown workload `page_fault9`; `pageset simulate --list` names all",
        ),
        (
            ("linux-4.18", "linux-4.18a"),
            "mine.toml:13: row `31`: unknown policy `linux-4.18a`; `pageset policies` names all",
        ),
        (
            ("policy = \"linux-4.18\", ", ""),
            "mine.toml:13: neither row `31` nor its table has `policy` in `run`",
        ),
        (("\"63\"]", "\"64\"]"), "mine.toml:14: no row has the name `64`"),
        (
            ("[\"31\", \"63\"]", "[\"63\", \"127\"]"),
            "mine.toml:13: a quick run has row `63` and not its base row `31`",
        ),
        (("columns = [\"score\"]", "columns = [\"scores\"]"), "mine.toml:23: no column has the key `scores`"),
        (
            (
                "quick_rows",
                "borrows = [{ parameters = [\"fault_ns\"], table = \"his\", row = \"31\" }]\nquick_rows",
            ),
            "mine.toml:14: no `fault_ns` was chosen on row `31` of a table `his`: name a table of this study, or ",
        ),
        (
            (
                "quick_rows",
                "fits = [{ parameter = \"fault\", range = [1, 9], column = \"score\" }]\nquick_rows",
            ),
            "mine.toml:14: workload page_fault1: ",
        ),
        (
            (
                "quick_rows",
                "fits = [{ parameter = \"fault_ns\", range = [9, 1], column = \"score\" }]\nquick_rows",
            ),
            "mine.toml:14: `range` is empty: the smaller value comes first",
        ),
        (
            (
                "quick_rows",
                "fits = [{ parameter = \"fault_ns\", range = [1, 9], column = \"scor\" }]\nquick_rows",
            ),
            "mine.toml:14: no column has the key `scor`; use score",
        ),
        (
            ("mark = \"points\"", "mark = \"points\"\npart = \"../x\""),
            "mine.toml:23: `../x` is no part of a file's name: use letters, digits, - and _",
        ),
        (
            (
                "[machines]",
                "[[correction]]\ncsv = \"mine.csv\"\ncolumn = \"score\"\nprinted = \"1\"\nmeant = \"2\"\n\n[machines]",
            ),
            "mine.toml:4: no line of mine.csv has `1` in `score`: leave the correction out",
        ),
        (
            ("quick_rows", "rows = [{ printed = { scor = \"score\" } }]\nquick_rows"),
            "mine.toml:14: no column has the key `scor`; use score",
        ),
    ] {
        let error = mistake(change, CSV, MARKDOWN);
        assert!(error.starts_with(expected), "{change:?}\n  is       {error}\n  expected {expected}");
    }
    let error = mistake(("", ""), &CSV.replace("1100", "many"), MARKDOWN);
    assert_eq!(error, "mine.csv:3: `many` in column `score` is not a number");
    let error = mistake(("", ""), CSV, &MARKDOWN.replace("## How", "## When"));
    assert!(
        error.starts_with("mine.md:3: no section is `When to read this`; use one of `How to read this`"),
        "{error}"
    );
    fs::remove_file(directory.path().join("mine.md")).unwrap();
    let error = format!("{:#}", StudyFile::read(&directory.path().join("mine.toml")).unwrap_err());
    assert!(error.contains("mine.md: cannot open: "), "{error}");
    assert!(error.contains("; put notes there, below the headings `How to read this` and "), "{error}");
}
