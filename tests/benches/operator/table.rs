//! The table that the bench prints at its end, and the upper bounds that the figures must not exceed.

use std::fmt::Write as _;

use crate::meter::{Span, number};
use crate::story::FleetFigures;

/// The upper bound for the operator's memory with ten thousand settled Agents, in bytes.
const MAX_RESIDENT_BYTES: f64 = 250e6;

/// A row: its title, and a function that returns the row's value for a fleet. The function returns an empty text if the
/// bench did not measure this value for the fleet.
type Row = (&'static str, fn(&FleetFigures) -> String);

const ROWS: [Row; 18] = [
    ("objects that are kept", |told| figure(told.stored.0)),
    ("**all children exist**, s", |told| figure(told.creation.wall.as_secs_f64())),
    ("passes", |told| figure(told.creation.passes)),
    ("passes a second", |told| figure(told.creation.passes / told.creation.wall.as_secs_f64())),
    ("writes for an Agent and its children, including statuses", |told| {
        if told.agents == 0 { String::new() } else { format!("{:.2}", told.creation.writes / number(told.agents)) }
    }),
    ("reads", |told| figure(told.creation.reads)),
    ("resident at most, MB", |told| megabytes(told.created.0)),
    ("**a restart finds all children up to date**, s", |told| figure(told.restart.wall.as_secs_f64())),
    ("passes a second", |told| figure(told.restart.passes / told.restart.wall.as_secs_f64())),
    ("writes; reads; watches", |told| calls(&told.restart)),
    ("resident at most, MB", |told| megabytes(told.settled.0)),
    ("**settled**: resident, MB (aim: 250)", |told| megabytes(told.settled.1)),
    ("requests in 15 s, watches apart", |told| figure(told.quiet.writes + told.quiet.events + told.quiet.reads)),
    ("**a label on a ModelAPI of 1,000 Agents**: passes over Agents; writes", |told| change(told.label.as_ref())),
    ("**another model in this ModelAPI**: passes over Agents; writes, including the ModelAPI and statuses", |told| {
        change(told.model.as_ref())
    }),
    ("**a restart with records of settled objects**, s (aim: 5)", |told| figure(told.recorded.wall.as_secs_f64())),
    ("processor time of this restart, s", |told| figure(told.recorded.cpu.as_secs_f64())),
    ("answers of policies; writes; reads", |told| {
        let Span { answers, writes, reads, .. } = told.recorded;
        [answers, writes, reads].map(grouped).join("; ")
    }),
];

/// Formats the figures of all fleets as one table.
pub(crate) fn of(told: &[FleetFigures]) -> String {
    let (mut head, mut rule) = ("| Agents |".to_owned(), "|---|".to_owned());
    for fleet in told {
        head.push_str(&format!(" {} |", grouped(number(fleet.agents))));
        rule.push_str("---:|");
    }
    let mut table = format!("{head}\n{rule}\n");
    for (name, show) in ROWS {
        let cells: Vec<String> = told.iter().map(show).collect();
        let _infallible = writeln!(table, "| {name} | {} |", cells.join(" | "));
    }
    for pair in told.windows(2) {
        table.push_str(&more(&pair[0], &pair[1]));
    }
    table
}

/// Returns a sentence about the cost of each object and of each pass. The function subtracts the figures of the small
/// fleet from those of the large fleet, so the cost does not include the start of a process.
#[allow(clippy::cast_precision_loss, reason = "no process is that large")]
fn more(small: &FleetFigures, large: &FleetFigures) -> String {
    let objects = large.stored.0 - small.stored.0;
    let bytes = (large.settled.1 as f64 - small.settled.1 as f64) / objects;
    let text = (large.stored.1 - small.stored.1) / objects;
    let pass = |span: fn(&FleetFigures) -> Span| {
        let (small, large) = (span(small), span(large));
        let passes = large.passes - small.passes;
        grouped((large.cpu.as_secs_f64() - small.cpu.as_secs_f64()) * 1e6 / passes)
    };
    format!(
        "\nFrom {} to {} Agents: {} more objects are kept, each {} bytes of text and {} bytes of resident memory; a \
         pass takes {} µs of processor time if it creates all children, {} µs if all children are up to date.\n",
        grouped(number(small.agents)),
        grouped(number(large.agents)),
        grouped(objects),
        grouped(text),
        grouped(bytes),
        pass(|told| told.creation),
        pass(|told| told.restart),
    )
}

/// Returns a message for each upper bound that the figures of a fleet exceed.
pub(crate) fn wrong(told: &FleetFigures) -> Vec<String> {
    let agents = told.agents;
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            wrong.push(format!("{agents} Agents: {what}"));
        }
    };
    must(told.restart.writes < 1.0, format!("a restart writes {} times", told.restart.writes));
    must(told.recorded.writes < 1.0, format!("a restart with records writes {} times", told.recorded.writes));
    // Allow a few answers: the bench changed one ModelAPI, and the last pass over this ModelAPI wrote something. So
    // this ModelAPI has no proof, and the third operator asks the policy about this ModelAPI.
    let answers = told.recorded.answers;
    must(answers < 10.0, format!("a restart with records asks policies {answers} times"));
    let asked = told.quiet.writes + told.quiet.events + told.quiet.reads;
    must(asked < 1.0, format!("{asked} requests while nothing happens"));
    if let Some(label) = &told.label {
        must(label.passes_of_agents < 1.0, format!("a label costs {} passes", label.passes_of_agents));
        must(label.writes < 1.0, format!("a label costs {} writes", label.writes));
    }
    if let Some(model) = &told.model {
        must(model.passes_of_agents < 1.0, format!("another model costs {} passes", model.passes_of_agents));
    }
    #[allow(clippy::cast_precision_loss, reason = "no process is that large")]
    let resident = told.settled.1 as f64;
    must(agents > 10_000 || resident < MAX_RESIDENT_BYTES, format!("{resident} bytes are resident"));
    wrong
}

fn figure(figure: f64) -> String {
    if figure < 100.0 && figure.fract() > 0.0 { format!("{figure:.1}") } else { grouped(figure) }
}

fn calls(span: &Span) -> String {
    format!("{}; {}; {}", grouped(span.writes), grouped(span.reads), grouped(span.watches))
}

fn change(span: Option<&Span>) -> String {
    span.map(|span| format!("{}; {}", grouped(span.passes_of_agents), grouped(span.writes))).unwrap_or_default()
}

#[allow(clippy::cast_precision_loss, reason = "no process is that large")]
fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

/// Formats a number without a fraction, in groups of three digits.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}
