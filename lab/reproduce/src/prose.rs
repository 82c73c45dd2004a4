//! Reads the notes of a study from Markdown: the paragraphs below each heading.

use anyhow::{Context as _, Result};

/// The headings that the notes of a study may have. The paragraphs below `NOTES` and `EXPLANATIONS` become
/// sections of the report. Only a quick run shows the paragraphs below `QUICK`. The paragraphs below `COPIES`
/// and `MEMORY` are notes on further tables.
pub(super) const NOTES: &str = "How to read this";
pub(super) const QUICK: &str = "In a quick run";
pub(super) const COPIES: &str = "Copies of a recorded build";
pub(super) const MEMORY: &str = "Used memory";
pub(super) const EXPLANATIONS: &str = "What did not reproduce, and why";
const HEADINGS: [&str; 5] = [NOTES, QUICK, COPIES, MEMORY, EXPLANATIONS];

/// The notes of a study: for each of the [`HEADINGS`], a list of the paragraphs below the heading. Each
/// paragraph is joined to one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prose([Vec<String>; HEADINGS.len()]);

impl Prose {
    /// Reads the Markdown of the file called `file`. Text above the first section of the file is not part of
    /// the notes.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self> {
        let mut prose = Self::default();
        let mut section = &mut Vec::new();
        let mut is_begun = false;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if let Some(heading) = line.strip_prefix("## ") {
                let at = HEADINGS.iter().position(|known| *known == heading).with_context(|| {
                    let known = HEADINGS.map(|known| format!("`{known}`")).join(", ");
                    format!("{file}:{number}: no section is `{heading}`; use one of {known}")
                })?;
                section = &mut prose.0[at];
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

    /// Returns the paragraphs below a heading.
    pub(super) fn below(&self, heading: &str) -> &[String] {
        HEADINGS.iter().position(|known| *known == heading).map_or(&[], |at| &self.0[at])
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
        assert_eq!(prose.below(NOTES), ["One note.", "Another."]);
        assert_eq!((prose.below(QUICK).len(), prose.below(EXPLANATIONS)), (0, &["A reason.".to_owned()][..]));
        let error = Prose::parse("a.md", "# A\n## Reasons\n").unwrap_err().to_string();
        assert!(
            error.starts_with("a.md:2: no section is `Reasons`; use one of `How to read this`"),
            "{error}"
        );
    }
}
