//! The conditions that every kind has: their types, their reasons, and their form in the status.

use std::borrow::Cow;

use kaos_policy::{
    contract::Truth,
    cut::{STATUS, cut},
    printable::printable,
};
use serde_json::{Value, json};

/// Whether a policy accepts the spec.
pub(crate) const ACCEPTED: &str = "Accepted";
/// Whether all objects that the policy needs exist.
pub(crate) const RESOLVED: &str = "Resolved";
/// Whether the children match the plan.
pub(crate) const APPLIED: &str = "Applied";
/// Whether the object serves.
pub(crate) const READY: &str = "Ready";
/// Whether a fallback answers. Unlike the conditions above, this condition reports a problem if it is true.
pub(crate) const POLICY_FALLBACK: &str = "PolicyFallback";

/// True while the operator works on the object or waits. If the condition is not true, the status does not contain it.
/// Tools such as Flux and kpt use this condition.
pub(crate) const RECONCILING: &str = "Reconciling";
/// True if a person must act. If the condition is not true, the status does not contain it. Tools such as Flux and kpt
/// use this condition.
pub(crate) const STALLED: &str = "Stalled";

/// The reasons of these conditions.
pub(crate) mod reason {
    pub(crate) const ACCEPTED: &str = "Accepted";
    pub(crate) const INVALID_SPEC: &str = "InvalidSpec";
    pub(crate) const UNSUPPORTED: &str = "Unsupported";
    pub(crate) const NO_POLICY: &str = "NoPolicy";
    pub(crate) const POLICY_FAILED: &str = "PolicyFailed";
    pub(crate) const WAITING: &str = "Waiting";
    pub(crate) const RESOLVED: &str = "Resolved";
    pub(crate) const NOT_FOUND: &str = "NotFound";
    pub(crate) const NOT_PERMITTED: &str = "NotPermitted";
    /// The object has more needs than the operator can watch in the object's namespace.
    pub(crate) const TOO_MANY_NEEDS: &str = "TooManyNeeds";
    pub(crate) const APPLIED: &str = "Applied";
    pub(crate) const GATED: &str = "Gated";
    pub(crate) const REFUSED: &str = "Refused";
    pub(crate) const GUARD_REFUSED: &str = "GuardRefused";
    pub(crate) const APPLY_FAILED: &str = "ApplyFailed";
    pub(crate) const OWNERSHIP_CONFLICT: &str = "OwnershipConflict";
    pub(crate) const POLICY_NOT_FOUND: &str = "PolicyNotFound";
    pub(crate) const FELL_BACK: &str = "FellBack";
    pub(crate) const READY: &str = "Ready";
    pub(crate) const PROGRESSING: &str = "Progressing";
    pub(crate) const UNAVAILABLE: &str = "Unavailable";
}

/// A condition that every kind has.
pub(super) struct Condition {
    pub(super) of: &'static str,
    pub(super) status: Truth,
    pub(super) reason: Cow<'static, str>,
    pub(super) message: String,
    /// Whether a person must act before the condition can become true.
    pub(super) is_lasting: bool,
}

/// Why the children differ from the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hindrance {
    /// The operator could not write a child yet. It tries again, so nobody needs to act.
    Retried,
    /// The API server refused a child, and will refuse it again.
    ApplyFailed,
    /// A child's name is taken by an object of another owner.
    OwnershipConflict,
    /// The operator lacks the rights to write a child.
    NotPermitted,
    /// The object's pin names a policy that does not exist.
    PolicyNotFound,
}

impl Hindrance {
    /// Returns the reason for a condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Retried | Self::ApplyFailed => reason::APPLY_FAILED,
            Self::OwnershipConflict => reason::OWNERSHIP_CONFLICT,
            Self::NotPermitted => reason::NOT_PERMITTED,
            Self::PolicyNotFound => reason::POLICY_NOT_FOUND,
        }
    }

    /// Returns whether the hindrance stays until a person acts. `PolicyNotFound` does not count as lasting, because a
    /// user may apply the pinned policy at the same time as the object.
    pub(super) fn is_lasting(self) -> bool {
        match self {
            Self::Retried | Self::PolicyNotFound => false,
            Self::ApplyFailed | Self::OwnershipConflict | Self::NotPermitted => true,
        }
    }
}

/// Returns the conditions of an object.
pub(crate) fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// Returns the object's condition whose type is `of`.
pub(crate) fn condition<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    conditions(object).find(|condition| condition["type"] == of)
}

/// Returns whether the object has a true condition whose type is `of`.
pub(crate) fn is_true(object: &Value, of: &str) -> bool {
    condition(object, of).is_some_and(|condition| condition["status"] == "True")
}

/// Returns a condition in the form of the status, without its transition time.
pub(super) fn written(of: &str, status: Truth, reason: &str, message: &str, generation: i64) -> Value {
    let (of, reason, message) = (printable(of), printable(reason), cut(message, STATUS));
    json!({"type": of, "status": status, "reason": reason, "message": message, "observedGeneration": generation})
}
