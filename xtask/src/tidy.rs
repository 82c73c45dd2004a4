//! Checks the repository's rules that a machine can check. Each rule lists all places that break it.

use std::fs;
use std::path::Path;

use crate::layers;
use crate::repository::{Broken, RepositoryFile, files, root, text};
use crate::run::Result;

/// Longest source file, in lines.
const LINES_MAX: usize = 800;
/// The most columns of a comment's line, as of a line of code.
const COLUMNS_MAX: usize = 110;
/// Largest allowed median length of the source files, in lines.
const LINES_MEDIAN_MAX: usize = 250;
/// Largest size of all files in `data/` together.
const DATA_BYTES_MAX: u64 = 16_000_000;
/// An unsafe block must have a SAFETY comment within this number of lines above it.
const SAFETY_LINES: usize = 8;
/// Names of files that say nothing about the contents.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "shared", "misc", "helper", "helpers"];
/// Kinds of files that are read as text.
const TEXT: [&str; 8] = ["rs", "md", "toml", "sh", "json", "txt", "yml", "trycmd"];

/// Checks every rule, and prints the rules that are broken.
pub(crate) fn check() -> Result {
    let mut rules = vec![
        source_files_are_short(),
        half_of_the_source_files_are_shorter(),
        names_say_what_is_inside(),
        test_files_are_modules_of_their_target(),
        reminders_have_an_owner(),
        no_file_names_a_place_outside_the_repository(),
        comments_are_not_wide(),
        unsafe_blocks_give_their_reason(),
        source_files_begin_with_their_purpose(),
        pages_have_a_title(),
        links_between_pages_resolve(),
        pages_are_in_their_list(),
        bundled_data_is_small(),
        fault_15_one_file_writes_to_the_terminal(),
        scripts_are_run_by_a_leg(),
    ];
    rules.extend(layers::rules()?);
    let broken: Vec<_> = rules.iter().filter(|(_, places)| !places.is_empty()).collect();
    if broken.is_empty() {
        println!("tidy: {} rules hold", rules.len());
        return Ok(());
    }
    let texts: Vec<_> =
        broken.iter().map(|(rule, places)| format!("{rule}\n    {}", places.join("\n    "))).collect();
    Err(format!("rules of the repository are broken:\n{}", texts.join("\n")))
}

fn sources() -> Vec<RepositoryFile> {
    files().into_iter().filter(|file| file.has_extension(&["rs"])).collect()
}

fn texts() -> Vec<RepositoryFile> {
    let is_script = |file: &RepositoryFile| file.name.starts_with(".ci/");
    files().into_iter().filter(|file| file.has_extension(&TEXT) || is_script(file)).collect()
}

/// Calls `offence` for each line of each file. Returns the offences, each with the place of its line.
fn each_line(files: &[RepositoryFile], offence: impl Fn(&[&str], usize) -> Option<String>) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files {
        let text = file.text();
        let lines: Vec<_> = text.lines().collect();
        let found = (0..lines.len()).filter_map(|index| Some((index, offence(&lines, index)?)));
        offences.extend(found.map(|(index, what)| format!("{}:{}: {what}", file.name, index + 1)));
    }
    offences
}

fn lengths() -> Vec<(usize, String)> {
    let mut lengths: Vec<_> =
        sources().iter().map(|file| (file.text().lines().count(), file.name.clone())).collect();
    lengths.sort();
    lengths
}

fn source_files_are_short() -> Broken {
    let long = lengths().into_iter().filter(|(lines, _)| *lines > LINES_MAX);
    (
        "A source file has at most 800 lines.",
        long.map(|(lines, name)| format!("{name}: {lines} lines")).collect(),
    )
}

fn half_of_the_source_files_are_shorter() -> Broken {
    let lengths = lengths();
    let median = lengths[lengths.len() / 2].0;
    let offence = (median > LINES_MEDIAN_MAX).then(|| format!("half of them have {median} lines or more"));
    ("Half of the source files have at most 250 lines.", offence.into_iter().collect())
}

