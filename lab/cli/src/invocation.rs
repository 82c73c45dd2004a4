//! Makes the command line that repeats a result.

use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use pageset_report::{Provenance, shell_word};

/// Options that do not change a result, because they only say where and how the result is written, and how
/// many workers run. The command line that repeats a result leaves out the options of this list.
const OUTSIDE: [&str; 9] =
    ["format", "output", "force", "svg", "html", "jobs", "on", "into", "keep_recording"];

/// A command line, without options that do not change the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation(String);

impl Invocation {
    /// Makes the command line again from clap's lists of arguments, so that no option is forgotten.
    /// `definition` must be the definition that clap used.
    pub(crate) fn of(definition: &Command, matches: &ArgMatches) -> Self {
        let mut line = definition.get_name().to_owned();
        let (mut definition, mut matches) = (definition, matches);
        while let Some((name, below)) = matches.subcommand()
            && let Some(command) = definition.find_subcommand(name)
        {
            line += &format!(" {name}");
            (definition, matches) = (command, below);
        }
        let typed = |arg: &&Arg| {
            let id = arg.get_id().as_str();
            !OUTSIDE.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let options = definition.get_arguments().filter(|arg| !arg.is_positional()).filter(typed);
        let options: Vec<_> = options.flat_map(|arg| option(arg, matches)).collect();
        let places = definition.get_positionals().filter(typed);
        let (last, places): (Vec<_>, Vec<_>) = places.partition(|arg| arg.is_last_set());
        let words = |all: Vec<&Arg>| all.into_iter().flat_map(|arg| values(arg, matches)).flatten().collect();
        let (last, places): (Vec<String>, Vec<String>) = (words(last), words(places));
        // Write arguments first, because an option with many values would take arguments after it as values.
        // Write arguments that look like options last, after `--`. A command to be recorded stands there too.
        let dashes = vec!["--".to_owned()];
        let parts = if !last.is_empty() {
            [quoted_all(&places), options, dashes, quoted_all(&last)].concat()
        } else if places.iter().any(|place| place.len() > 1 && place.starts_with('-')) {
            [options, dashes, quoted_all(&places)].concat()
        } else {
            [quoted_all(&places), options].concat()
        };
        parts.iter().for_each(|part| line += &format!(" {part}"));
        Self(line)
    }

    /// Returns the command, version and commit of a result's provenance. The subcommand adds the machine, the
    /// policies and the seed.
    pub(crate) fn provenance(&self) -> Provenance {
        Provenance {
            command: self.0.clone(),
            version: concat!("pageset ", env!("CARGO_PKG_VERSION")).to_owned(),
            commit: option_env!("PAGESET_COMMIT").map(str::to_owned),
            ..Provenance::default()
        }
    }
}

/// The typed values of an argument: a list for each time that the user typed the argument.
fn values(arg: &Arg, matches: &ArgMatches) -> Vec<Vec<String>> {
    let occurrences = matches.get_raw_occurrences(arg.get_id().as_str());
    let text = |value: &OsStr| value.to_string_lossy().into_owned();
    occurrences.map_or_else(Vec::new, |all| all.map(|values| values.map(text).collect()).collect())
}

/// An option with its values, once for each time that the user typed it.
fn option(arg: &Arg, matches: &ArgMatches) -> Vec<String> {
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => return Vec::new(),
    };
    if !arg.get_action().takes_values() {
        return vec![name];
    }
    let with_equals = |value: &String| {
        let sign = if arg.get_long().is_some() { "=" } else { "" };
        format!("{name}{sign}{}", shell_word(value))
    };
    let occurrence = |values: Vec<String>| {
        if arg.is_require_equals_set() || values.iter().any(|value| value.starts_with('-')) {
            return values.iter().map(with_equals).collect();
        }
        vec![[vec![name.clone()], quoted_all(&values)].concat().join(" ")]
    };
    let all = values(arg, matches);
    match arg.get_value_delimiter() {
        // If an option with a list is typed twice, the lists are joined.
        Some(delimiter) => occurrence(vec![all.concat().join(&delimiter.to_string())]),
        None => all.into_iter().flat_map(occurrence).collect(),
    }
}

