//! Reads published tables, from the built-in files of `data/tables` and from the files of a user's study.

use anyhow::{Context as _, Result, anyhow};

/// A published table: columns with names, and rows of text.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    file: String,
    columns: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl Published {
    /// Reads a table from the text of a CSV. `file` is the name of the CSV in error messages.
    pub(crate) fn parse(file: impl Into<String>, text: &str) -> Result<Self> {
        let file = file.into();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().with_context(|| file.clone())?;
        let columns = columns.iter().map(str::to_owned).collect();
        let rows = reader.records().collect::<Result<Vec<_>, _>>();
        let rows = rows.with_context(|| file.clone())?;
        Ok(Self { file, columns, rows })
    }

    /// Returns the name of the CSV file, for messages.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Returns the names of the CSV's columns.
    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Replaces all occurrences of a misprint in a column. Returns the number of replaced occurrences.
    pub(crate) fn correct(&mut self, column: &str, printed: &str, meant: &str) -> usize {
        let Some(at) = self.columns.iter().position(|name| name == column) else { return 0 };
        let mut corrected = 0;
        for row in self.rows.iter_mut().filter(|row| row.get(at) == Some(printed)) {
            let fields = row.iter().enumerate().map(|(index, text)| if index == at { meant } else { text });
            let mut new: csv::StringRecord = fields.collect();
            new.set_position(row.position().cloned());
            *row = new;
            corrected += 1;
        }
        corrected
    }

    /// Returns the rows of the CSV, from top to bottom.
    pub(crate) fn rows(&self) -> impl Iterator<Item = PublishedRow<'_>> {
        self.rows.iter().map(|values| PublishedRow { table: self, values })
    }

    /// Returns the rows that have the given text in a column.
    pub(crate) fn rows_with<'a>(
        &'a self,
        column: &'a str,
        text: &'a str,
    ) -> impl Iterator<Item = PublishedRow<'a>> {
        self.rows().filter(move |row| row.text(column).is_ok_and(|found| found == text))
    }
}

/// One row of a published table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedRow<'a> {
    table: &'a Published,
    values: &'a csv::StringRecord,
}

impl<'a> PublishedRow<'a> {
    /// Returns the text in a column.
    pub(crate) fn text(&self, column: &str) -> Result<&'a str> {
        let index = self.table.columns.iter().position(|name| name == column);
        let value = index.and_then(|index| self.values.get(index));
        value.ok_or_else(|| anyhow!("{}: no column `{column}`", self.table.file))
    }

    /// Returns the number in a column. Returns `None` if the column is empty.
    pub(crate) fn number(&self, column: &str) -> Result<Option<f64>> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().map_err(|_| {
            let line = self.values.position().map_or(0, csv::Position::line);
            anyhow!("{}:{line}: `{text}` in column `{column}` is not a number", self.table.file)
        });
        number.map(Some)
    }
}

/// Reads a built-in table of `data/tables` by its path in this directory.
macro_rules! published {
    ($file:literal) => {
        $crate::published::Published::parse(
            concat!("data/tables/", $file),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tables/", $file)),
        )
    };
}
pub(crate) use published;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rows_are_found_and_gaps_are_absent() {
        let table = published!("batch-size/phase2.csv").unwrap();
        let row = table.rows_with("machine", "lkp-skl-4sp1").next().unwrap();
        assert_eq!(row.number("batch31").unwrap(), Some(2_410_037.0));
        assert_eq!(row.number("batch127_stddev_pct").unwrap(), None);
        assert_eq!(
            row.text("batch15").unwrap_err().to_string(),
            "data/tables/batch-size/phase2.csv: no column `batch15`"
        );
        assert_eq!(
            row.number("machine").unwrap_err().to_string(),
            "data/tables/batch-size/phase2.csv:2: `lkp-skl-4sp1` in column `machine` is not a number"
        );
    }

    #[test]
    fn the_manifest_knows_every_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables");
        let manifest = published!("MANIFEST.csv").unwrap();
        let mut listed = Vec::new();
        for row in manifest.rows() {
            let file = row.text("file").unwrap();
            let table =
                Published::parse("a table", &std::fs::read_to_string(root.join(file)).unwrap()).unwrap();
            assert_eq!(Some(table.rows().count() as f64), row.number("rows").unwrap(), "{file}");
            assert_eq!(table.columns.join(" "), row.text("columns").unwrap(), "{file}");
            listed.push(file);
        }
        for directory in std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(files) = std::fs::read_dir(&directory) else { continue };
            let files = files.map(|entry| entry.unwrap().path());
            for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "csv")) {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                assert!(listed.contains(&name), "{name} is not in MANIFEST.csv");
            }
        }
        for row in published!("ERRATA.csv").unwrap().rows() {
            let file = row.text("file").unwrap();
            assert!(file == "(several)" || listed.contains(&file), "{file}");
        }
    }
}
