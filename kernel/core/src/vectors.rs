//! Golden vectors: small CSV tables of numbers with a heading line.

use std::vec::Vec;

/// The rows of a table of integers.
pub(crate) fn rows(table: &str) -> Vec<Vec<i64>> {
    table.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
}

/// The rows of a table whose first column is a name.
pub(crate) fn named_rows(table: &str) -> Vec<(&str, Vec<i64>)> {
    let row = |line| {
        let (name, rest): (&str, &str) = str::split_once(line, ',').unwrap();
        (name, rest.split(',').map(|cell| if cell.is_empty() { -1 } else { cell.parse().unwrap() }).collect())
    };
    table.lines().skip(1).map(row).collect()
}
