//! Builds the report on a Gadget. A Gadget is ready when its Deployment is ready. A Gadget without a Deployment is
//! ready when its plan is applied.

use std::panic::resume_unwind;

use kaos_policy::contract::{Condition, Observation, Outcome, Refusal, Report, Subject, Truth};
use serde_json::{Value, json};

use super::object::{object, text};

/// Returns the report. The status contains the field `undeclared`, which the CustomResourceDefinition lacks.
pub(super) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = object(subject);
    if object["spec"]["does"] == "faint" {
        // Unwind without a panic message, because the test causes this panic deliberately.
        resume_unwind(Box::new("told to"));
    }
    let live = |kind: &str| -> Option<Value> {
        let child = seen.children.iter().find(|child| child.identity.kind == kind && child.live.is_some())?;
        serde_json::from_str(child.live.as_deref()?).ok()
    };
    let left_out = object["spec"]["leaveOut"].as_array().is_some_and(|kinds| kinds.contains(&json!("Deployment")));
    let deployment = live("Deployment").unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = deployment["status"]["availableReplicas"].as_i64().unwrap_or(0);
    let is_current = deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"];
    let is_applied = matches!(seen.outcome, Outcome::Applied);
    let ready = is_applied && (left_out || (available > 0 && is_current));
    let (phase, message) = match &seen.outcome {
        Outcome::Applied if ready => ("Ready", format!("{available}/{wanted} pods ready")),
        Outcome::Applied => ("Pending", format!("{available}/{wanted} pods ready")),
        Outcome::Gated => ("Waiting", first(seen.gates.iter().map(|gate| gate.message.clone()))),
        Outcome::Refused(Refusal::Waiting(on)) => ("Waiting", first(on.iter().map(|blocker| blocker.message.clone()))),
        Outcome::Refused(Refusal::Invalid(wrong)) => {
            ("Failed", first(wrong.iter().map(|violation| format!("{}: {}", violation.path, violation.message))))
        }
        Outcome::Refused(Refusal::Unsupported(message)) | Outcome::Failed(message) => ("Failed", message.clone()),
    };
    let service = live("Service").map_or((Truth::No, "Missing"), |_| (Truth::Yes, "Created"));
    let metadata = &object["metadata"];
    let settings: Value = serde_json::from_str(&subject.settings).unwrap_or_default();
    let port = if object["spec"]["port"].is_null() { &settings["port"] } else { &object["spec"]["port"] };
    let endpoint = format!(
        "http://{}.{}.svc.{}:{port}",
        text(&metadata["name"]),
        text(&metadata["namespace"]),
        subject.cluster.domain,
    );
    let says = |usual: &str| object["spec"]["says"].as_str().unwrap_or(usual).to_owned();
    Report {
        ready,
        phase: phase.to_owned(),
        message: says(&message),
        fields: json!({"endpoint": says(&endpoint), "undeclared": "dropped"}).to_string(),
        conditions: vec![Condition {
            type_: "ServiceReady".to_owned(),
            status: service.0,
            reason: service.1.to_owned(),
            message: says("the Service is looked at by name"),
        }],
        extra: "{}".to_owned(),
    }
}

fn first(mut messages: impl Iterator<Item = String>) -> String {
    messages.next().unwrap_or_default()
}
