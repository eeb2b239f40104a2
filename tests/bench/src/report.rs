//! The table, the JSON and the page of figures.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use kaos_tests::page;
use serde_json::{Value, json};

use crate::figures::{FIGURES, Figure, Figures};
use crate::load::Load;

/// One operator, measured.
#[derive(Debug)]
pub(crate) struct Measured {
    command: String,
    pub(crate) rounds: Vec<Figures>,
}

impl Measured {
    /// Not yet.
    pub(crate) fn of(command: &str) -> Self {
        Self { command: command.to_owned(), rounds: Vec::new() }
    }

    /// The median of a figure; nothing where it was not measured.
    fn median(&self, key: &str) -> Option<f64> {
        let mut values: Vec<f64> = self.rounds.iter().filter_map(|round| round.values.get(key).copied()).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            count if count % 2 == 1 => Some(values[middle]),
            _ => Some(f64::midpoint(values[middle - 1], values[middle])),
        }
    }

    fn json(&self) -> Value {
        let median: serde_json::Map<String, Value> = FIGURES
            .iter()
            .filter_map(|figure| Some((figure.key.to_owned(), json!(self.median(figure.key)?))))
            .collect();
        let rounds: Vec<Value> =
            self.rounds.iter().map(|round| json!({"figures": round.values, "calls": round.calls})).collect();
        json!({"command": self.command, "median": median, "rounds": rounds})
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Report<'r> {
    pub(crate) load: &'r Load,
    pub(crate) measured: &'r [Measured],
}

impl Report<'_> {
    /// All of it, for machines.
    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let Load { agents, modelapis, mcpservers, seed } = self.load;
        let load = json!({"agents": agents, "modelapis": modelapis, "mcpservers": mcpservers, "seed": seed});
        let operators: Vec<Value> = self.measured.iter().map(Measured::json).collect();
        let all = json!({"machine": machine(), "load": load, "operators": operators});
        fs::write(path, serde_json::to_string_pretty(&all)? + "\n").with_context(|| path.display().to_string())
    }

    /// The medians, as a table in Markdown.
    fn table(&self) -> String {
        let pair = self.measured.len() > 1;
        let mut table = String::from(if pair {
            "| | aim | one | other | one / other |\n|---|---:|---:|---:|---:|\n"
        } else {
            "| | aim | measured |\n|---|---:|---:|\n"
        });
        for figure in &FIGURES {
            let values: Vec<Option<f64>> = self.measured.iter().map(|measured| measured.median(figure.key)).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let aim = figure.aim(self.load).map(|aim| format!("≤ {}", shown(figure, aim))).unwrap_or_default();
            table.push_str(&format!("| {} | {aim} |", figure.text));
            for value in &values {
                table.push_str(&format!(" {} |", value.map(|value| shown(figure, value)).unwrap_or_default()));
            }
            if let [Some(one), Some(other)] = values[..] {
                table.push_str(&format!(" {} |", ratio(one, other)));
            } else if pair {
                table.push_str(" |");
            }
            table.push('\n');
        }
        table
    }

    /// Prints the table and what it was measured with; with `UPDATE_PERFORMANCE`, into the page of figures, too.
    pub(crate) fn publish(&self) -> Result<()> {
        let Load { agents, modelapis, mcpservers, .. } = self.load;
        let rounds = self.measured.first().map_or(0, |measured| measured.rounds.len());
        let medians = if rounds > 1 { format!(", medians of {rounds} rounds") } else { String::new() };
        let machine = machine();
        let said = format!("{modelapis} ModelAPIs, {mcpservers} MCPServers, {agents} Agents{medians}; {machine}.");
        page::publish("whole", &format!("{said}\n\n{}", self.table()))
    }

    /// What the first operator does not reach.
    pub(crate) fn missed(&self) -> Vec<String> {
        let Some(measured) = self.measured.first() else { return Vec::new() };
        let missed = FIGURES.iter().filter_map(|figure| {
            let (value, aim) = (measured.median(figure.key)?, figure.aim(self.load)?);
            let (shown_value, shown_aim) = (shown(figure, value), shown(figure, aim));
            (value > aim).then(|| format!("{}: {shown_value}, and not at most {shown_aim}", figure.text))
        });
        missed.collect()
    }
}

fn shown(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "s" => format!("{value:.2} s"),
        "" => format!("{value:.0}"),
        unit => format!("{value:.1} {unit}"),
    }
}

fn ratio(one: f64, other: f64) -> String {
    let both_nothing = one.abs() < f64::EPSILON && other.abs() < f64::EPSILON;
    if both_nothing { "1.00".to_owned() } else { format!("{:.2}", one / other) }
}

/// What it ran on.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{cores} cores, {model}")
}
