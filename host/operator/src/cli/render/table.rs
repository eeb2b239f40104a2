//! `-o table`: prints one line for each object.

use std::fmt;

use kaos_policy::{
    contract::Outcome,
    render::{Refused, Verdict},
};

use super::super::table::Table;
use crate::{input::Document, offline::Entry};

/// The lines so far, and whether the lines show the status.
#[derive(Debug, Default)]
pub(super) struct Objects(Vec<[String; 6]>, bool);

impl Objects {
    /// Adds an object. With `with_status`, adds the phase and the message that the object would get.
    pub(super) fn add(&mut self, document: &Document, entry: &Entry, with_status: bool) {
        let Entry { rendered, outcome, status } = entry;
        self.1 = with_status;
        let result = match outcome {
            Outcome::Applied => "rendered",
            Outcome::Gated => "waiting",
            Outcome::Refused(refusal) => Refused::of(refusal).reason,
            Outcome::Failed(_) => "Failed",
        };
        let manifests = rendered.manifests().iter().map(|manifest| {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            format!("{}/{}", text(&manifest["kind"]), text(&manifest["metadata"]["name"]))
        });
        let children = match &rendered.verdict {
            Verdict::Planned(_) => manifests.collect::<Vec<_>>().join(", "),
            Verdict::Refused(_) | Verdict::Failed(_) => "-".to_owned(),
        };
        let phase = status["phase"].as_str().unwrap_or_default().to_owned();
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        let policy = format!("{} {}", rendered.policy.name, rendered.policy.version);
        self.0.push([document.identity.to_string(), policy, result.to_owned(), children, phase, message]);
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["OBJECT", "POLICY", "RESULT", "MANIFESTS", "PHASE", "MESSAGE"];
        let columns = if self.1 { heading.len() } else { 4 };
        let mut table = Table::new(&heading[..columns]);
        for line in &self.0 {
            table.row(line[..columns].iter().cloned());
        }
        table.fmt(f)
    }
}
