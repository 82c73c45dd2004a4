//! Turns values that can be written as JSON into columns. Each field is a column, and a map is a single
//! column.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_arrow::schema::{SchemaLike as _, TracingOptions};

/// Makes a batch of rows of one type. Only the type determines the columns, so batches with different rows
/// have the same columns. The call takes O(rows).
///
/// # Errors
///
/// An error if the type has no columns. Examples are a number, and an enumeration with contents. An
/// enumeration without contents becomes text.
pub fn batch<T: Serialize + DeserializeOwned>(rows: &[T]) -> Result<RecordBatch> {
    serde_arrow::to_record_batch(&fields::<T>()?, &rows).context("these rows do not fit into columns")
}

fn fields<T: DeserializeOwned>() -> Result<Vec<FieldRef>> {
    let options = TracingOptions::default()
        .map_as_struct(false)
        .strings_as_large_utf8(false)
        .enums_without_data_as_strings(true);
    Vec::<FieldRef>::from_type::<T>(options).context("these rows have no columns")
}

/// Makes rows of finished tasks: keys, specifications and results.
///
/// # Errors
///
/// An error if the numbers of keys, specifications and results differ. Also returns the errors of [`batch`]
/// and [`side_by_side`].
pub fn keyed<S, R>(keys: &[String], specs: &[S], results: &[R]) -> Result<RecordBatch>
where
    S: Serialize + DeserializeOwned,
    R: Serialize + DeserializeOwned,
{
    let keys: ArrayRef = Arc::new(StringArray::from(keys.to_vec()));
    let field = Field::new("key", DataType::Utf8, false);
    let keys = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![keys])?;
    side_by_side(&[keys, batch(specs)?, batch(results)?])
}

/// Reads rows from a batch, which may have other columns too.
///
/// # Errors
///
/// An error if a column is missing, or has values that do not fit the type.
pub fn read<T: DeserializeOwned>(batch: &RecordBatch) -> Result<Vec<T>> {
    let schema = batch.schema();
    let indices = fields::<T>()?.into_iter().map(|field| schema.index_of(field.name()));
    let mine = batch.project(&indices.collect::<Result<Vec<_>, _>>()?)?;
    serde_arrow::from_record_batch(&mine).context("these columns are not such rows")
}

/// Joins batches with equal numbers of rows side by side.
///
/// # Errors
///
/// An error if the numbers of rows differ, or if two columns have the same name.
pub fn side_by_side(parts: &[RecordBatch]) -> Result<RecordBatch> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in parts.iter().flat_map(|part| part.schema().fields().to_vec()) {
        if fields.iter().any(|earlier| earlier.name() == field.name()) {
            bail!("two columns are called `{}`", field.name());
        }
        fields.push(field);
    }
    let columns: Vec<ArrayRef> = parts.iter().flat_map(|part| part.columns().to_vec()).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Adds columns in front of the batch. An added column has the same text in each row, to show the origin of
/// the rows.
///
/// # Errors
///
/// An error if the batch already has a column with the name of an added column.
pub fn labelled(labels: &[(&str, &str)], batch: &RecordBatch) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let fields: Vec<Field> =
        labels.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, false)).collect();
    let column = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text; rows])) };
    let columns = labels.iter().map(|(_, text)| column(text)).collect();
    let before = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    side_by_side(&[before, batch.clone()])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{UInt32Type, UInt64Type};
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Phase {
        Aligned,
        Spread,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Run {
        policy: String,
        batch: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        settings: BTreeMap<String, u64>,
    }

    #[derive(Serialize, Deserialize)]
    struct Score {
        pages: u64,
    }

    fn run(batch: Option<u32>) -> Run {
        let phase = batch.map(|batch| if batch > 31 { Phase::Spread } else { Phase::Aligned });
        Run { policy: "p".into(), batch, phase, settings: BTreeMap::from([("think_ns".into(), 5)]) }
    }

    #[test]
    fn columns_follow_from_the_type_alone() {
        let batches = [batch(&[run(None)]), batch(&[run(Some(1)), run(None)]), batch::<Run>(&[])];
        let schemas = batches.map(|batch| batch.unwrap().schema());
        assert_eq!((&schemas[0], &schemas[1]), (&schemas[1], &schemas[2]));
        assert!(matches!(schemas[0].field_with_name("settings").unwrap().data_type(), DataType::Map(..)));
        assert!(schemas[0].field_with_name("batch").unwrap().is_nullable());
    }

    #[test]
    fn what_was_asked_stands_beside_what_came_out() {
        let joined = keyed(&["00ff".into()], &[run(None)], &[Score { pages: 7 }]).unwrap();
        let joined = labelled(&[("recording", "r")], &joined).unwrap();
        let names: Vec<_> = joined.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["recording", "key", "policy", "batch", "phase", "settings", "pages"]);
        assert_eq!(read::<Run>(&joined).unwrap(), [run(None)]);
        assert!(read::<Run>(&joined.project(&[1]).unwrap()).is_err());
        assert_eq!(joined["pages"].as_primitive::<UInt64Type>().value(0), 7);
        assert_eq!(joined["key"].as_string::<i32>().value(0), "00ff");
    }

    #[test]
    fn one_of_several_names_is_text() {
        let runs = [run(Some(63)), run(None), run(Some(1))];
        let rows = batch(&runs).unwrap();
        let words = rows["phase"].as_dictionary::<UInt32Type>().downcast_dict::<StringArray>().unwrap();
        assert_eq!(words.into_iter().collect::<Vec<_>>(), [Some("spread"), None, Some("aligned")]);
        assert_eq!(read::<Run>(&rows).unwrap(), runs);
    }

    #[test]
    fn a_name_is_one_column() {
        let scores = batch(&[Score { pages: 7 }]).unwrap();
        let error = side_by_side(&[scores.clone(), scores.clone()]).unwrap_err().to_string();
        assert_eq!(error, "two columns are called `pages`");
        assert!(labelled(&[("pages", "x")], &scores).is_err());
        assert!(side_by_side(&[scores, batch::<Run>(&[]).unwrap()]).is_err());
    }
}
