//! Computes the conditions `Reconciling` and `Stalled`. Flux, Helm's `--wait` and kpt do not know the kinds of KAOS. So
//! they use these two conditions to decide whether to wait for an object or to give up. An object has at most one of
//! the two conditions, and only while the condition's status is `True`.
//!
//! The other conditions determine these two, so they change only together with another condition.

use kaos_policy::contract::Truth;
use serde_json::Value;

use super::conditions::{APPLIED, Condition, RECONCILING, RESOLVED, STALLED, written};

/// Returns whether a type of condition is `Reconciling` or `Stalled`. Only the host sets these two conditions.
pub(super) fn is_progress(of: &str) -> bool {
    of == RECONCILING || of == STALLED
}

/// Returns the condition `Reconciling` or `Stalled` for an object with the other conditions `common`. Returns `None` if
/// neither of the two applies.
///
/// An object that serves does not wait for a missing dependency. So this function also returns `None` if only the
/// condition `Resolved` is not true.
pub(super) fn progress(common: &[Condition], generation: i64) -> Option<Value> {
    let is_open = |condition: &&Condition| condition.status != Truth::Yes;
    if !common.iter().any(|condition| is_open(&condition) && condition.of != RESOLVED) {
        return None;
    }
    let is_applied = common.iter().any(|condition| condition.of == APPLIED && condition.status == Truth::Yes);
    let stalls = |condition: &&Condition| condition.is_lasting && !(is_applied && condition.of == RESOLVED);
    // Prefer the last condition that needs a person, because later conditions are more specific.
    let stalled = common.iter().rev().filter(is_open).find(stalls);
    let why = stalled.or_else(|| common.iter().find(is_open))?;
    Some(one(&why.reason, &why.message, stalled.is_some(), generation))
}

/// Returns the condition for this reason: `Stalled` if the reason is lasting, otherwise `Reconciling`.
pub(super) fn one(reason: &str, message: &str, is_lasting: bool, generation: i64) -> Value {
    let of = if is_lasting { STALLED } else { RECONCILING };
    written(of, Truth::Yes, reason, message, generation)
}

#[cfg(test)]
mod tests {
    use super::{
        super::conditions::{ACCEPTED, READY},
        *,
    };

    /// Returns a condition with this reason. The first character of `told` is the status of the condition: `+` means
    /// true, `-` means false, and `!` means false until a person acts.
    fn condition(of: &'static str, told: &str) -> Condition {
        let (sign, reason) = told.split_at(1);
        let status = if sign == "+" { Truth::Yes } else { Truth::No };
        Condition { of, status, reason: reason.to_owned().into(), message: String::new(), is_lasting: sign == "!" }
    }

    fn told([accepted, resolved, applied, ready]: [&str; 4]) -> String {
        let common = [(ACCEPTED, accepted), (RESOLVED, resolved), (APPLIED, applied), (READY, ready)];
        let common = common.map(|(of, told)| condition(of, told));
        progress(&common, 3).map_or_else(String::new, |it| {
            assert_eq!((&it["status"], &it["observedGeneration"]), (&"True".into(), &3.into()));
            format!("{} {}", it["type"].as_str().unwrap_or_default(), it["reason"].as_str().unwrap_or_default())
        })
    }

    #[test]
    fn an_object_that_serves_as_planned_has_neither_condition() {
        assert_eq!(told(["+Accepted", "+Resolved", "+Applied", "+Ready"]), "");
        assert_eq!(told(["+Accepted", "-NotFound", "+Applied", "+Ready"]), "", "a lost dependency delays nothing");
        assert_eq!(told(["+Accepted", "!NotPermitted", "+Applied", "+Ready"]), "");
    }

    #[test]
    fn an_object_that_waits_or_progresses_is_reconciling_for_the_first_reason() {
        let reconciling = [
            (["+Accepted", "+Resolved", "+Applied", "-Progressing"], "Progressing"),
            (["+Accepted", "+Resolved", "-Gated", "-Gated"], "Gated"),
            (["-Waiting", "-NotFound", "-Refused", "-Refused"], "Waiting"),
            (["+Accepted", "-NotFound", "-Gated", "-Gated"], "NotFound"),
            (["+Accepted", "+Resolved", "-ApplyFailed", "+Ready"], "ApplyFailed"),
            (["+Accepted", "!NotPermitted", "+Applied", "-Progressing"], "NotPermitted"),
        ];
        for (conditions, reason) in reconciling {
            assert_eq!(told(conditions), format!("Reconciling {reason}"), "{conditions:?}");
        }
    }

    #[test]
    fn an_object_that_needs_a_person_is_stalled_for_the_most_specific_reason() {
        let stalled = [
            (["!InvalidSpec", "+Resolved", "-Refused", "-Refused"], "InvalidSpec"),
            (["!InvalidSpec", "-NotFound", "-Refused", "-Refused"], "InvalidSpec"),
            (["!PolicyFailed", "+Resolved", "!GuardRefused", "-Unavailable"], "GuardRefused"),
            (["+Accepted", "+Resolved", "!OwnershipConflict", "+Ready"], "OwnershipConflict"),
            (["-Waiting", "!NotPermitted", "-Refused", "-Refused"], "NotPermitted"),
            (["+Accepted", "+Resolved", "+Applied", "!Unavailable"], "Unavailable"),
        ];
        for (conditions, reason) in stalled {
            assert_eq!(told(conditions), format!("Stalled {reason}"), "{conditions:?}");
        }
    }
}
