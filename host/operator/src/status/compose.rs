//! Composes the status of an object after a complete pass, from the policy's report and the conditions that every kind
//! has.

use std::borrow::Cow;

use kaos_policy::{
    contract::{Answer, Blocker, Outcome, Reference, Refusal, Target, Truth, Violation},
    cut::{STATUS, cut},
    failure::Failure,
    lookup::Lookup,
    printable::{printable, printable_lines},
    render::{Assessed, HOST_FIELDS, PolicyFailure, Rendered, Verdict},
};
use serde_json::{Map, Value, json};

use super::conditions::{self, Condition, Hindrance, reason, written};
use super::progress::{is_progress, progress};

/// What the host itself knows about an object, in addition to the policy's report.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The outcome of the pass.
    pub outcome: &'a Outcome,
    /// The reason that the status reports if the outcome is [`Outcome::Failed`].
    pub hindrance: Hindrance,
    /// Needed objects that do not exist.
    pub missing: &'a [Reference],
    /// The generation of the object for which the pass made the plan.
    pub generation: i64,
    /// The last generation that the operator has applied completely.
    pub applied_generation: Option<i64>,
    /// The existing status. If the policy fails, the policy's fields keep their values from this status.
    pub before: Option<&'a Value>,
    /// The reason why a fallback answers; `None` without a fallback.
    pub fallback: Option<&'a str>,
}

/// Composes the status of an object.
pub fn compose(
    rendered: &Rendered,
    assessed: Result<Assessed, PolicyFailure>,
    Standing { outcome, hindrance, missing, generation, applied_generation, before, fallback }: Standing<'_>,
) -> Value {
    let (accepted, applied) = (accepted(rendered), applied(rendered, outcome, hindrance));
    // After a refusal, use the message of `Accepted`, because the message of `Applied` only refers to it.
    let why = if matches!(outcome, Outcome::Refused(_)) { &accepted.message } else { &applied.message };
    let is_behind = *outcome != Outcome::Applied && applied_generation != Some(generation);
    let is_ready;
    // The generation in the condition `Ready`. While pods of an older generation run, it must not be the newest
    // generation.
    let mut of_pods = generation;
    let mut own = Vec::new();
    let mut status = match assessed {
        Ok(Assessed { report, fields, .. }) => {
            let (phase, message) = if report.ready && is_behind {
                let runs =
                    applied_generation.map_or("an earlier generation".to_owned(), |runs| format!("generation {runs}"));
                let pods = without(&report.message, why);
                let colon = if pods.is_empty() { "" } else { ": " };
                let message = format!("generation {generation} is not applied: {why}; {runs} runs{colon}{pods}");
                of_pods = applied_generation.unwrap_or_else(|| generation.saturating_sub(1));
                (waiting_or_failed(outcome).to_owned(), message)
            } else {
                (report.phase, with_paths(rendered, report.message))
            };
            let mut status = fields;
            status.retain(|field, _| !HOST_FIELDS.contains(&field.as_str()));
            write_out_fields(&mut status);
            status.insert("phase".to_owned(), printable(&phase).into());
            status.insert("ready".to_owned(), report.ready.into());
            status.insert("message".to_owned(), cut(&message, STATUS).into());
            is_ready = ready(report.ready, outcome, message);
            own = report.conditions;
            status
        }
        Err(failure) => {
            // Keep the policy's fields: other objects still use the endpoint of the running pods.
            let mut status: Map<_, _> = before.and_then(Value::as_object).cloned().unwrap_or_default();
            status.retain(|field, _| !HOST_FIELDS.contains(&field.as_str()));
            status.insert("phase".to_owned(), "Failed".into());
            status.insert("ready".to_owned(), false.into());
            status.insert("message".to_owned(), cut(&failure.to_string(), STATUS).into());
            // A failure on the live children is lasting, because the policy will fail on these children again. If the
            // policy already failed before it made a plan, the condition `Applied` shows the reason.
            let unavailable = ready(false, &Outcome::Failed(String::new()), failure.to_string());
            let is_lasting = !matches!(rendered.verdict, Verdict::Failed(_));
            is_ready = Condition { is_lasting, ..unavailable };
            status
        }
    };
    let mut conditions = vec![accepted, resolved(rendered, missing), applied];
    conditions.extend(fallback.map(fell_back));
    let is_failed = *outcome == Outcome::Applied && status.get("phase").is_some_and(|phase| phase == "Failed");
    let is_ready = in_its_words(is_ready, &own, is_failed);
    let mut all: Vec<Value> = conditions
        .iter()
        .map(|Condition { of, status, reason, message, .. }| written(of, *status, reason, message, generation))
        .collect();
    all.push(written(is_ready.of, is_ready.status, &is_ready.reason, &is_ready.message, of_pods));
    conditions.push(is_ready);
    all.extend(progress(&conditions, generation));
    let is_hosts = |of: &str| is_progress(of) || conditions.iter().any(|common| common.of == of);
    for extra in own.iter().filter(|extra| !is_hosts(&extra.type_)) {
        all.push(written(&extra.type_, extra.status, &extra.reason, &extra.message, generation));
    }
    status.insert("conditions".to_owned(), all.into());
    status.insert("observedGeneration".to_owned(), generation.into());
    if let Some(generation) = applied_generation {
        status.insert("appliedGeneration".to_owned(), generation.into());
    }
    status.insert("policy".to_owned(), json!(rendered.policy));
    Value::Object(status)
}

