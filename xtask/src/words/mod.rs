//! Finds sentences that readers may have to read twice, in comments of sources and in the prose of pages.
//! `xtask/patterns.txt` has the patterns of such sentences. A match is only a hint that a sentence is
//! unclear. The counts in `xtask/words.toml` may only fall.

mod pattern;
mod prose;

use std::collections::BTreeMap;
use std::path::Path;

use pattern::Pattern;
use prose::prose;

use crate::ratchet::Ratchet;
use crate::repository::{RepositoryFile, files, root};
use crate::run::Result;

const RATCHET: Ratchet = Ratchet { file: "xtask/words.toml", verb: "words" };
/// A sentence with more words than this is a finding.
const WORDS_MAX: usize = 35;
const LONG: &str = "sentence of more than 35 words";

/// A pattern with its name, and advice on a better sentence.
struct Named {
    name: &'static str,
    /// Whether the pattern is tried only on the first line of a paragraph.
    is_of_first_lines: bool,
    pattern: Pattern,
    instead: &'static str,
}

struct Finding {
    line: usize,
    name: &'static str,
    instead: &'static str,
    text: String,
}

fn patterns() -> Vec<Named> {
    let entries = include_str!("../../patterns.txt").split("\n\n").skip(1);
    let entry = |entry: &'static str| {
        let mut lines = entry.lines();
        let mut line = || lines.next().expect("an entry has three lines");
        let (name, pattern, instead) = (line(), line(), line());
        Named {
            name,
            is_of_first_lines: pattern.starts_with("^(?:Of"),
            pattern: Pattern::new(pattern),
            instead,
        }
    };
    entries.map(entry).collect()
}

/// Returns the line with `X` in place of each piece of code.
fn without_code(line: &str) -> Vec<char> {
    let mut bare = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('`') {
        let Some((_, after)) = behind.split_once('`') else { break };
        bare.push_str(before);
        bare.push('X');
        rest = after;
    }
    bare.push_str(rest);
    bare.chars().collect()
}

/// Splits a paragraph into sentences, at each mark that a new sentence follows.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    for (at, mark) in paragraph.match_indices(['.', '!', '?']) {
        let behind = &paragraph[at + mark.len()..];
        let next = behind.trim_start();
        if next.len() < behind.len()
            && next.starts_with(|first: char| first.is_ascii_uppercase() || "`*".contains(first))
        {
            sentences.push(&paragraph[begin..at + mark.len()]);
            begin = paragraph.len() - next.len();
        }
    }
    sentences.push(&paragraph[begin..]);
    sentences
}

fn find(name: &str, text: &str, patterns: &[Named]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let (mut start, mut last) = (0, usize::MAX - 1);
    let long = |paragraph: &[&str], start: usize, findings: &mut Vec<Finding>| {
        for sentence in sentences(&paragraph.join(" ")) {
            if sentence.split_whitespace().count() > WORDS_MAX {
                let text = sentence.to_owned();
                findings.push(Finding { line: start, name: LONG, instead: "Make two sentences.", text });
            }
        }
    };
    for (number, line) in prose(name, text) {
        if number != last + 1 {
            long(&paragraph, start, &mut findings);
            paragraph.clear();
            start = number;
        }
        paragraph.push(line);
        last = number;
        let bare = without_code(line);
        for Named { name, is_of_first_lines, pattern, instead } in patterns {
            if (!is_of_first_lines || number == start) && pattern.is_in(&bare) {
                findings.push(Finding { line: number, name, instead, text: line.to_owned() });
            }
        }
    }
    long(&paragraph, start, &mut findings);
    findings
}

/// Returns all files that have prose, each with its findings.
fn findings() -> Vec<(RepositoryFile, Vec<Finding>)> {
    let patterns = patterns();
    let is_read = |file: &RepositoryFile| !file.name.contains("/vendor/") && prose::is_known(&file.name);
    let files = files().into_iter().filter(is_read);
    files
        .map(|file| (find(&file.name, &file.text(), &patterns), file))
        .map(|(found, file)| (file, found))
        .collect()
}

