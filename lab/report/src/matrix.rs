//! Counts by two kinds of numbered things, such as allocating CPUs and freeing CPUs.

use std::fmt::{self, Write as _};

use crate::number::count;
use crate::{Cell, Column, Row, Table};

/// Maximum number of rows and columns that are drawn. If a matrix has more rows, several adjacent rows are
/// drawn as one row. The same holds for columns.
const DRAWN: usize = 16;

/// A matrix of counts.
///
/// The `Display` form of a matrix draws each row in percent of the row's total. If there are more than 16
/// rows or columns, groups of equal size are drawn. [`to_table`](Self::to_table) keeps all rows and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    row_name: String,
    column_name: String,
    value_name: String,
    columns: usize,
    /// The rows. A row ends with its last nonzero count.
    counts: Vec<Vec<u64>>,
}

impl Matrix {
    /// Makes a matrix of zeros. The names describe a row, a column and a value, such as "allocating CPU",
    /// "freeing CPU" and "pages".
    #[must_use]
    pub fn new(row_name: &str, rows: usize, column_name: &str, columns: usize, value_name: &str) -> Self {
        Self {
            row_name: row_name.to_owned(),
            column_name: column_name.to_owned(),
            value_name: value_name.to_owned(),
            columns,
            counts: vec![Vec::new(); rows],
        }
    }

    /// Adds `amount` to the count at `row` and `column`.
    ///
    /// # Panics
    ///
    /// Panics if the matrix has no such row or column.
    #[track_caller]
    pub fn add(&mut self, row: usize, column: usize, amount: u64) {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        let counts = &mut self.counts[row];
        if counts.len() <= column {
            counts.resize(column + 1, 0);
        }
        counts[column] = counts[column].saturating_add(amount);
    }

    /// Returns the count at `row` and `column`. The count is 0 outside the matrix.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> u64 {
        self.counts.get(row).and_then(|counts| counts.get(column)).copied().unwrap_or(0)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.counts.len()
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().fold(0, |sum, value| sum.saturating_add(*value))
    }

    /// Returns a table with a row for each nonzero count, for machine formats.
    #[must_use]
    pub fn to_table(&self, title: &str) -> Table {
        let columns =
            [&self.row_name, &self.column_name, &self.value_name].map(|name| Column::count(&key(name), name));
        let mut table = Table::new(title, columns.to_vec());
        for (row, counts) in self.counts.iter().enumerate() {
            for (column, value) in counts.iter().enumerate().filter(|(_, value)| **value > 0) {
                table.push(Row::new([row as u64, column as u64, *value].map(Cell::Count)));
            }
        }
        table
    }

    /// The sum of counts over a group of rows and a group of columns.
    fn group(&self, rows: &Group, columns: &Group) -> u64 {
        let pairs = rows.members().flat_map(|row| columns.members().map(move |column| (row, column)));
        pairs.fold(0, |sum, (row, column)| sum.saturating_add(self.get(row, column)))
    }
}

/// Turns a name into a key, in lower case, with words joined by `_`.
fn key(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "_")
}

/// Adjacent rows or columns that are drawn as one row or column.
struct Group {
    first: usize,
    end: usize,
}

impl Group {
    /// Makes at most [`DRAWN`] groups. The size of a group is a power of two; the last group may be smaller.
    fn all(count: usize) -> Vec<Self> {
        let size = count.div_ceil(DRAWN).next_power_of_two();
        (0..count).step_by(size).map(|first| Self { first, end: (first + size).min(count) }).collect()
    }

    fn members(&self) -> std::ops::Range<usize> {
        self.first..self.end
    }
}

/// Writes a share in percent with at most three characters. `.` means that the part is 0, and `<1` means a
/// share below half a percent.
fn share(part: u64, whole: u64) -> String {
    if part == 0 {
        return ".".to_owned();
    }
    let percent = (u128::from(part) * 200 / u128::from(whole)).div_ceil(2);
    if u128::from(part) * 200 < u128::from(whole) { "<1".to_owned() } else { percent.to_string() }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns) = (Group::all(self.rows()), Group::all(self.columns));
        let label_width = rows.last().map_or(0, |group| group.first.to_string().len());
        writeln!(f, "{} (down) x {} (across), % of the row", self.row_name, self.column_name)?;
        let mut header = " ".repeat(label_width);
        for group in &columns {
            let _ = write!(header, " {:>3}", group.first);
        }
        writeln!(f, "{header}  {:>8}", self.value_name)?;
        for row in &rows {
            let values: Vec<_> = columns.iter().map(|column| self.group(row, column)).collect();
            let total = values.iter().fold(0u64, |sum, value| sum.saturating_add(*value));
            write!(f, "{:>label_width$}", row.first)?;
            values.iter().try_for_each(|value| write!(f, " {:>3}", share(*value, total)))?;
            writeln!(f, "  {:>8}", count(total))?;
        }
        let sizes = [&rows, &columns].map(|groups| groups.first().map_or(1, |group| group.end - group.first));
        if sizes != [1, 1] {
            writeln!(f, "A row stands for {}, a column for {}, named after the first.", sizes[0], sizes[1])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize) -> Matrix {
        Matrix::new("allocating CPU", rows, "freeing CPU", columns, "pages")
    }

    #[test]
    fn small_matrices_are_drawn_one_to_one() {
        let mut matrix = matrix(2, 2);
        matrix.add(0, 0, 996);
        matrix.add(0, 1, 4);
        matrix.add(1, 1, 5);
        let expected = "\
allocating CPU (down) x freeing CPU (across), % of the row
    0   1     pages
0 100  <1      1000
1   . 100         5
";
        assert_eq!(matrix.to_string(), expected);
    }

    #[test]
    fn more_than_16_are_drawn_in_groups() {
        let mut matrix = matrix(36, 36);
        for cpu in 0..36 {
            matrix.add(cpu, 35 - cpu, 10);
        }
        let text = matrix.to_string();
        assert!(text.contains("\n 0   .   .   .   .   .   .   .   . 100        40\n"), "{text}");
        assert!(text.contains("\n32 100 "), "{text}");
        assert!(text.ends_with("A row stands for 4, a column for 4, named after the first.\n"), "{text}");
    }

    #[test]
    fn the_widest_matrix_fits_80_columns() {
        let mut matrix = matrix(1024, 1024);
        matrix.add(1023, 1023, 123_456_789_000);
        let text = matrix.to_string();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn machine_formats_get_every_count_that_is_not_0() {
        let mut matrix = matrix(40, 40);
        matrix.add(39, 1, 7);
        let table = matrix.to_table("who frees");
        assert_eq!(table.columns()[0].key, "allocating_cpu");
        assert_eq!(table.rows(), [Row::new([39u64, 1, 7].map(Cell::Count))]);
        assert_eq!(matrix.total(), 7);
        assert_eq!((matrix.get(39, 1), matrix.get(1, 40), matrix.get(40, 0)), (7, 0, 0));
    }

    #[test]
    fn shares_have_at_most_three_characters() {
        assert_eq!(share(0, 0), ".");
        assert_eq!(share(1, 1000), "<1");
        assert_eq!(share(5, 1000), "1");
        assert_eq!(share(u64::MAX, u64::MAX), "100");
    }
}