fn quoted_all(words: &[String]) -> Vec<String> {
    words.iter().map(|word| shell_word(word)).collect()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::args::{Args, definition};

    /// Splits a line of words that [`shell_word`] has quoted, as a shell does.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            let word = words.last_mut().unwrap();
            match character {
                '\'' => is_quoted = !is_quoted,
                '\\' if !is_quoted => word.extend(characters.next()),
                ' ' if !is_quoted => words.push(String::new()),
                other => word.push(other),
            }
        }
        words
    }

    #[track_caller]
    fn parsed(words: &[String]) -> (String, ArgMatches, Command) {
        let mut definition = definition();
        let matches = definition.try_get_matches_from_mut(words).unwrap_or_else(|error| panic!("{error}"));
        let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"));
        (format!("{args:?}"), matches, definition)
    }

    #[track_caller]
    fn printed(line: &str) -> String {
        let (_, matches, definition) = parsed(&words(line));
        Invocation::of(&definition, &matches).0
    }

    /// Command lines that together contain every option of every command that prints a provenance.
    const LINES: [&str; 32] = [
        "pageset replay --lenient --recover -p linux-6.1,linux-6.6 -p linux-6.12 -c 4 --layout m.toml --page-size 64K --node-cpus 0=0-3,1=4-7 t",
        "pageset replay t --series --verbose",
        "pageset replay --series=batch",
        "pageset replay t --sweep batch=31,63 high=186,378 --sweep scale-max=1",
        "pageset verify -p linux-6.1 --mode free --explain 2 --class event-order --layout m.toml --page-size 64K --node-cpus 0=0-3,1=4-7 --lenient --recover a 'b c'",
        "pageset replay t --set vm.min_free_kbytes=1000 --set batch=31",
        "pageset advise --lenient --recover --evidence --exit-code 'a b'",
        "pageset advise --for 5m --apply vm.stat_interval=2 --times 3 --keep --yes --prepare 'make clean' -- make -j4",
        "pageset advise --put-back",
        "pageset verify",
        "pageset verify a 'b c' --set vm.stat_interval=10 --set vm.watermark_scale_factor=20",
        "pageset verify a b --against c 'd e'",
        "pageset report --lenient --recover a 'b c'",
        r"pageset stat --lenient --recover it\'s",
        "pageset stat --lenient -- -t",
        "pageset stat -",
        "pageset simulate --recording t --lenient --recover -p linux-6.1,linux-6.6 --layout m.toml --page-size 64K --node-cpus 0=0-3,1=4-7",
        "pageset simulate --recording",
        "pageset replay --all t",
        "pageset simulate -m m -w w -c 2 -p linux-6.1 --seed 3 --seeds 2 --set a=1 --set b=2 --warmup-ms 1 --duration-ms 2 --check",
        "pageset simulate --list",
        "pageset sweep p.toml --rows r.jsonl",
        "pageset sweep p.toml --rows=-r.jsonl",
        "pageset reproduce batch-size --quick --seeds 3 --fit f.toml",
        "pageset reproduce ageing --quick --policy linux-6.6 --day day.toml",
        "pageset bench faults --gib 0.5 --threads 2 --repetitions 3 --lines 4 --strategy P1,V1,R1 P2,V1,R1 --regions one_region_sliced --page-shift 14 --magazine 0 \
         --zero skip --peer kernel,clear",
        "pageset bench faults --machine epyc-2 --rss-line own --strategy all",
        "pageset bench faults --prefault 3 --prezero",
        "pageset bench pages --quick --seed 7",
        "pageset bench pages --choose",
        "pageset bench machine --check -m m.toml",
        "pageset top --once --interval 2s --proc 'a b'",
    ];

    #[test]
    fn a_printed_command_is_parsed_to_the_same_arguments() {
        for line in LINES {
            let (first, matches, definition) = parsed(&words(line));
            let again = Invocation::of(&definition, &matches);
            let (second, ..) = parsed(&words(&again.0));
            assert_eq!(first, second, "{line}\n{}", again.0);
        }
    }

    #[test]
    fn every_option_is_in_a_line_that_is_tried_or_outside() {
        fn each<'a>(command: &'a Command, path: &str, out: &mut Vec<(String, &'a Arg)>) {
            out.extend(command.get_arguments().map(|arg| (path.to_owned(), arg)));
            for below in command.get_subcommands() {
                each(below, &format!("{path} {}", below.get_name()), out);
            }
        }
        // Commands that print no provenance.
        const OTHERS: [&str; 6] = ["record", "convert", "policies", "completions", "man", "help"];
        let mut definition = definition();
        definition.build();
        let mut all = Vec::new();
        each(&definition, "pageset", &mut all);
        for (path, arg) in all {
            let verb = path.split(' ').nth(1).unwrap_or_default();
            let id = arg.get_id().as_str();
            let is_help = ["help", "version"].contains(&id);
            if is_help || OUTSIDE.contains(&id) || OTHERS.contains(&verb) {
                continue;
            }
            let name = match (arg.get_long(), arg.get_short()) {
                (Some(long), _) => format!(" --{long}"),
                (None, Some(short)) => format!(" -{short}"),
                (None, None) => continue,
            };
            let tried = LINES.iter().filter(|line| line.starts_with(&path)).map(|line| printed(line));
            assert!(
                tried.into_iter().any(|line| line.contains(&name)),
                "no printed command line of {path} contains{name}"
            );
        }
    }

    #[test]
    fn what_does_not_change_the_result_is_left_out() {
        assert_eq!(
            printed("pageset sweep p.toml -j 2 --svg d --force -o r.txt -f json --on processes --into d"),
            "pageset sweep p.toml"
        );
        assert_eq!(
            printed(
                "pageset advise --apply vm.stat_interval=2 --times 2 --yes --evidence -o f -- python3 load.py"
            ),
            "pageset advise --apply vm.stat_interval=2 --times 2 --yes --evidence -- python3 load.py"
        );
        assert_eq!(
            printed("pageset bench faults --format csv --threads 2"),
            "pageset bench faults --threads 2"
        );
        assert_eq!(printed("pageset replay t --series"), "pageset replay t --series=series");
        assert_eq!(
            printed("pageset replay t -p linux-6.1 -p linux-6.6"),
            "pageset replay t --policy linux-6.1,linux-6.6"
        );
    }
}
