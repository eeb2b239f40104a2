//! Prints the output of the demo: on a terminal, a table that is redrawn in place; otherwise, a line for each change.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Stdout, Write as _},
};

use super::{
    super::output::{Heard, width},
    row::{CONDITIONS, ConditionMark, Row},
};

/// Standard output, as a terminal or as a stream of lines.
#[derive(Debug)]
pub(super) struct Screen {
    out: Heard<Stdout>,
    is_live: bool,
    has_colours: bool,
    drawn: usize,
    told: BTreeMap<String, String>,
}

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const BOLD: &str = "1";
const DIM: &str = "2";

/// Width of the table if the terminal does not report its width.
const WIDTH: usize = 120;

impl Screen {
    /// Opens standard output. With `plain`, prints lines even on a terminal.
    pub(super) fn new(plain: bool) -> Self {
        let is_live = !plain && io::stdout().is_terminal();
        let has_colours = is_live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { out: Heard::new(io::stdout()), is_live, has_colours, drawn: 0, told: BTreeMap::new() }
    }

    /// Returns whether the reader of the output has closed the output.
    pub(super) fn is_unseen(&self) -> bool {
        self.out.has_ended()
    }

    /// Prints a line that stays on the screen.
    pub(super) fn say(&mut self, line: &str) -> io::Result<()> {
        let erased = self.erase();
        writeln!(self.out, "{erased}{line}")?;
        self.out.flush()
    }

    /// Prints the headline of a step.
    pub(super) fn step(&mut self, line: &str) -> io::Result<()> {
        let line = self.paint(BOLD, line);
        self.say(&format!("\n{line}"))
    }

    /// Shows the current objects.
    pub(super) fn show(&mut self, rows: &[Row]) -> io::Result<()> {
        let text = if self.is_live { self.erase() + &self.table(rows) } else { self.changes(rows) };
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Keeps the table on the screen; further output appears below the table.
    pub(super) fn keep(&mut self) {
        self.drawn = 0;
    }

    /// Returns the escape sequence that removes the table from the screen.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        }
    }

    fn table(&mut self, rows: &[Row]) -> String {
        let heading = ["OBJECT", "PHASE", "A R P R", "PODS", "POLICY", "MESSAGE"].map(str::to_owned);
        let cells = |row: &Row| {
            [&row.object, &row.phase, &String::new(), &row.pods, &row.policy, &row.message].map(Clone::clone)
        };
        let lines: Vec<_> = std::iter::once(heading.clone()).chain(rows.iter().map(cells)).collect();
        let mut widths =
            [0, 1, 2, 3, 4, 5].map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0));
        widths[2] = heading[2].len();
        // Cut long messages: a long message would wrap, and `erase` would go back too few lines.
        let before: usize = widths[..5].iter().map(|width| width + 2).sum();
        widths[5] = widths[5].min(width().unwrap_or(WIDTH).saturating_sub(before + 1));
        let mut text = self.paint(DIM, &line(&heading, &widths)) + "\n";
        for row in rows {
            let mut shown = cells(row);
            shown[5] = row.message.chars().take(widths[5]).collect();
            for (cell, width) in shown.iter_mut().zip(widths) {
                *cell = format!("{cell:<width$}");
            }
            let [object, phase, _, pods, policy, message] = shown;
            let colour = colour_of(row);
            let marks = row.conditions.map(|mark| self.mark(mark)).join(" ");
            let cells = [object, self.paint(colour, &phase), marks, pods, self.paint(DIM, &policy), message];
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text.push_str(&self.paint(DIM, &format!("{} in this order\n", CONDITIONS.join(", "))));
        self.drawn = rows.len() + 2;
        text
    }

    /// Returns a line for each object whose line has changed since the last call.
    fn changes(&mut self, rows: &[Row]) -> String {
        let mut text = String::new();
        for row in rows.iter().filter(|row| !row.phase.is_empty()) {
            let now = format!("{}: {} ({} pods): {}", row.object, row.phase, row.pods, row.message);
            if self.told.get(&row.object) != Some(&now) {
                text.push_str(&now);
                text.push('\n');
                self.told.insert(row.object.clone(), now);
            }
        }
        text
    }

    fn mark(&self, mark: ConditionMark) -> String {
        match mark {
            ConditionMark::Good => self.paint(GREEN, "✔"),
            ConditionMark::Bad => self.paint(RED, "✘"),
            ConditionMark::Open => self.paint(DIM, "·"),
        }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn line(cells: &[String; 6], widths: &[usize; 6]) -> String {
    let cells: Vec<_> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
    cells.join("  ").trim_end().to_owned()
}

fn colour_of(row: &Row) -> &'static str {
    match row.phase.as_str() {
        _ if row.ready => GREEN,
        "Failed" => RED,
        _ => YELLOW,
    }
}