/// Returns the missing objects that the policy needs by name. Leaves out optional needs.
pub fn missing(rendered: &Rendered, lookup: &dyn Lookup) -> Vec<Reference> {
    let absent = |target: &Target| match target {
        Target::Named(reference) => lookup.is_absent(target).then(|| reference.clone()),
        Target::Labelled(_) => None,
    };
    let required = rendered.needs.iter().filter(|need| !need.optional);
    required.filter_map(|need| absent(&need.target)).collect()
}

/// Removes the text `why` from the beginning or the end of a policy's message, because the status already contains it.
fn without<'a>(message: &'a str, why: &str) -> &'a str {
    let rest = message.strip_suffix(why).or_else(|| message.strip_prefix(why)).filter(|_| !why.is_empty());
    rest.map_or(message, |rest| rest.trim_matches([';', ':', ',', ' ']))
}

/// If the host's condition `Ready` and the policy's own condition `Ready` are both false, uses the policy's reason and
/// message. Then the condition is also lasting if `is_failed` is set: the policy reports the phase `Failed` although
/// the operator has applied all children, so a user must act.
fn in_its_words(is_ready: Condition, own: &[kaos_policy::contract::Condition], is_failed: bool) -> Condition {
    let theirs = own.iter().find(|own| own.type_ == is_ready.of && own.status == is_ready.status);
    match theirs.filter(|theirs| is_ready.status == Truth::No && !theirs.reason.is_empty()) {
        Some(theirs) => Condition {
            reason: theirs.reason.clone().into(),
            message: theirs.message.clone(),
            is_lasting: is_ready.is_lasting || is_failed,
            ..is_ready
        },
        None => is_ready,
    }
}

/// Escapes control characters in the names of a policy's own status fields, and in all texts in these fields.
fn write_out(field: &mut Value) {
    match field {
        Value::String(text) => {
            if let Cow::Owned(shown) = printable_lines(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_out),
        Value::Object(fields) => write_out_fields(fields),
        _ => {}
    }
}

fn write_out_fields(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(write_out);
    if fields.keys().any(|name| matches!(printable(name), Cow::Owned(_))) {
        let escaped = std::mem::take(fields).into_iter().map(|(name, value)| (printable(&name).into_owned(), value));
        *fields = escaped.collect();
    }
}

fn accepted(rendered: &Rendered) -> Condition {
    let is_lasting = match &rendered.verdict {
        Verdict::Planned(_) | Verdict::Refused(Refusal::Waiting(_)) => false,
        Verdict::Refused(Refusal::Invalid(_) | Refusal::Unsupported(_)) | Verdict::Failed(_) => true,
    };
    let (status, reason, message) = match &rendered.verdict {
        Verdict::Planned(_) => (Truth::Yes, reason::ACCEPTED, format!("policy {} took the spec", rendered.policy.name)),
        Verdict::Refused(Refusal::Invalid(violations)) => (Truth::No, reason::INVALID_SPEC, violated(violations)),
        Verdict::Refused(Refusal::Unsupported(message)) => (Truth::No, reason::UNSUPPORTED, message.clone()),
        Verdict::Refused(Refusal::Waiting(blockers)) => (Truth::Unknown, reason::WAITING, blocked(blockers)),
        Verdict::Failed(failure) => (Truth::No, reason::POLICY_FAILED, failure.to_string()),
    };
    Condition { of: conditions::ACCEPTED, status, reason: reason.into(), message, is_lasting }
}

fn resolved(rendered: &Rendered, missing: &[Reference]) -> Condition {
    let of = conditions::RESOLVED;
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
            reason: reason::NOT_FOUND.into(),
            message: format!("{} not found", names.join(", ")),
            is_lasting: false,
        };
    }
    if !forbidden.is_empty() {
        return Condition {
            of,
            status: Truth::No,
            reason: reason::NOT_PERMITTED.into(),
            message: forbidden.join("; "),
            is_lasting: true,
        };
    }
    if let Verdict::Refused(Refusal::Waiting(blockers)) = &rendered.verdict {
        let is_too_many = blockers.iter().any(|blocker| blocker.reason == reason::TOO_MANY_NEEDS);
        let reason = if is_too_many { reason::TOO_MANY_NEEDS } else { reason::WAITING };
        let message = blocked(blockers);
        return Condition { of, status: Truth::No, reason: reason.into(), message, is_lasting: is_too_many };
    }
    let message = "all objects that the policy needs exist".to_owned();
    Condition { of, status: Truth::Yes, reason: reason::RESOLVED.into(), message, is_lasting: false }
}