/// Returns the key of a file's count: the name of a page, or the crate or directory of a source.
fn key(name: &str) -> String {
    if name.ends_with(".md") {
        return name.to_owned();
    }
    let mut directories = Path::new(name).ancestors().skip(1).filter(|directory| *directory != Path::new(""));
    let is_crate = |directory: &&Path| root().join(directory).join("Cargo.toml").exists();
    let innermost = directories.find(is_crate).map(|directory| directory.display().to_string());
    innermost.unwrap_or_else(|| name.split_once('/').map_or(name, |(directory, _)| directory).to_owned())
}

fn counts() -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (file, found) in findings().iter().filter(|(_, found)| !found.is_empty()) {
        *counts.entry(key(&file.name)).or_insert(0) += found.len() as u64;
    }
    counts
}

pub(crate) fn check() -> Result {
    RATCHET.check_sums(&counts())
}

pub(crate) fn accept() -> Result {
    RATCHET.write(&counts())
}

/// Prints how often each pattern was found, and the files with the most findings.
pub(crate) fn summary() -> Result {
    let all = findings();
    let mut names = BTreeMap::<&str, usize>::new();
    for finding in all.iter().flat_map(|(_, found)| found) {
        *names.entry(finding.name).or_default() += 1;
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (name, count) in &names {
        println!("{count:6}  {name}");
    }
    let sum: usize = names.iter().map(|(_, count)| count).sum();
    let count = |file: &RepositoryFile| {
        prose(&file.name, &file.text()).iter().map(|(_, line)| line.split_whitespace().count()).sum::<usize>()
    };
    let words: usize = all.iter().map(|(file, _)| count(file)).sum();
    println!(
        "{sum:6}  in all, in {words} words: {:.1} in a thousand",
        1e3 * sum as f64 / words.max(1) as f64
    );
    let mut worst: Vec<_> = all.iter().map(|(file, found)| (found.len(), &file.name)).collect();
    worst.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    for (count, name) in worst.iter().take(15) {
        println!("{count:6}  {name}");
    }
    Ok(())
}

/// Prints every finding in files below these paths.
pub(crate) fn list(paths: &[&str]) -> Result {
    let is_below = |name: &str| {
        paths.iter().any(|path| Path::new(name).starts_with(path.trim_start_matches("./")) || *path == ".")
    };
    let mut count = 0;
    let mut files_read = 0;
    for (file, found) in findings().iter().filter(|(file, _)| is_below(&file.name)) {
        files_read += 1;
        for finding in found {
            let text: String = finding.text.chars().take(160).collect();
            println!("{}:{}: {}: {text}\n    {}", file.name, finding.line, finding.name, finding.instead);
            count += 1;
        }
    }
    if files_read == 0 {
        return Err(format!(
            "no file with prose below {} (paths are from {})",
            paths.join(", "),
            root().display()
        ));
    }
    println!("{count} in {files_read} files");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(name: &str, text: &str, found: &[(usize, &str)]) {
        let all = find(name, text, &patterns());
        assert_eq!(all.iter().map(|one| (one.line, one.name)).collect::<Vec<_>>(), found);
    }

    #[test]
    fn hard_sentences_are_found() {
        expect("a.rs", "// Nobody sees it.\nlet nobody = 1;\n", &[(1, "somebody / nobody")]);
        expect("a.rs", "/// Takes a page.\n/// Of these, one.\n", &[]);
        expect("a.rs", "/// Of these, one.\n", &[(1, "begins with Of, Those, As, So many")]);
        expect("a.md", "It took 8.0 ns for 9.4 before.\n", &[(1, "N for M as a comparison")]);
        expect("a.md", "```\nNobody\n```\n`Nobody` is a name.\n", &[]);
        expect("a.md", &format!("Short.\n{}end.\n", "word ".repeat(40)), &[(1, LONG)]);
    }

    #[test]
    fn a_page_is_counted_alone_and_a_source_with_its_crate() {
        assert_eq!(key("bench/peers/src/a.rs"), "bench/peers");
        assert_eq!(key("bench/peers/README.md"), "bench/peers/README.md");
        assert_eq!(key("ci/a.sh"), "ci");
    }
}