fn names_say_what_is_inside() -> Broken {
    let mut offences = Vec::new();
    for file in files() {
        let parts = Path::new(&file.name).with_extension("");
        let empty = parts.iter().filter(|part| EMPTY_NAMES.iter().any(|name| *part == *name));
        offences.extend(empty.map(|part| format!("{}: `{}`", file.name, part.display())));
    }
    offences.extend(each_line(&sources(), |lines, index| {
        let words: Vec<_> = lines[index].split([' ', ';', '{']).filter(|word| !word.is_empty()).collect();
        let module = words.iter().position(|word| *word == "mod").and_then(|at| words.get(at + 1))?;
        let is_module = words.first().is_some_and(|word| *word == "mod" || word.starts_with("pub"));
        (is_module && EMPTY_NAMES.contains(module)).then(|| format!("module `{module}`"))
    }));
    ("A file or module is named after what is inside.", offences)
}

fn test_files_are_modules_of_their_target() -> Broken {
    let sources = sources();
    let mut offences = Vec::new();
    for main in sources.iter().filter(|file| file.name.contains("/tests/") && file.name.ends_with("/main.rs"))
    {
        let (directory, text) = (main.name.trim_end_matches("main.rs"), main.text());
        let beside = sources
            .iter()
            .filter_map(|file| file.name.strip_prefix(directory))
            .filter(|name| *name != "main.rs");
        let modules =
            beside.map(|name| name.split('/').next().expect("a first part").trim_end_matches(".rs"));
        let forgotten = modules.filter(|module| !text.lines().any(|line| line == format!("mod {module};")));
        offences.extend(forgotten.map(|module| format!("{}: no `mod {module};`", main.name)));
    }
    ("A file that no test target includes is never compiled.", offences)
}

/// Returns the reminder's word if a line has a reminder without an owner in parentheses.
fn ownerless_reminder(line: &str) -> Option<&'static str> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME")];
    words.into_iter().find(|word| {
        let mut places = line.match_indices(word);
        places.any(|(at, _)| {
            let is_word = !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
            let rest = &line[at + word.len()..];
            let is_end = !rest.starts_with(|after: char| after.is_alphanumeric() || after == '_');
            let owner = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(owner, _)| owner);
            is_word && is_end && owner.is_none_or(|owner| owner.trim().is_empty())
        })
    })
}

fn reminders_have_an_owner() -> Broken {
    let offences = each_line(&texts(), |lines, index| ownerless_reminder(lines[index]).map(str::to_owned));
    ("A reminder names who will do it, in parentheses.", offences)
}

fn no_file_names_a_place_outside_the_repository() -> Broken {
    let places = [concat!("..", "/shared"), concat!("/wo", "rk/")];
    let offences = each_line(&texts(), |lines, index| {
        places.into_iter().find(|place| lines[index].contains(place)).map(|place| format!("`{place}`"))
    });
    ("The repository stands alone.", offences)
}

/// Whether a line is prose of a comment that is wider than code may be. A row of a table and a line of code
/// cannot be wrapped.
fn is_wide_comment(line: &str) -> bool {
    let text = line.trim_start();
    let rest = text.trim_start_matches(['/', '!']).trim_start();
    let is_code = rest.starts_with("# ") || rest.ends_with(['{', '}', ';', '…']);
    text.starts_with("//") && line.chars().count() > COLUMNS_MAX && !rest.starts_with('|') && !is_code
}

fn comments_are_not_wide() -> Broken {
    let offences = each_line(&sources(), |lines, index| {
        is_wide_comment(lines[index]).then(|| format!("{} columns", lines[index].chars().count()))
    });
    ("A line of a comment has at most 110 columns.", offences)
}

