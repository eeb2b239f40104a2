//! Formats tables for people.

use std::fmt::{self, Write};

use kaos_policy::printable::printable;

use super::output::width;

/// A table with a heading. A column is as wide as its widest cell, up to a limit. On a terminal, the table cuts the
/// widest columns until the lines fit. Other output contains every cell in full.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

/// Separates columns.
const GAP: &str = "   ";
/// The minimum width of a cut column.
const NARROWEST: usize = 8;
/// The maximum width of a column. A longer cell makes only its own line longer.
const WIDEST: usize = 200;
/// Marks a cell that was cut.
const MORE: char = '…';

impl Table {
    /// Creates a table with a heading and no rows.
    pub(super) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|cell| one_line(cell)).collect()] }
    }

    /// Adds a row. If a cell has several lines, shows the first line with a sign for the omitted lines.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell.into())).collect());
    }

    /// Returns whether the table has no rows below the heading.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Writes the table. With a limit `most`, a line has at most this many characters.
    fn write(&self, out: &mut impl Write, most: Option<usize>) -> fmt::Result {
        let mut widths = self.widths();
        if let Some(most) = most {
            fit(&mut widths, most);
        }
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let cell = if most.is_some() { cut(cell, *width) } else { cell.clone() };
                // Pad by hand: the formatter panics on widths above 65,535.
                let padding = width.saturating_sub(cell.chars().count());
                line.push_str(&cell);
                line.extend(std::iter::repeat_n(' ', padding));
                line.push_str(GAP);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or_default().min(WIDEST);
        (0..columns).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, width())
    }
}

/// Narrows the widest columns until a line fits.
fn fit(widths: &mut [usize], most: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > most {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > NARROWEST) else { return };
        *widest -= 1;
    }
}

fn cut(cell: &str, width: usize) -> String {
    match cell.char_indices().nth(width) {
        None => cell.to_owned(),
        Some(_) => cell.chars().take(width.saturating_sub(1)).chain([MORE]).collect(),
    }
}

fn one_line(cell: &str) -> String {
    let mut lines = cell.lines();
    // Replace tabs, because the width of a tab varies.
    let mut first = printable(&lines.next().unwrap_or_default().replace('\t', " ")).into_owned();
    if lines.next().is_some() {
        first.push(MORE);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[[&str; 3]], most: Option<usize>) -> String {
        let mut table = Table::new(&["NAME", "VALUE", "FROM"]);
        for row in rows {
            table.row(*row);
        }
        let mut text = String::new();
        table.write(&mut text, most).unwrap();
        text
    }

    #[test]
    fn columns_are_aligned_without_trailing_blanks() {
        let rows = [["long-name", "1", ""], ["a", "two\nlines", "b"]];
        assert_eq!(shown(&rows, None), "NAME        VALUE   FROM\nlong-name   1\na           two…    b\n");
    }

    #[test]
    fn a_long_cell_is_cut_only_if_the_lines_are_short() {
        let long = "x".repeat(300);
        assert!(shown(&[["a", &long, "spec.a"]], None).contains(&long));
        let narrow = shown(&[["a", &long, "spec.a"]], Some(40));
        let lines: Vec<_> = narrow.lines().map(|line| line.chars().count()).collect();
        assert!(lines.iter().all(|length| *length <= 40) && narrow.contains("xx…   spec.a"), "{narrow}");
        assert_eq!(
            shown(&[["a", "b", "c"]], Some(3)).lines().count(),
            2,
            "a heading and one row, even if no column fits"
        );
    }

    #[test]
    fn a_cell_of_any_length_makes_its_own_line_long_and_no_other() {
        let long = "x".repeat(100_000);
        let whole = shown(&[["a", &long, "spec.a"], ["b", "short", "spec.b"]], None);
        let lines: Vec<_> = whole.lines().collect();
        assert_eq!(lines[1], format!("a      {long}   spec.a"));
        assert_eq!(lines[2], format!("b      short{}   spec.b", " ".repeat(WIDEST - 5)));
        let narrow = shown(&[["a", &long, "spec.a"]], Some(1_000));
        assert!(narrow.lines().all(|line| line.chars().count() < 250) && narrow.contains("x…   spec.a"), "{narrow}");
    }

    #[test]
    fn control_characters_in_a_cell_are_escaped() {
        let text = shown(&[["a\u{202e}b", "\u{1b}[2J", "c\td\u{200b}"]], None);
        assert!(text.contains("a\\u{202e}b") && text.contains("\\u{1b}[2J") && text.contains("c d\\u{200b}"), "{text}");
    }
}
