//! A study's Markdown: its paragraphs, by heading.

use anyhow::{Result, bail};

/// The headings of a report's sections, and of the notes that only a quick run has.
pub(super) const NOTES: &str = "How to read this";
const QUICK: &str = "In a quick run";
const COPIES: &str = "Copies of a recorded build";
const MEMORY: &str = "Used memory";
pub(super) const EXPLANATIONS: &str = "What did not reproduce, and why";

/// The notes of a study. Each text is a paragraph of the Markdown on one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prose {
    /// Notes that a reader of the tables needs.
    pub(super) notes: Vec<String>,
    /// Notes of a quick run.
    pub(super) quick: Vec<String>,
    /// Notes of the table of copies, and of the table of used memory.
    pub(super) copies: Vec<String>,
    pub(super) memory: Vec<String>,
    /// Why rows differ.
    pub(super) explanations: Vec<String>,
}

impl Prose {
    /// Reads the Markdown. What stands above the first section is for readers of the file. `file` is its name.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self> {
        let mut prose = Self::default();
        let mut beginning = Vec::new();
        let mut section = &mut beginning;
        let mut is_begun = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(heading) = line.strip_prefix("## ") {
                section = match heading {
                    NOTES => &mut prose.notes,
                    QUICK => &mut prose.quick,
                    COPIES => &mut prose.copies,
                    MEMORY => &mut prose.memory,
                    EXPLANATIONS => &mut prose.explanations,
                    _ => bail!(
                        "{file}:{}: no section is `{heading}`; use `{NOTES}`, `{QUICK}`, `{COPIES}`, `{MEMORY}` and \
                         `{EXPLANATIONS}`",
                        index + 1
                    ),
                };
            }
            match section.last_mut() {
                _ if line.is_empty() || line.starts_with('#') => is_begun = false,
                Some(paragraph) if is_begun => *paragraph = format!("{paragraph} {line}"),
                _ => {
                    section.push(line.to_owned());
                    is_begun = true;
                }
            }
        }
        Ok(prose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_texts_below_their_heading() {
        let text = "# A study\n\nOf this.\n\n## How to read this\n\nOne\nnote.\n\nAnother.\n\n\
                    ## What did not reproduce, and why\nA reason.\n";
        let prose = Prose::parse("a.md", text).unwrap();
        assert_eq!(prose.notes, ["One note.", "Another."]);
        assert_eq!((prose.quick.len(), prose.explanations), (0, vec!["A reason.".to_owned()]));
        let error = Prose::parse("a.md", "# A\n## Reasons\n").unwrap_err().to_string();
        assert!(error.starts_with("a.md:2: no section is `Reasons`; use `How to read this`"), "{error}");
    }
}