fn unsafe_blocks_give_their_reason() -> Broken {
    let opening = concat!("unsafe", " {");
    let offences = each_line(&sources(), |lines, index| {
        let line = lines[index].trim_start();
        if line.starts_with("//") || !line.contains(opening) {
            return None;
        }
        let above = &lines[index.saturating_sub(SAFETY_LINES)..=index];
        (!above.iter().any(|line| line.contains("SAFETY:"))).then(|| line.to_owned())
    });
    ("An unsafe block has a SAFETY comment above it.", offences)
}

fn source_files_begin_with_their_purpose() -> Broken {
    let files = sources();
    let headless = files.iter().filter(|file| !file.text().starts_with("//!"));
    let offences: Vec<_> = headless.map(|file| file.name.clone()).collect();
    ("A source file begins with a `//!` line.", offences)
}

fn pages_have_a_title() -> Broken {
    let pages: Vec<_> = files().into_iter().filter(|file| file.has_extension(&["md"])).collect();
    let untitled = pages.iter().filter(|file| !file.text().starts_with("# "));
    let offences: Vec<_> = untitled.map(|file| file.name.clone()).collect();
    ("A Markdown page begins with a `# ` title.", offences)
}

/// Returns the lines of a Markdown page. Each line of a code block becomes an empty line.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut prose = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let outside_code = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        prose.push(if fenced || is_fence { String::new() } else { outside_code });
    }
    prose
}

/// Returns the targets of a line's links and includes that point to files.
fn targets(line: &str) -> Vec<String> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let includes = line.split("{{#include ").skip(1).filter_map(|rest| rest.split(['}', ':']).next());
    let is_file =
        |target: &&str| !target.contains("://") && !target.starts_with("mailto:") && !target.is_empty();
    links.chain(includes).filter(is_file).map(str::to_owned).collect()
}

/// Returns the anchors of a page: its headings in lower case, with words joined by `-`.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|character| character.is_alphanumeric() || " -_".contains(*character));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(slug).collect()
}

fn links_between_pages_resolve() -> Broken {
    let mut offences = Vec::new();
    for page in files().into_iter().filter(|file| file.has_extension(&["md"])) {
        let directory = page.path.parent().expect("a file is in a directory");
        for (index, line) in prose(&page.text()).iter().enumerate() {
            for target in targets(line) {
                let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
                let path = if file.is_empty() { page.path.clone() } else { directory.join(file) };
                let place = format!("{}:{}: {target}", page.name, index + 1);
                if !path.exists() {
                    offences.push(format!("{place}: no such file"));
                } else if !anchor.is_empty() && path.extension().is_some_and(|extension| extension == "md") {
                    let text = fs::read_to_string(&path).expect("a page can be read");
                    if !anchors(&text).contains(&anchor.to_owned()) {
                        offences.push(format!("{place}: no such heading"));
                    }
                }
            }
        }
    }
    ("A relative link leads to a file and a heading that exist.", offences)
}

fn pages_are_in_their_list() -> Broken {
    let mut offences = Vec::new();
    for (directory, list) in [("docs/book/src/", "SUMMARY.md"), ("docs/decisions/", "README.md")] {
        let listed = fs::read_to_string(root().join(directory).join(list)).expect("the list exists");
        for file in files().iter().filter(|file| file.has_extension(&["md"])) {
            let page = file.name.strip_prefix(directory).filter(|page| *page != list);
            if page.is_some_and(|page| !listed.contains(&format!("]({page})"))) {
                offences.push(format!("{} is not in {list}", file.name));
            }
        }
    }
    ("A page of the book or of the decisions can be found from its list.", offences)
}

fn bundled_data_is_small() -> Broken {
    let data: Vec<_> = files().into_iter().filter(|file| file.name.starts_with("data/")).collect();
    let size = |file: &RepositoryFile| fs::metadata(&file.path).expect("a file has a size").len();
    let bytes: u64 = data.iter().map(size).sum();
    let offence =
        (bytes >= DATA_BYTES_MAX).then(|| format!("data/ has {bytes} bytes, {DATA_BYTES_MAX} are too many"));
    ("Data that is bundled is small.", offence.into_iter().collect())
}

