//! Reports on an AuthorizationPolicy: which AccessGrants the decision point's data contains.

use alloc::borrow::ToOwned;
use kaos_crds::Phase;
use kaos_policy_sdk::json;
use kaos_policy_sdk::types::{Observation, Outcome, Refusal, Report, Subject};
use serde_json::json;

use crate::enforced::text;
use crate::projection::Projection;

/// Builds the report on an AuthorizationPolicy.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let projection = Projection::of(subject);
    let (phase, message, fields) = match (projection.as_ref(), &seen.outcome) {
        (Ok(projection), Outcome::Applied) => {
            let message = format!(
                "ConfigMap {name} has the rules and {count} AccessGrants",
                name = projection.config_map,
                count = projection.grants.len()
            );
            (Phase::Ready, message, json!({"grants": projection.grants}))
        }
        (_, Outcome::Failed(why)) => (Phase::Failed, why.clone(), json!({})),
        (_, Outcome::Refused(refused)) | (Err(refused), _) => {
            let phase = if matches!(refused, Refusal::Waiting(_)) { Phase::Waiting } else { Phase::Failed };
            (phase, text(refused), json!({}))
        }
        (Ok(_), Outcome::Gated) => (Phase::Pending, "the ConfigMap is not written yet".to_owned(), json!({})),
    };
    Report {
        ready: phase == Phase::Ready,
        phase: phase.as_str().to_owned(),
        message,
        fields: json::text(&fields),
        conditions: vec![],
        extra: json::empty(),
    }
}
