//! Writes rows as Parquet and Arrow, formats that store columns.

use std::io::Write;

use anyhow::Result;
use pageset_report::Table;
use pageset_reproduce::sweep::FinishedRun;

/// A file format that stores columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columnar {
    /// A Parquet file that has one row group.
    Parquet,
    /// An Arrow file, also known as Feather.
    Arrow,
}

impl Columnar {
    pub(crate) const ALL: [Self; 2] = [Self::Parquet, Self::Arrow];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// Checks that this build can write the format.
    ///
    /// # Errors
    ///
    /// Returns an error if this build cannot write the format. The error names a build that can.
    pub(crate) fn check(self) -> Result<()> {
        #[cfg(not(feature = "arrow"))]
        anyhow::bail!(
            "this build cannot write {}: build it with `cargo build --release --features arrow`, or use the build of `pip install pageset`",
            self.name()
        );
        #[cfg(feature = "arrow")]
        Ok(())
    }

    /// Writes a table's rows, with its notes and provenance as metadata.
    pub(crate) fn write_table(self, table: &Table, out: &mut dyn Write) -> Result<()> {
        #[cfg(not(feature = "arrow"))]
        {
            let _ = (table, out);
            self.check()
        }
        #[cfg(feature = "arrow")]
        self.write(&pageset_arrow::table::batch(table)?, out)
    }

    /// Writes all parameters and all results of runs.
    pub(crate) fn write_runs<'r>(
        self,
        runs: impl Iterator<Item = &'r FinishedRun>,
        out: &mut dyn Write,
    ) -> Result<()> {
        #[cfg(not(feature = "arrow"))]
        {
            let _ = (runs, out);
            self.check()
        }
        #[cfg(feature = "arrow")]
        {
            let (mut keys, mut specs, mut results) = (Vec::new(), Vec::new(), Vec::new());
            for run in runs {
                keys.push(run.key.clone());
                specs.push(run.spec.clone());
                results.push(run.result()?);
            }
            self.write(&pageset_arrow::rows::keyed(&keys, &specs, &results)?, out)
        }
    }

    #[cfg(feature = "arrow")]
    fn write(self, batch: &pageset_arrow::RecordBatch, out: &mut dyn Write) -> Result<()> {
        use pageset_arrow::file;
        match self {
            Self::Parquet => Ok(out.write_all(&file::parquet(batch)?)?),
            Self::Arrow => file::write_arrow(&batch.schema(), [Ok(batch.clone())], out),
        }
    }
}