/// Only the module `output` of the command may write to a terminal, because it replaces control characters in
/// foreign texts. Each exception below has a reason.
fn fault_15_one_file_writes_to_the_terminal() -> Broken {
    const WRITERS: [&str; 3] = [
        "lab/cli/src/output.rs",
        // This file must clear the screen. The text on the screen comes from `pageset-report`, in ASCII.
        "lab/cli/src/top/plain.rs",
        // This file asks questions at the terminal. A question's control characters are replaced, too.
        "lab/cli/src/terminal.rs",
    ];
    let writes = [
        "println!(",
        "print!(",
        "eprint!(",
        "stdout().lock()",
        "stderr().lock()",
        "(io::stdout()",
        "(io::stderr()",
    ];
    let is_writing =
        |line: &str| writes.iter().any(|write| line.contains(write)) && !line.contains("is_terminal");
    let mut wrong = Vec::new();
    for file in
        files().iter().filter(|file| file.name.starts_with("lab/cli/src/") && file.has_extension(&["rs"]))
    {
        let text = file.text();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = product.lines().enumerate().filter(|(_, line)| is_writing(line));
        wrong.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.name, at + 1, line.trim())));
    }
    wrong.retain(|place| !WRITERS.iter().any(|writer| place.starts_with(writer)));
    let allowed = ["top.rs:", "tcgetwinsize(io::stdout())"];
    wrong.retain(|place| !allowed.iter().any(|allowed| place.contains(allowed)));
    ("The command writes to the terminal by `output`.", wrong)
}

/// Returns the names of the scripts in `ci/`.
fn scripts() -> Vec<String> {
    let entries = fs::read_dir(root().join("ci")).expect("ci is a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".sh") || name.ends_with(".py")).collect()
}

/// Each script in `ci/` must be named in the source of a leg or in another script, because otherwise no gate
/// runs it.
fn scripts_are_run_by_a_leg() -> Broken {
    let legs = ["full", "night", "book"].map(|name| text(&format!("xtask/src/{name}.rs"))).concat();
    let scripts = scripts();
    // Another script may start the script.
    let texts: Vec<_> = scripts.iter().map(|name| text(&format!("ci/{name}"))).collect();
    let is_run = |name: &String| {
        let path = format!("ci/{name}");
        legs.contains(&format!("\"{path}\"")) || texts.iter().any(|text| text.contains(&format!("{path}\"")))
    };
    ("A script of ci/ is run by a leg.", scripts.iter().filter(|name| !is_run(name)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checks_find_what_they_look_for() {
        let reminder = concat!("TO", "DO");
        assert_eq!(ownerless_reminder(&format!("// {reminder}: later")), Some(reminder));
        assert_eq!(ownerless_reminder(&format!("// {reminder}(): later")), Some(reminder));
        assert_eq!(ownerless_reminder(&format!("// {reminder}(ada): later")), None);
        assert_eq!(ownerless_reminder(&format!("the {reminder}S list")), None);
        assert!(is_wide_comment(&format!("    /// {}", "a word ".repeat(20))));
        assert!(!is_wide_comment(&format!("/// | {} |", "a word ".repeat(20))));
        assert!(!is_wide_comment(&"a word ".repeat(20)));
        assert_eq!(targets("[a](b.md#c) and [d](https://e) {{#include ../f.md}}"), ["b.md#c", "../f.md"]);
        assert_eq!(prose("a `[x](y)` b\n```\n[x](y)\n```\nc"), ["a ` b", "", "", "", "c"]);
        assert_eq!(anchors("## The `high` limit, in short\n"), ["the-high-limit-in-short"]);
    }
}
