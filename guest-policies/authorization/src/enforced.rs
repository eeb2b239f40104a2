//! Reports whether an AccessGrant is in force.

use alloc::{string::ToString, vec::Vec};
use kaos_crds::Phase;
use kaos_policy_sdk::types::{Observation, Outcome, Refusal, Report, Subject};
use kaos_policy_sdk::{condition, json};

use crate::grant::{self, Standing};

/// Builds the report on an AccessGrant.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let standing = grant::standing(subject);
    let (phase, message) = match (&standing, &seen.outcome) {
        (_, Outcome::Failed(why)) => (Phase::Failed, why.clone()),
        (Ok(it @ Standing::Enforced), _) => (Phase::Ready, it.message()),
        (Ok(it @ (Standing::Missing | Standing::Pending | Standing::Failed(_))), _) => (Phase::Waiting, it.message()),
        (Ok(it), _) => (Phase::Failed, it.message()),
        (Err(refused), _) => (Phase::Failed, text(refused)),
    };
    let conditions = match &standing {
        // Without this `Ready`, the host would report `Progressing`. But only a person can enable authorization.
        Ok(it @ Standing::Disabled) => vec![it.condition(), condition::no("Ready", it.reason(), it.message())],
        Ok(standing) => vec![standing.condition()],
        Err(refused) => vec![condition::no("Enforced", "InvalidSpec", text(refused))],
    };
    let ready = phase == Phase::Ready && matches!(seen.outcome, Outcome::Applied);
    let phase = if phase == Phase::Ready && !ready { Phase::Pending } else { phase };
    Report {
        ready,
        phase: phase.as_str().to_string(),
        message,
        fields: json::empty(),
        conditions,
        extra: json::empty(),
    }
}

/// Returns the messages of a refusal as one text.
pub(crate) fn text(refused: &Refusal) -> alloc::string::String {
    match refused {
        Refusal::Unsupported(message) => message.clone(),
        Refusal::Invalid(violations) => {
            violations.iter().map(|it| format!("{}: {}", it.path, it.message)).collect::<Vec<_>>().join("; ")
        }
        Refusal::Waiting(blockers) => blockers.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; "),
    }
}
