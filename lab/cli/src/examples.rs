//! Checks that clap accepts every command line in help texts, in the book, and in the READMEs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::args::definition;
use crate::example_lines::{command_lines, pageset_parts};

/// Collects the help texts of a command and of its subcommands.
fn helps(command: &Command, found: &mut Vec<(String, String)>) {
    let texts = [command.get_long_about(), command.get_after_help(), command.get_after_long_help()];
    for text in texts.into_iter().flatten() {
        found.push((command.get_name().to_owned(), text.to_string()));
    }
    command.get_subcommands().for_each(|below| helps(below, found));
}

fn subcommands() -> Vec<String> {
    definition().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Returns clap's error for the first call of pageset in a shell line that clap refuses. `None` if clap
/// accepts all calls.
fn refused(line: &str) -> Option<String> {
    // Replace the paths of policy files in the examples by the path of a file that exists here.
    let mine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/policies/half-drain.toml");
    let refused = |words: Vec<String>| {
        let there = words.iter().map(|word| word.replace("data/policies/half-drain.toml", mine));
        let there = there
            .map(|word| if word.contains("./mine.toml") { word.replace("./mine.toml", mine) } else { word });
        definition().try_get_matches_from(there).err()
    };
    let is_wrong = |error: &clap::Error| error.use_stderr();
    let error = pageset_parts(line).find_map(|words| refused(words).filter(is_wrong))?;
    Some(format!("`{line}`: {error}"))
}

#[test]
fn every_example_of_every_help_text_can_be_typed() {
    let subcommands = subcommands();
    let mut texts = Vec::new();
    helps(&definition(), &mut texts);
    let mut count = 0;
    for (command, text) in texts {
        for line in command_lines(&text, &subcommands) {
            assert!(
                line.len() <= 78,
                "the help of {command} has a line that is too long for 80 columns: `{line}`"
            );
            assert_eq!(refused(&line), None, "{command}");
            count += pageset_parts(&line).count();
        }
    }
    assert!(count > 60, "the help texts must have more than 60 examples, but only {count} were found");
}

#[test]
fn a_line_that_cannot_be_typed_is_found() {
    let lines =
        command_lines("Examples:\n  sudo pageset recrod -- ls\n  pageset stat     a word on it\n", &[]);
    assert_eq!(lines, ["sudo pageset recrod -- ls", "pageset stat"]);
    assert!(refused(&lines[0]).is_some());
    assert_eq!(refused("zcat t.gz | pageset replay - > out; pageset stat 'a b.pgtrace'"), None);
    assert!(refused("ls; pageset replay --no-such-option").is_some());
    assert_eq!(command_lines("  pageset plays it once", &["stat".to_owned()]), [""; 0]);
}

/// Markdown files of the repository that tell users what to type.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.join("README.md")];
    let mut directories = ["docs/book/src", "kernel", "pool", "lab"].map(|name| root.join(name)).to_vec();
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // Leave out transcripts, which lie in directories `tests`. Another test runs transcripts, and
            // some transcripts show errors.
            if path.is_dir() && !matches!(name, "target" | "tests") && !path.is_symlink() {
                directories.push(path);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_command_of_the_book_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let subcommands = subcommands();
    let mut count = 0;
    for path in documents(&root) {
        let text = fs::read_to_string(&path).unwrap();
        let mut fence: Option<&str> = None;
        for (line, number) in text.lines().zip(1..) {
            if let Some(kind) = line.trim_start().strip_prefix("```") {
                fence = if fence.is_some() { None } else { Some(kind) };
                continue;
            }
            // Leave out blocks of `console`: they are transcripts, which another test runs.
            if !matches!(fence, Some("sh" | "text" | "")) {
                continue;
            }
            let line = line.trim_start().trim_start_matches("$ ");
            let words_of_prose = line.split("  #").next().unwrap_or_default();
            for typed in command_lines(&format!("  {words_of_prose}"), &subcommands) {
                // clap must accept `...` and names in capitals, because documents write these words in place
                // of the reader's own files and values.
                assert_eq!(refused(&typed), None, "{}:{number}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 30, "the documents must have more than 30 commands, but only {count} were found");
}
