//! Tables for people.

use std::fmt::Write;

/// A table with a heading; columns are as wide as their widest cell.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with nothing but its heading.
    pub(super) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row. A cell with several lines is shown by its first, with a mark that there is more.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(cell.into())).collect());
    }

    /// Whether there is nothing below the heading.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:<width$}   ")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The longest cell that is shown whole.
const WIDEST: usize = 80;

fn one_line(cell: String) -> String {
    let first = cell.lines().next().unwrap_or_default();
    // A control character could move the terminal's cursor.
    let shown: String = first.chars().filter(|c| !c.is_control()).take(WIDEST).collect();
    if shown.len() == cell.len() { cell } else { format!("{shown}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut table = Table::new(&["NAME", "VALUE"]);
        table.row(["long-name", "1"]);
        table.row(["a", "two\nlines"]);
        assert_eq!(table.to_string(), "NAME        VALUE\nlong-name   1\na           two…\n");
    }
}
