//! What is written to an object's `status`: the policy's report, and the conditions that every kind has.
//!
//! Times of transitions are left to whoever writes, since they depend on what was written before.

use kaos_policy::{
    contract::{Answer, Blocker, Outcome, Reference, Refusal, Truth, Violation},
    failure::Failure,
    render::{Assessed, PolicyFailure, Rendered, Verdict},
};
use serde_json::{Map, Value, json};

/// A condition of the common vocabulary.
struct Condition {
    of: &'static str,
    status: Truth,
    reason: &'static str,
    message: String,
}

/// The status of an object of a generation. `missing` are the objects that it needs and that are not there.
pub fn compose(
    rendered: &Rendered,
    outcome: &Outcome,
    assessed: Result<Assessed, PolicyFailure>,
    missing: &[Reference],
    generation: i64,
) -> Value {
    let mut conditions = vec![accepted(rendered), resolved(rendered, missing), applied(rendered, outcome)];
    let mut status = Map::new();
    let mut own = Vec::new();
    match assessed {
        Ok(Assessed { report, fields, .. }) => {
            status = fields;
            status.insert("phase".to_owned(), report.phase.into());
            status.insert("ready".to_owned(), report.ready.into());
            conditions.push(ready(report.ready, outcome, report.message.clone()));
            status.insert("message".to_owned(), report.message.into());
            own = report.conditions;
        }
        Err(failure) => {
            status.insert("phase".to_owned(), "Failed".into());
            status.insert("ready".to_owned(), false.into());
            status.insert("message".to_owned(), failure.to_string().into());
            conditions.push(ready(false, &Outcome::Failed(String::new()), failure.to_string()));
        }
    }
    let mut written: Vec<Value> = conditions
        .iter()
        .map(|Condition { of, status, reason, message }| condition(of, *status, reason, message, generation))
        .collect();
    for extra in own.iter().filter(|extra| conditions.iter().all(|common| common.of != extra.type_)) {
        written.push(condition(&extra.type_, extra.status, &extra.reason, &extra.message, generation));
    }
    status.insert("conditions".to_owned(), written.into());
    status.insert("observedGeneration".to_owned(), generation.into());
    status.insert("policy".to_owned(), json!(rendered.policy));
    Value::Object(status)
}

fn condition(of: &str, status: Truth, reason: &str, message: &str, generation: i64) -> Value {
    json!({"type": of, "status": status, "reason": reason, "message": message, "observedGeneration": generation})
}

fn accepted(rendered: &Rendered) -> Condition {
    let (status, reason, message) = match &rendered.verdict {
        Verdict::Planned(_) => (Truth::Yes, "Accepted", format!("policy {} took the spec", rendered.policy.name)),
        Verdict::Refused(Refusal::Invalid(violations)) => (Truth::No, "InvalidSpec", violated(violations)),
        Verdict::Refused(Refusal::Unsupported(message)) => (Truth::No, "Unsupported", message.clone()),
        Verdict::Refused(Refusal::Waiting(blockers)) => (Truth::Unknown, "Waiting", blocked(blockers)),
        Verdict::Failed(failure) => (Truth::No, "PolicyFailed", failure.to_string()),
    };
    Condition { of: "Accepted", status, reason, message }
}

fn resolved(rendered: &Rendered, missing: &[Reference]) -> Condition {
    let of = "Resolved";
    let forbidden: Vec<&str> = rendered
        .subject()
        .found
        .iter()
        .filter_map(|found| match &found.answer {
            Answer::Forbidden(reason) => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
        return Condition {
            of,
            status: Truth::No,
            reason: "NotFound",
            message: format!("{} not found", names.join(", ")),
        };
    }
    if !forbidden.is_empty() {
        return Condition { of, status: Truth::No, reason: "NotPermitted", message: forbidden.join("; ") };
    }
    if let Verdict::Refused(Refusal::Waiting(blockers)) = &rendered.verdict {
        return Condition { of, status: Truth::No, reason: "Waiting", message: blocked(blockers) };
    }
    Condition { of, status: Truth::Yes, reason: "Resolved", message: "everything that is needed is there".to_owned() }
}

fn applied(rendered: &Rendered, outcome: &Outcome) -> Condition {
    let (status, reason, message) = match (outcome, &rendered.verdict) {
        (Outcome::Applied, _) => {
            (Truth::Yes, "Applied", format!("{} objects are as planned", rendered.manifests().len()))
        }
        (Outcome::Gated, _) => (Truth::No, "Gated", blocked(rendered.gates())),
        (Outcome::Refused(_), _) => (Truth::No, "Refused", "there is no plan: see Accepted and Resolved".to_owned()),
        (Outcome::Failed(message), Verdict::Failed(PolicyFailure { failure, .. }))
            if matches!(**failure, Failure::Guard(_)) =>
        {
            (Truth::No, "GuardRefused", message.clone())
        }
        (Outcome::Failed(message), Verdict::Failed(_)) => (Truth::No, "PolicyFailed", message.clone()),
        (Outcome::Failed(message), _) => (Truth::No, "ApplyFailed", message.clone()),
    };
    Condition { of: "Applied", status, reason, message }
}

fn ready(ready: bool, outcome: &Outcome, message: String) -> Condition {
    let (status, reason) = match outcome {
        _ if ready => (Truth::Yes, "Ready"),
        Outcome::Applied => (Truth::No, "Progressing"),
        Outcome::Gated => (Truth::No, "Gated"),
        Outcome::Refused(_) => (Truth::No, "Refused"),
        Outcome::Failed(_) => (Truth::No, "Unavailable"),
    };
    Condition { of: "Ready", status, reason, message }
}

fn violated(violations: &[Violation]) -> String {
    let texts: Vec<_> = violations.iter().map(|Violation { path, message }| format!("{path}: {message}")).collect();
    texts.join("; ")
}

fn blocked(blockers: &[Blocker]) -> String {
    let texts: Vec<_> = blockers.iter().map(|blocker| blocker.message.as_str()).collect();
    texts.join("; ")
}
