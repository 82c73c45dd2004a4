//! Makes tables of the parts of the load, for `stat`, `report` and `advise`. A part belongs to a process, to
//! a control group, to the recorded command or to the rest of the machine.

use pageset_replay::who::{Part, PartOf, Who};
use pageset_report::{Cell, Column, Row, Table, printable};

/// Number of processes or control groups with separate rows in a long table. All further processes or groups
/// share one row.
const ROWS: usize = 10;

/// Splits parts into those with a separate row and those that share the row `others`. If there are [`ROWS`] +
/// 1 parts, each has a separate row, because a row `others` would not make the table shorter.
pub(crate) fn own_rows<'p, T>(all: &'p [&T]) -> (&'p [&'p T], &'p [&'p T]) {
    all.split_at(if all.len() > ROWS + 1 { ROWS } else { all.len() })
}

/// Maximum length of a control group's path in a table, in characters. If a control group's path is longer,
/// the table shows three dots and the end of the path.
const PATH_CHARACTERS: usize = 24;
/// A word with at least this many hexadecimal digits is taken for a container's id.
const NUMBER_DIGITS: usize = 32;
/// The number of digits of a container's id that are shown: enough to distinguish containers.
const SHOWN_DIGITS: usize = 12;

/// Returns each table, with the name that the table has in CSV output.
pub(crate) fn tables(who: &Who) -> Vec<(&'static str, Table)> {
    let mut tables = Vec::new();
    if let Some(parts) = &who.by_party {
        let mut table = table("The command, and the rest of the machine", "whose", "tasks", parts, name);
        if who.is_incomplete {
            table.note(
                "Events are missing. If the event of a child process's fork is missing, the child does not count as part of the command.",
            );
        }
        if who.by_process.is_none() {
            table.note("Record with --names to see the names of processes.");
        }
        tables.push(("parties", table));
    }
    if let Some(parts) = &who.by_process {
        let mut table = table("Load by process", "process", "processes", parts, name);
        let is_of_events = parts.iter().any(|part| part.allocated_pages.is_some());
        table.note(if is_of_events {
            "`page blocks` counts pageblocks that changed their migratetype or became mixed. Work in interrupts \
             counts for no process. Tasks are unknown if their beginning was not recorded."
        } else {
            "Numbers of visits are estimates, because visits were counted only in slices of time. A visit counts for \
             the process that ran, even if an interrupt made it. Tasks are unknown if their beginning was not recorded."
        });
        if who.tasks_left_out > 0 {
            table.note(format!(
                "{} tasks did not fit into the file, and count as unknown.",
                who.tasks_left_out
            ));
        }
        tables.push(("processes", table));
    }
    if let Some(parts) = &who.by_cgroup {
        let title = "Load by control group";
        tables.push(("cgroups", table(title, "control group", "processes", parts, path)));
    }
    tables
}

fn table(title: &str, what: &str, number: &str, parts: &[Part], name: fn(&Part) -> String) -> Table {
    let share = |key: &str| Column::ratio(key, "%");
    let columns = vec![
        Column::label("name", what),
        Column::count("processes", number),
        Column::count("allocated_pages", "pages"),
        share("allocated_percent"),
        Column::count("visits", "zone visits"),
        share("visits_percent"),
        Column::measure("zone_wait_ms", "lock waits").with_unit("ms"),
        share("zone_wait_percent"),
        Column::count("pageblocks", "page blocks"),
        share("pageblocks_percent"),
    ];
    let mut table = Table::new(title, columns);
    // In the table, the rows of interrupts and of the unknown part come last. Interrupts and unknown tasks
    // are not processes, so the row `others` does not include them.
    let is_apart = |part: &&Part| matches!(part.of, PartOf::Interrupts | PartOf::Unknown);
    let (apart, known): (Vec<_>, Vec<_>) = parts.iter().partition(is_apart);
    let (first, others) = own_rows(&known);
    first.iter().for_each(|part| table.push(row(&name(part), part)));
    if let Some((one, rest)) = others.split_first() {
        let mut together = (*one).clone();
        rest.iter().for_each(|part| together.add(part));
        table.push(row(&format!("{} others", others.len()), &together));
    }
    apart.iter().for_each(|part| table.push(row(&name(part), part)));
    table.without_empty_columns()
}

fn row(name: &str, part: &Part) -> Row {
    let share = |percent: Option<f64>| Cell::real(percent, 1);
    let wait_ms = part.zone_wait_ns.map_or(Cell::Absent, |ns| Cell::real(ns as f64 / 1e6, 1));
    let pageblocks = part.pageblocks_changed.zip(part.pageblocks_mixed);
    let processes = if part.of == PartOf::Interrupts { Cell::Absent } else { part.processes.into() };
    Row::new([
        name.into(),
        processes,
        part.allocated_pages.into(),
        share(part.allocated_percent),
        part.visits.into(),
        share(part.visits_percent),
        wait_ms,
        share(part.zone_wait_percent),
        pageblocks.map(|(changed, mixed)| changed.saturating_add(mixed)).into(),
        share(part.pageblocks_percent),
    ])
}

