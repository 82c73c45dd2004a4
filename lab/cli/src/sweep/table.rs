//! Prints the runs of a sweep as one table.

use pageset_report::{Cell, Column, Row, Table};
use serde_json::{Map, Value};

/// A JSON object without objects in it: `flattened` joins the keys of nested objects with dots.
pub(crate) type Flat = Map<String, Value>;

/// A finished run: its parameters, and its results.
pub(crate) struct Shown {
    pub(crate) keys: Flat,
    pub(crate) results: Flat,
}

/// Keys whose columns come first, in this order. The columns of keys that are not in this list follow.
const KEYS: [&str; 6] = ["machine", "workload", "policy", "cpus", "batch", "high"];

/// Makes a table with a row for each run: first the keys that differ between runs, then all results that are
/// numbers.
pub(crate) fn table(title: &str, runs: &[Shown]) -> Table {
    let keys = varying(runs);
    let results = result_keys(runs);
    let label = |key: &String| Column::label(key, &key.replace('_', " "));
    let measure = |key: &String| Column::measure(key, &key.replace('_', " "));
    let mut columns: Vec<_> = keys.iter().map(label).collect();
    columns.extend(results.iter().map(measure));
    let mut table = Table::new(title, columns);
    for Shown { keys: spec, results: result } in runs {
        let labels = keys.iter().map(|key| spec.get(key).map_or(Cell::Absent, label_cell));
        let values = results.iter().map(|key| result.get(key).map_or(Cell::Absent, value_cell));
        table.push(Row::new(labels.chain(values)));
    }
    table
}

/// Keys whose values differ between runs, in the order of [`KEYS`]. If no key's values differ, returns only
/// the first key.
fn varying(runs: &[Shown]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for run in runs {
        keys.extend(run.keys.keys().filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>());
    }
    let place = |key: &String| KEYS.iter().position(|known| known == key).unwrap_or(KEYS.len());
    keys.sort_by_key(place);
    let differs = |key: &String| runs.iter().any(|run| run.keys.get(key) != runs[0].keys.get(key));
    let varying: Vec<_> = keys.iter().filter(|key| differs(key)).cloned().collect();
    if varying.is_empty() { keys.into_iter().take(1).collect() } else { varying }
}

/// Names of results that are numbers.
fn result_keys(runs: &[Shown]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for run in runs {
        let numbers = run.results.iter().filter(|(_, value)| value.is_number()).map(|(key, _)| key);
        keys.extend(numbers.filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>());
    }
    keys
}

fn label_cell(value: &Value) -> Cell {
    Cell::Text(text(value))
}

/// The value of a key, as users type it on a command line.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn value_cell(value: &Value) -> Cell {
    match value.as_u64() {
        Some(count) => Cell::Count(count),
        None => value.as_f64().map_or(Cell::Absent, |value| Cell::real(value, 2)),
    }
}

/// Puts all results on one level: `{"a": {"b": 1}}` becomes `{"a.b": 1}`.
pub(crate) fn flattened(result: &Map<String, Value>) -> Flat {
    let mut flat = Map::new();
    for (key, value) in result {
        match value {
            Value::Object(inner) => {
                flat.extend(
                    flattened(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)),
                );
            }
            value => {
                flat.insert(key.clone(), value.clone());
            }
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(value: Value) -> Flat {
        flattened(value.as_object().unwrap())
    }

    #[test]
    fn keys_that_do_not_vary_are_left_out() {
        let run = |policy, batch: Option<u32>, score| {
            let keys = flat(json!({"machine": "m", "policy": policy, "batch": batch}));
            Shown { keys, results: flat(json!({"score": score, "digest": "x"})) }
        };
        let table = table("t", &[run("a", None, 1.5), run("b", Some(63), 2.0)]);
        let keys: Vec<_> = table.columns().iter().map(|column| column.key.as_str()).collect();
        assert_eq!(keys, ["policy", "batch", "score"]);
        assert_eq!(table.rows()[1].cells[0], "b".into());
        assert_eq!(table.rows()[1].cells[2].number(), Some(2.0));
    }

    #[test]
    fn nested_results_get_names_with_dots() {
        assert_eq!(flat(json!({"latency": {"p99_ns": 7}}))["latency.p99_ns"], 7);
    }
}
