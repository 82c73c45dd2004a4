//! Writes batches in the formats Parquet and Arrow.

use std::io::Write;

use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

/// Returns the batch as the bytes of a Parquet file with one row group.
///
/// # Errors
///
/// An error of Parquet. No such error is known to occur.
pub fn parquet(batch: &RecordBatch) -> Result<Vec<u8>> {
    // Leave out the statistics of files with one row, because these statistics only repeat the row. Most
    // files have one row.
    let statistics = if batch.num_rows() > 1 { EnabledStatistics::Chunk } else { EnabledStatistics::None };
    let properties = WriterProperties::builder()
        // Write a fixed name, so that equal rows give equal bytes with every version of the Parquet library.
        .set_created_by("pageset".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(true)
        .build();
    // Leave out Arrow's own schema, which takes a third of a small file. For a batch without metadata,
    // Arrow's schema adds nothing to Parquet's schema.
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(batch.schema().metadata().is_empty());
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options)?;
    writer.write(batch)?;
    writer.close()?;
    Ok(bytes)
}

/// Returns the bytes of the batch as an Arrow stream. [`from_stream`] reads the bytes of such a stream.
///
/// # Errors
///
/// An error of Arrow. No such error is known to occur.
pub fn stream(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

/// Reads the batch that [`stream`] wrote.
///
/// # Errors
///
/// An error if the bytes are not an Arrow stream.
pub fn from_stream(bytes: &[u8]) -> Result<RecordBatch> {
    let mut reader = StreamReader::try_new(bytes, None)?;
    reader.next().context("the stream has no batch")?.map_err(Into::into)
}

/// Writes batches as an Arrow file (also known as Feather, version 2).
///
/// # Errors
///
/// An error if writing fails, if the iterator returns an error, or if a batch has other columns.
pub fn write_arrow(
    schema: &Schema,
    batches: impl IntoIterator<Item = Result<RecordBatch>>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut writer = FileWriter::try_new(out, schema)?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    Ok(writer.finish()?)
}
