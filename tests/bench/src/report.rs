//! Writes the table, the JSON and the performance page.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use kaos_tests::page;
use serde_json::{Value, json};

use crate::figures::{FIGURES, Figure, Figures};
use crate::load::Load;

/// An operator and its measurements.
#[derive(Debug)]
pub(crate) struct Measured {
    command: String,
    pub(crate) rounds: Vec<Figures>,
}

impl Measured {
    /// Returns an operator without measurements.
    pub(crate) fn of(command: &str) -> Self {
        Self { command: command.to_owned(), rounds: Vec::new() }
    }

    /// Returns the median of a figure. Returns `None` if no round measured the figure.
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

/// All measurements.
#[derive(Debug)]
pub(crate) struct Report<'r> {
    pub(crate) load: &'r Load,
    pub(crate) measured: &'r [Measured],
}

impl Report<'_> {
    /// Writes all measurements as JSON.
    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let Load { agents, modelapis, mcpservers, memorystores, seed } = self.load;
        let load = json!({
            "agents": agents, "modelapis": modelapis, "mcpservers": mcpservers, "memorystores": memorystores, "seed": seed,
        });
        let operators: Vec<Value> = self.measured.iter().map(Measured::json).collect();
        let all = json!({"machine": machine(), "load": load, "operators": operators});
        fs::write(path, serde_json::to_string_pretty(&all)? + "\n").with_context(|| path.display().to_string())
    }

    /// Returns the medians as a table in Markdown.
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

    /// Returns a sentence that names each upper bound that the first operator exceeds.
    fn verdict(&self) -> String {
        let of = if self.measured.len() > 1 { " of the first operator" } else { "" };
        let missed = self.missed();
        if missed.is_empty() {
            return format!("Missed aims{of}: none.");
        }
        format!("Missed aims{of}:\n\n- {}", missed.join("\n- "))
    }

    /// Prints the table, and a line about the load and the machine. With `UPDATE_PERFORMANCE`, also writes the table
    /// into the performance page. A comparison of two operators has its own section on the page. The page has no
    /// section for a single operator whose load contains MemoryStores.
    pub(crate) fn publish(&self) -> Result<()> {
        let Load { agents, modelapis, mcpservers, memorystores, .. } = self.load;
        let rounds = self.measured.first().map_or(0, |measured| measured.rounds.len());
        let medians = if rounds > 1 { format!(", medians of {rounds} rounds") } else { String::new() };
        let machine = machine();
        let stores = if *memorystores > 0 { format!(", {memorystores} MemoryStores") } else { String::new() };
        let said =
            format!("{modelapis} ModelAPIs, {mcpservers} MCPServers{stores}, {agents} Agents{medians}; {machine}.");
        let text = format!("{said}\n\n{}\n{}", self.table(), self.verdict());
        match (self.measured.len(), memorystores) {
            (0 | 1, 0) => page::publish("whole", &text),
            (0 | 1, _) => {
                println!("\n{text}");
                Ok(())
            }
            _ => page::publish("pair", &text),
        }
    }

    /// Returns the upper bounds that the first operator exceeds.
    pub(crate) fn missed(&self) -> Vec<String> {
        let Some(measured) = self.measured.first() else { return Vec::new() };
        let missed = FIGURES.iter().filter_map(|figure| {
            let (value, aim) = (measured.median(figure.key)?, figure.aim(self.load)?);
            let (shown_value, shown_aim) = (shown(figure, value), shown(figure, aim));
            (value > aim)
                .then(|| format!("{figure}: {shown_value}, but the aim is at most {shown_aim}", figure = figure.text))
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
    let is_nothing = |value: f64| value.abs() < f64::EPSILON;
    match (is_nothing(one), is_nothing(other)) {
        (true, true) => "1.00".to_owned(),
        // The ratio of a number to zero has no meaning.
        (false, true) => "–".to_owned(),
        _ => format!("{:.2}", one / other),
    }
}

/// Returns a description of the machine that runs the bench.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{cores} cores, {model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { agents: 1000, modelapis: 300, mcpservers: 300, memorystores: 0, seed: 1 };

    /// Returns an operator that has the figures `values` from a single round.
    fn one(values: &[(&'static str, f64)]) -> Measured {
        let mut figures = Figures::default();
        for &(key, value) in values {
            figures.note(key, value);
        }
        Measured { rounds: vec![figures], ..Measured::of("operator") }
    }

    #[test]
    fn the_report_of_two_operators_has_their_ratio() {
        let pair = [
            one(&[("load.writes", 10.0), ("silence.writes", 0.0), ("silence.processor", 0.01), ("ready", 0.5)]),
            one(&[("load.writes", 20.0), ("silence.writes", 0.0), ("silence.processor", 0.0)]),
        ];
        let table = Report { load: &LOAD, measured: &pair }.table();
        for row in [
            "| Start until ready | ≤ 1.00 s | 0.50 s |  | |\n",
            "| Load: writes | ≤ 6500 | 10 | 20 | 0.50 |\n",
            "| Silence: writes | ≤ 0 | 0 | 0 | 1.00 |\n",
            "| Silence: processor |  | 0.01 s | 0.00 s | – |\n",
        ] {
            assert!(table.contains(row), "{row}{table}");
        }
    }

    #[test]
    fn missed_aims_are_reported_with_the_measured_value() {
        let verdict = |measured: &[Measured]| Report { load: &LOAD, measured }.verdict();
        let missed = "Load: writes: 6501, but the aim is at most 6500";
        assert_eq!(verdict(&[one(&[("load.writes", 6500.0)])]), "Missed aims: none.");
        assert_eq!(verdict(&[one(&[("load.writes", 6501.0)])]), format!("Missed aims:\n\n- {missed}"));
        let pair = [one(&[("load.writes", 1.0)]), one(&[("load.writes", 6501.0)])];
        assert_eq!(verdict(&pair), "Missed aims of the first operator: none.");
    }
}
