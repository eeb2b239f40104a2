//! Defines the findings of the check, and prints them.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::json;

use super::super::{OutputFormat, output::Output};
use crate::plan::Field;

/// The maximum number of findings of one sort that the text lists individually.
const LISTED: usize = 40;

/// The sort of a finding, the most serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Sort {
    /// The chart refuses a value, and stops before it changes anything.
    Stops,
    /// A feature stops working, or a service stays open to all callers.
    Breaks,
    /// No operator updates or deletes an object any more.
    Lost,
    /// Pods are replaced.
    Rolls,
    /// An object is refused, or waits. The running children of the object do not change.
    Refused,
    /// The effect is unknown, because the command could not read the objects.
    Open,
    /// For information only. The exit code ignores notes.
    Note,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UpgradeFinding {
    pub(super) sort: Sort,
    /// The object or the value that the finding is about.
    pub(super) about: String,
    /// The effect of the upgrade, and the reason.
    pub(super) message: String,
    /// The action with which the user can resolve the finding.
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
    /// The fields that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<Field>,
}

impl UpgradeFinding {
    /// Creates a finding without fields.
    pub(super) fn new(
        sort: Sort,
        about: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { sort, about: about.into(), message: message.into(), remedy: remedy.into(), fields: Vec::new() }
    }
}

impl fmt::Display for UpgradeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, message, remedy, fields, .. } = self;
        write!(f, "  {about}: {message}")?;
        for Field { path, before, after } in fields {
            let shown = |value: &Option<serde_json::Value>| match value {
                None => "-".to_owned(),
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            write!(f, "\n      {path}: {} -> {}", shown(before), shown(after))?;
        }
        if !remedy.is_empty() {
            write!(f, "\n    do: {remedy}")?;
        }
        Ok(())
    }
}

const HEADS: [(Sort, &str); 7] = [
    (Sort::Stops, "Refused by the chart: the upgrade does not start"),
    (Sort::Breaks, "Stops working, or stays open to all callers"),
    (Sort::Lost, "No longer managed"),
    (Sort::Rolls, "Pods that are replaced"),
    (Sort::Refused, "Refused, or waiting: running pods do not change"),
    (Sort::Open, "Unknown"),
    (Sort::Note, "For information"),
];

/// Prints the preset and the findings. Returns whether any finding is not a note.
pub(super) fn write(
    mut findings: Vec<UpgradeFinding>,
    objects: usize,
    preset: &str,
    form: OutputFormat,
    out: &mut Output,
) -> anyhow::Result<bool> {
    findings
        .sort_by(|one, other| (one.sort, &one.about, &one.message).cmp(&(other.sort, &other.about, &other.message)));
    findings.dedup();
    let count = |sort: Sort| findings.iter().filter(|finding| finding.sort == sort).count();
    let counted = findings.len() - count(Sort::Note);
    match form {
        OutputFormat::Json => {
            let counts: serde_json::Map<_, _> = HEADS
                .iter()
                .filter_map(|(sort, _)| Some((json!(sort).as_str()?.to_owned(), count(*sort).into())))
                .collect();
            out.json(&json!({"preset": preset, "objects": objects, "counts": counts, "findings": findings}))?;
        }
        OutputFormat::Text => {
            let mut text = format!("The upgrade to this operator with the preset {preset}:\n\n");
            for (sort, head) in HEADS {
                let of = || findings.iter().filter(move |finding| finding.sort == sort);
                if of().next().is_none() {
                    continue;
                }
                let _ = writeln!(text, "{head}:");
                for finding in of().take(LISTED) {
                    let _ = writeln!(text, "{finding}");
                }
                let more = count(sort).saturating_sub(LISTED);
                if more > 0 {
                    let _ = writeln!(text, "  and {more} more: -o json lists all");
                }
                text.push('\n');
            }
            let _ = match counted {
                0 => writeln!(text, "{objects} objects: nothing prevents the upgrade, and no pod is replaced."),
                _ => writeln!(text, "{objects} objects, {counted} findings."),
            };
            out.text(&text)?;
        }
    }
    out.flush()?;
    Ok(counted > 0)
}
