//! Finds the lines of a CSV that have published values.

use anyhow::{Result, bail};
use toml::Spanned;

use super::form::Texts;
use super::mistake::At as _;
use crate::published::{Published, PublishedRow};

/// A condition on the lines of a CSV. For some columns, the condition lists the texts that a line may have in
/// the column. A later list for a column replaces an earlier list for this column.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition(Vec<(String, Vec<String>)>);

impl Condition {
    /// Adds the condition that a line has one of `texts` in the column `column`.
    pub(super) fn and_text(mut self, column: &str, texts: &[String]) -> Self {
        self.0.retain(|(other, _)| other != column);
        self.0.push((column.to_owned(), texts.to_vec()));
        self
    }

    /// Adds a condition for each column that `texts` names. Fails if the CSV lacks one of the columns that
    /// `texts` names.
    pub(super) fn and(self, table: &Published, texts: &Option<Spanned<Texts>>) -> Result<Self> {
        let Some(texts) = texts else { return Ok(self) };
        texts.get_ref().iter().try_fold(self, |condition, (column, several)| {
            check_column(table, column).at(texts)?;
            Ok(condition.and_text(column, several.values()))
        })
    }

    /// Returns the lines that meet the condition, from top to bottom.
    pub(super) fn lines<'a>(&self, table: &'a Published) -> Vec<PublishedRow<'a>> {
        table.rows().filter(|line| self.fits(line)).collect()
    }

    /// Returns the only line that meets the condition. Fails if no line meets the condition, or if several
    /// lines meet the condition.
    pub(super) fn line<'a>(&self, table: &'a Published) -> Result<PublishedRow<'a>> {
        let (lines, file, words) = (self.lines(table), table.file(), self.words());
        match lines[..] {
            [line] => Ok(line),
            [] => bail!("{file} has no line with {words}"),
            _ => bail!("{file} has {} lines with {words}: say which one, by `only`", lines.len()),
        }
    }

    fn fits(&self, line: &PublishedRow<'_>) -> bool {
        let is_met = |(column, texts): &(String, Vec<String>)| {
            line.text(column).is_ok_and(|text| texts.iter().any(|wanted| wanted == text))
        };
        self.0.iter().all(is_met)
    }

    fn words(&self) -> String {
        if self.0.is_empty() {
            return "no condition".to_owned();
        }
        let words = self.0.iter().map(|(column, texts)| format!("`{}` in `{column}`", texts.join("` or `")));
        words.collect::<Vec<_>>().join(" and ")
    }
}

fn check_column(table: &Published, column: &str) -> Result<()> {
    if !table.columns().iter().any(|name| name == column) {
        let columns = table.columns().join(", ");
        bail!("{} has no column `{column}`; its columns are {columns}", table.file());
    }
    Ok(())
}

/// Checks that the table has a column with this name, and returns the name.
pub(super) fn column<'a>(table: &Published, name: &'a Spanned<String>) -> Result<&'a str> {
    check_column(table, name.get_ref()).at(name)?;
    Ok(name.get_ref())
}
