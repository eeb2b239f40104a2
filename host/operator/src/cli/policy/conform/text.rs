//! The findings for people: a table, and then the smallest failing object of each failed check.

use super::{super::table::Table, repeat::Repeat};
use crate::{
    conform::{CheckOutcome, CheckResult, ClaimedKind, Counterexample, Findings, FrequentRefusal},
    yaml,
};

/// Formats the findings.
pub(super) fn text(findings: &Findings, repeat: &Repeat<'_>) -> anyhow::Result<String> {
    let Findings { seed, objects, refusals, kinds, results, .. } = findings;
    let mut table = Table::new(&["CHECK", "RESULT", "FOUND"]);
    for CheckResult { property, outcome, found, .. } in results {
        table.row([property.name(), word(*outcome), found]);
    }
    let mut text = table.to_string();
    if *objects > 0 {
        text += &format!("\nseed {seed}, {objects} objects: {}\n", findings.ends_as_text());
    }
    if !refusals.is_empty() {
        let mut table = Table::new(&["OBJECTS", "MOST FREQUENT REFUSALS"]);
        for FrequentRefusal { about, message, objects, .. } in refusals {
            let colon = if about.is_empty() { "" } else { ": " };
            table.row([objects.to_string(), format!("{about}{colon}{message}")]);
        }
        text += &format!("\n{table}\n");
    }
    for ClaimedKind { of, .. } in kinds.iter().filter(|kind| !kind.has_schema) {
        text += &format!(
            "{of} has no known schema, so the random objects are variations of the samples: name its CRD with --crds\n"
        );
    }
    for result in findings.failed() {
        text += &counterexample(result, repeat)?;
    }
    Ok(text)
}

/// Returns the outcome of a check as one word.
fn word(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed => "failed",
        CheckOutcome::Skipped => "skipped",
    }
}

/// Formats the smallest failing object of a check, and the command that repeats the check. Returns an empty text if the
/// check failed without an object.
pub(super) fn counterexample(result: &CheckResult, repeat: &Repeat<'_>) -> anyhow::Result<String> {
    let Some(Counterexample { number, case, message, object, others, settings }) = &result.counterexample else {
        return Ok(String::new());
    };
    let mut text = format!("\n{}: {case}: {message}\n", result.property.name());
    let mut part = |title: &str, value: String| {
        text += &format!("{title}:\n");
        value.trim_end().lines().for_each(|line| text += &format!("  {line}\n"));
    };
    part("smallest failing object", yaml::text(object)?);
    for other in others {
        part("with this object in the cluster", yaml::text(other)?);
    }
    if let Some(settings) = settings {
        part("with these settings", yaml::text(settings)?);
    }
    // Only the check of the settings reports the settings of its passes. This check needs all objects, so its
    // repetition cannot use `--only`.
    let only = settings.is_none().then_some(*number);
    text += &format!("repeat: {}\n", repeat.command(only));
    Ok(text)
}
