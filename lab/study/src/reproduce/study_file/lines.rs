//! Finds the line of a published table that has a value.

use toml::Spanned;

use super::form::Texts;
use super::mistake::{Mistake, Result};
use crate::reproduce::published::{Published, PublishedRow};
use crate::sweep::Several;

/// Texts that a line has to have: one of several texts in each of some columns. A later condition on a column
/// replaces an earlier one.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition(Vec<(String, Vec<String>)>);

impl Condition {
    /// Both conditions. `column` is a name in the CSV.
    pub(super) fn and_text(mut self, column: &str, texts: &[String]) -> Self {
        self.0.retain(|(other, _)| other != column);
        self.0.push((column.to_owned(), texts.to_vec()));
        self
    }

    /// Both conditions, if the table has the columns.
    pub(super) fn and(self, table: &Published, texts: &Option<Spanned<Texts>>) -> Result<Self> {
        let Some(texts) = texts else { return Ok(self) };
        texts.get_ref().iter().try_fold(self, |condition, (column, several)| {
            has_column(table, column).map_err(|problem| Mistake::at(texts, problem))?;
            Ok(condition.and_text(column, Several::values(several)))
        })
    }

    /// The lines, from top to bottom.
    pub(super) fn lines<'a>(&self, table: &'a Published) -> Vec<PublishedRow<'a>> {
        table.rows().filter(|line| self.fits(line)).collect()
    }

    /// The one line.
    pub(super) fn line<'a>(&self, table: &'a Published) -> Result<PublishedRow<'a>, String> {
        match self.lines(table)[..] {
            [line] => Ok(line),
            [] => Err(format!("{} has no line with {}", table.file(), self.words())),
            ref lines => {
                let (count, file) = (lines.len(), table.file());
                Err(format!("{file} has {count} lines with {}: say which one, by `only`", self.words()))
            }
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

/// Checks that a table has a column.
pub(super) fn has_column(table: &Published, column: &str) -> Result<(), String> {
    if table.columns().iter().any(|name| name == column) {
        return Ok(());
    }
    Err(format!("{} has no column `{column}`; its columns are {}", table.file(), table.columns().join(", ")))
}

/// The name of a column that the table has.
pub(super) fn column<'a>(table: &Published, name: &'a Spanned<String>) -> Result<&'a str> {
    has_column(table, name.get_ref()).map_err(|problem| Mistake::at(name, problem))?;
    Ok(name.get_ref())
}
