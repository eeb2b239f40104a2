//! The report for the status of a Queue.

use kaos_policy_sdk::types::{Condition, Observation, Outcome, Refusal, Report, Subject};
use kaos_policy_sdk::{Object, ObservationExt, SubjectExt, condition, json};
use serde_json::json;

use crate::found::{Found, Login};
use crate::spec::Spec;

/// The condition about the Secret with the password.
const LOGIN_KNOWN: &str = "LoginKnown";

/// Builds the report from the outcome of the pass and the live StatefulSet.
pub(crate) fn report(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let rollout = seen.rollout("StatefulSet");
    // Before the first apply, no StatefulSet exists, so use the number in the Queue.
    let wanted = if seen.live("StatefulSet").is_some() { rollout.wanted } else { servers_of(&object) };
    let has_majority = rollout.available * 2 > wanted;
    let servers = format!("{} of {wanted} servers available", rollout.available);
    let (phase, message) = match &seen.outcome {
        Outcome::Refused(Refusal::Invalid(wrong)) => {
            let told: Vec<String> = wrong.iter().map(|it| format!("{}: {}", it.path, it.message)).collect();
            ("Failed", told.join("; "))
        }
        Outcome::Refused(Refusal::Unsupported(why)) | Outcome::Failed(why) => ("Failed", why.clone()),
        // A lost Secret does not stop running servers.
        Outcome::Gated | Outcome::Refused(Refusal::Waiting(_)) if !has_majority => {
            ("Waiting", seen.gates.first().map_or_else(|| "waiting".to_owned(), |gate| gate.message.clone()))
        }
        _ if has_majority => ("Ready", servers),
        _ => ("Pending", servers),
    };
    let host = subject.service_host(object.name(), object.namespace());
    let fields = json!({
        "endpoint": format!("nats://{host}:4222"),
        "replicas": rollout.replicas,
        "readyReplicas": rollout.ready,
        "selector": format!("app=queue,queue={}", object.name()),
    });
    Report {
        ready: phase == "Ready",
        phase: phase.to_owned(),
        message,
        fields: json::text(&fields),
        conditions: login(subject).into_iter().collect(),
        ..Report::default()
    }
}

/// Returns the number of servers that a Queue wants. Returns 0 if its spec cannot be read.
fn servers_of(object: &Object) -> u64 {
    object.read::<Spec>("spec").map_or(0, |spec| spec.replicas.into())
}

/// Returns the condition about the password, or `None` for a Queue without a password.
fn login(subject: &Subject) -> Option<Condition> {
    let spec: Spec = subject.object().read("spec").ok()?;
    match Found::of(subject, &spec).login {
        Login::Open => None,
        Login::Known { secret, .. } => {
            Some(condition::yes(LOGIN_KNOWN, "Found", format!("Secret {secret} has a password")))
        }
        Login::Unwatched { secret, .. } => {
            let message = format!("the operator does not look at Secret {secret}");
            Some(condition::unknown(LOGIN_KNOWN, "SecretNotWatched", message))
        }
        Login::Missing(blocker) => Some(condition::no(LOGIN_KNOWN, &blocker.reason, blocker.message)),
    }
}
