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

/// Whether a variable of this name may hold something that belongs on no screen. In doubt it does: what is hidden
/// here is a command away.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let parts =
        ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY", "PRIVATE", "AUTHORIZATION"];
    parts.iter().any(|part| name.contains(part))
        // A connection string has its password in it.
        || ["DATABASE_URL", "CONNECTION_STRING", "DSN"].iter().any(|end| name.ends_with(end))
        || name.split(['_', '-', '.']).any(|part| part == "KEY" || part == "KEYS")
}

/// What stands in a table instead of a secret.
pub(super) const MASK: &str = "********";

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

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "PROXY_API_KEY",
            "SLACK_BOT_TOKEN",
            "db_password",
            "CLIENT_SECRET",
            "OPENAI_APIKEY",
            "GPG_PASSPHRASE",
            "HTTP_AUTHORIZATION",
            "DATABASE_URL",
            // Not every token is secret, but no name tells which.
            "TOKENIZER_OFF",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["MONKEY", "KEYBOARD", "LOG_LEVEL", "MODEL_API_URL"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