fn applied(rendered: &Rendered, outcome: &Outcome, hindrance: Hindrance) -> Condition {
    let (status, reason, message) = match (outcome, &rendered.verdict) {
        (Outcome::Applied, _) => {
            (Truth::Yes, reason::APPLIED, format!("{} objects are as planned", rendered.manifests().len()))
        }
        (Outcome::Gated, _) if rendered.gates().is_empty() => (
            Truth::No,
            reason::GATED,
            "waiting up to 2s for referenced objects that may be part of the same apply".to_owned(),
        ),
        (Outcome::Gated, _) => (Truth::No, reason::GATED, blocked(rendered.gates())),
        (Outcome::Refused(_), _) => {
            (Truth::No, reason::REFUSED, "there is no plan; see Accepted and Resolved".to_owned())
        }
        (Outcome::Failed(message), Verdict::Failed(PolicyFailure { failure, .. }))
            if matches!(**failure, Failure::Guard(_)) =>
        {
            (Truth::No, reason::GUARD_REFUSED, message.clone())
        }
        (Outcome::Failed(message), Verdict::Failed(_)) => (Truth::No, reason::POLICY_FAILED, message.clone()),
        (Outcome::Failed(message), _) => (Truth::No, hindrance.reason(), message.clone()),
    };
    let is_lasting = match (outcome, &rendered.verdict) {
        (Outcome::Failed(_), Verdict::Failed(_)) => true,
        (Outcome::Failed(_), _) => hindrance.is_lasting(),
        (Outcome::Applied | Outcome::Gated | Outcome::Refused(_), _) => false,
    };
    Condition { of: conditions::APPLIED, status, reason: reason.into(), message, is_lasting }
}

fn fell_back(why: &str) -> Condition {
    Condition {
        of: conditions::POLICY_FALLBACK,
        status: Truth::Yes,
        reason: reason::FELL_BACK.into(),
        message: why.to_owned(),
        is_lasting: false,
    }
}

fn ready(ready: bool, outcome: &Outcome, message: String) -> Condition {
    let (status, reason) = match outcome {
        _ if ready => (Truth::Yes, reason::READY),
        Outcome::Applied => (Truth::No, reason::PROGRESSING),
        Outcome::Gated => (Truth::No, reason::GATED),
        Outcome::Refused(_) => (Truth::No, reason::REFUSED),
        Outcome::Failed(_) => (Truth::No, reason::UNAVAILABLE),
    };
    Condition { of: conditions::READY, status, reason: reason.into(), message, is_lasting: false }
}

/// Returns the phase of an object whose pods still serve an older generation.
fn waiting_or_failed(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Gated | Outcome::Refused(Refusal::Waiting(_)) => "Waiting",
        _ => "Failed",
    }
}

/// Replaces a policy's message by the violations with their paths, unless the message already contains all these paths.
fn with_paths(rendered: &Rendered, message: String) -> String {
    match &rendered.verdict {
        Verdict::Refused(Refusal::Invalid(violations))
            if !violations.iter().all(|violation| message.contains(&violation.path)) =>
        {
            violated(violations)
        }
        _ => message,
    }
}

fn violated(violations: &[Violation]) -> String {
    let texts: Vec<_> = violations.iter().map(|Violation { path, message }| format!("{path}: {message}")).collect();
    texts.join("; ")
}

fn blocked(blockers: &[Blocker]) -> String {
    let texts: Vec<_> = blockers.iter().map(|blocker| blocker.message.as_str()).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_the_status_contains_already_is_not_repeated() {
        for (message, left) in [
            ("3 of 3 servers available; Secret login not found", "3 of 3 servers available"),
            ("Secret login not found: 3 servers run", "3 servers run"),
            ("Secret login not found", ""),
            ("3 of 3 servers available", "3 of 3 servers available"),
        ] {
            assert_eq!(without(message, "Secret login not found"), left);
        }
        assert_eq!(without("3 servers run; ", ""), "3 servers run; ");
    }

    #[test]
    fn names_and_values_of_a_policys_fields_are_escaped() {
        let mut field = json!({"a\u{1b}[2J": {"b\u{202e}\n": "c\u{9b}"}, "é": ["d\ne"]});
        write_out(&mut field);
        assert_eq!(field, json!({"a\\u{1b}[2J": {"b\\u{202e}\\n": "c\\u{9b}"}, "é": ["d\ne"]}));
    }
}