/// The name of a row. A process may have any name, so control characters in it are replaced.
fn name(part: &Part) -> String {
    match part.of {
        PartOf::Named => printable(part.name.as_deref().unwrap_or_default()).into_owned(),
        PartOf::Command => "the command".to_owned(),
        PartOf::Recorder => "the recorder".to_owned(),
        PartOf::Rest => "all others".to_owned(),
        PartOf::Interrupts => "in interrupts".to_owned(),
        PartOf::Unknown => "unknown".to_owned(),
    }
}

/// A control group's path with short container ids. If the path is long, returns only its end, because people
/// recognise the group by the end of its path.
fn path(part: &Part) -> String {
    let name = short_numbers(&name(part));
    let characters = name.chars().count();
    if characters <= PATH_CHARACTERS {
        return name;
    }
    let end: String = name.chars().skip(characters - PATH_CHARACTERS + 3).collect();
    format!("...{end}")
}

/// A path with shortened container ids, as container tools print them.
fn short_numbers(path: &str) -> String {
    let is_number = |word: &str| word.len() >= NUMBER_DIGITS && word.bytes().all(|c| c.is_ascii_hexdigit());
    let mut short = path.to_owned();
    for word in path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_number(word)) {
        short = short.replace(word, &word[..SHOWN_DIGITS]);
    }
    short
}

#[cfg(test)]
mod tests {
    use pageset_replay::{Survey, SurveyOptions, survey};
    use pageset_trace::TraceInfo;
    use pageset_trace::{Event, EventKind, LostEvents, NativeWriter, OpenOptions, TaskBook, WriteOptions};

    use super::*;

    /// A recording with a process for each name, and a task without a known process. Each process has more
    /// pages than the process before it.
    fn recorded(names: &[&[u8]]) -> (TraceInfo, Survey) {
        let mut book = TaskBook::default();
        let mut events = Vec::new();
        for (tid, name) in (1_u32..).zip(names) {
            book.add(tid, tid, 0, name);
            book.put_cgroup(tid, "/a/very/long/path/of/a/control/group.slice");
            for _ in 0..tid {
                let ts_ns = events.len() as u64;
                events.push(Event {
                    pid: tid,
                    pfn: ts_ns,
                    ..Event::new(EventKind::MmPageAlloc, ts_ns + 1, 0)
                });
            }
        }
        events.push(Event { pid: 999, pfn: 5000, ..Event::new(EventKind::MmPageAlloc, 9999, 0) });
        let info = TraceInfo { tasks: Some(book.into_tasks()), ..TraceInfo::default() };
        let mut writer = NativeWriter::new(Vec::new(), &info, WriteOptions::new()).unwrap();
        writer.write(&events).unwrap();
        let (bytes, _) = writer.finish(LostEvents::default()).unwrap();
        let mut reader = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
        let survey = survey(reader.as_mut(), &SurveyOptions::default(), |_| ()).unwrap();
        (reader.info().clone(), survey)
    }

    fn shown(names: &[&[u8]]) -> String {
        let (info, survey) = recorded(names);
        let who = Who::new(&info, &survey).expect("names are known");
        tables(&who).iter().map(|(_, table)| table.to_text(80)).collect()
    }

    #[test]
    fn ten_processes_are_shown_and_the_others_are_one_row() {
        let names: Vec<String> = (0..13).map(|number| format!("p{number}")).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let text = shown(&names);
        assert!(text.contains("p12 ") && text.contains("p3 ") && !text.contains("p2 "), "{text}");
        assert!(text.contains("3 others") && text.contains("unknown"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        // This recording has neither visits nor waits, so the table has no columns of visits and waits.
        assert!(!text.contains("visits") && !text.contains("waits"), "{text}");
    }

    #[test]
    fn interrupts_are_no_process_that_is_put_together_with_others() {
        let part = |of: PartOf, name: usize| Part {
            of,
            name: Some(format!("p{name}")),
            processes: 1,
            allocated_pages: Some(1),
            allocated_percent: None,
            visits: None,
            visits_percent: None,
            zone_waits: None,
            zone_wait_ns: None,
            zone_wait_percent: None,
            pageblocks_changed: None,
            pageblocks_mixed: None,
            pageblocks_percent: None,
        };
        let mut parts: Vec<Part> = (0..13).map(|name| part(PartOf::Named, name)).collect();
        parts.push(part(PartOf::Interrupts, 13));
        let text = table("Who", "process", "processes", &parts, name).to_text(80);
        assert!(text.contains("3 others") && text.contains("in interrupts"), "{text}");
    }

    #[test]
    fn a_container_is_known_by_the_beginning_of_its_number() {
        let number = "0123456789abcdef".repeat(4);
        assert_eq!(short_numbers(&format!("/docker/{number}")), "/docker/0123456789ab");
        assert_eq!(short_numbers(&format!("/x/docker-{number}.scope")), "/x/docker-0123456789ab.scope");
        assert_eq!(short_numbers("/user.slice/user-1000.slice"), "/user.slice/user-1000.slice");
    }

    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        let text = shown(&[b"\x1b[31mred", b"a\nb", b"\xff\xe2\x80\xae"]);
        assert!(text.contains("\\x1b[31mred") && text.contains("a\\nb"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn without_names_and_without_a_command_there_is_no_table() {
        let (info, survey) = recorded(&[b"a"]);
        assert_eq!(Who::new(&TraceInfo { tasks: None, ..info }, &survey), None);
    }
}
