//! Computes the conditions and the observed generation of a PolicyRevision from its state. From these fields, tools
//! such as Flux and kpt decide whether to wait for a revision or to give up. At most one of the conditions
//! `Reconciling` and `Stalled` is present, and its status is `True`.

use kaos_crds::{Condition, PolicyRevisionStatus, PolicyRollout, RevisionState};

use crate::status::conditions::{RECONCILING, STALLED};

/// The status reason of an active or yielding revision that does not answer, because the operator cannot load it.
pub(crate) const NOT_LOADED: &str = "NotLoaded";

/// The status reason of a package that waits for the end of another rollout.
pub(crate) const ANOTHER_ROLLOUT: &str = "AnotherRollout";

/// The status reason of a revision whose rollout is paused.
pub(crate) const ROLLOUT_PAUSED: &str = "RolloutPaused";

/// Why a rollout is impossible with an old definition of PolicyRevision.
pub(crate) const OLD_DEFINITION: &str = "the definition of PolicyRevision in the cluster is older than the operator, so \
    the operator cannot record a rollout: apply the operator's definitions";

/// The reason of a rollout that pauses or cannot begin, because the revision that served before cannot be loaded.
pub(super) const PREDECESSOR_MISSING: &str = "PredecessorMissing";

/// The reason of a pause by a person.
pub(super) const PAUSED_BY_PERSON: &str = "PausedByPerson";

/// The reason of a pause because there are no other objects with which the operator could compare the harmed objects.
pub(super) const NOTHING_TO_COMPARE: &str = "NothingToCompare";

/// The reason of a pause because the users of the harmed objects can have caused the harm.
pub(super) const FEW_HARMED: &str = "FewHarmed";

/// The reasons for pauses that usually last until a person acts.
///
/// The operator also ends these pauses when the reason is gone. All other pauses are expected to end by themselves.
const ASKS_FOR_PERSON: [&str; 4] = [PAUSED_BY_PERSON, PREDECESSOR_MISSING, FEW_HARMED, NOTHING_TO_COMPARE];

/// Adds the conditions and the observed generation to a status. Keeps the time of a condition that does not change.
pub(super) fn observed(mut status: PolicyRevisionStatus, generation: i64) -> PolicyRevisionStatus {
    let before = std::mem::take(&mut status.conditions);
    status.observed_generation = Some(generation);
    status.conditions = of_state(&status).into_iter().map(|of| condition(of, &status, &before, generation)).collect();
    status
}

/// The fields that the definition of PolicyRevision in the cluster has. The definition can be older than the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    Current,
    /// The definition has no field for used-up budgets.
    WithoutBudgets,
    /// The definition also has no field for rollouts, and no state `Yielding`.
    WithoutRollouts,
    /// The definition also has no fields for effects and approvals, and no states for them.
    WithoutPreviews,
    /// The definition also has no field for conditions.
    WithoutConditions,
}

impl Definition {
    /// Returns the next older definition, or `None` if there is none.
    pub(super) fn older(self) -> Option<Self> {
        match self {
            Self::Current => Some(Self::WithoutBudgets),
            Self::WithoutBudgets => Some(Self::WithoutRollouts),
            Self::WithoutRollouts => Some(Self::WithoutPreviews),
            Self::WithoutPreviews => Some(Self::WithoutConditions),
            Self::WithoutConditions => None,
        }
    }

    pub(super) fn has_rollouts(self) -> bool {
        matches!(self, Self::Current | Self::WithoutBudgets)
    }

    /// Returns the status without the fields and states that this definition lacks. If the definition has no fields for
    /// effects, the next process computes the effect of the revision again.
    pub(super) fn allowed(self, status: &PolicyRevisionStatus) -> PolicyRevisionStatus {
        let mut allowed = status.clone();
        if self == Self::Current {
            return allowed;
        }
        allowed.namespaces_over_budget = Vec::new();
        if self == Self::WithoutBudgets {
            return allowed;
        }
        allowed.rollout = None;
        if status.state == RevisionState::Yielding {
            allowed.state = RevisionState::Superseded;
        }
        if self == Self::WithoutRollouts {
            return allowed;
        }
        (allowed.preview, allowed.limits_digest, allowed.approved, allowed.returned_from) = (None, None, None, None);
        if matches!(status.state, RevisionState::Previewing | RevisionState::Held) {
            allowed.state = RevisionState::Pending;
        }
        if self == Self::WithoutConditions {
            (allowed.observed_generation, allowed.conditions) = (None, Vec::new());
        }
        allowed
    }
}

/// Returns whether the API server refuses a status because the definition of PolicyRevision does not know its state.
pub(super) fn is_unknown_state(message: &str) -> bool {
    message.contains("status.state") && message.contains("Unsupported value")
}

/// Returns the type of the condition that a revision with this status has. Returns `None` if such a revision has no
/// condition.
fn of_state(status: &PolicyRevisionStatus) -> Option<&'static str> {
    match status.state {
        RevisionState::Pending | RevisionState::Checking | RevisionState::Previewing => Some(RECONCILING),
        RevisionState::Active => match status.open_rollout() {
            _ if status.reason.as_deref() == Some(NOT_LOADED) => Some(STALLED),
            None => None,
            // This pause usually lasts until a person acts. `Stalled` tells tools such as Flux that they must not wait
            // any longer.
            Some(PolicyRollout { paused: Some(paused), .. }) if ASKS_FOR_PERSON.contains(&&*paused.reason) => {
                Some(STALLED)
            }
            Some(_) => Some(RECONCILING),
        },
        RevisionState::Yielding | RevisionState::Superseded => None,
        RevisionState::Held
        | RevisionState::Refused
        | RevisionState::NotPermitted
        | RevisionState::Conflict
        | RevisionState::Quarantined => Some(STALLED),
    }
}

fn condition(of: &str, status: &PolicyRevisionStatus, before: &[Condition], generation: i64) -> Condition {
    let known = before.iter().find(|condition| condition.type_ == of);
    Condition {
        type_: of.to_owned(),
        status: "True".to_owned(),
        reason: status.reason.clone().unwrap_or_else(|| status.state.name().to_owned()),
        message: status.message.clone().unwrap_or_default(),
        last_transition_time: known.and_then(|it| it.last_transition_time.clone()).or_else(|| status.since.clone()),
        observed_generation: Some(generation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_state(state: RevisionState, reason: Option<&str>) -> PolicyRevisionStatus {
        PolicyRevisionStatus { state, reason: reason.map(str::to_owned), ..PolicyRevisionStatus::default() }
    }

    #[test]
    fn every_state_has_the_condition_that_tools_understand() {
        let told = RevisionState::ALL.map(|state| {
            let status = observed(in_state(state, None), 1);
            assert_eq!(status.observed_generation, Some(1));
            (state.name(), status.conditions.first().map_or("", |it| &it.type_).to_owned())
        });
        let told: Vec<(&str, &str)> = told.iter().map(|(state, of)| (*state, of.as_str())).collect();
        let wanted = [
            ("Pending", RECONCILING),
            ("Checking", RECONCILING),
            ("Previewing", RECONCILING),
            ("Held", STALLED),
            ("Active", ""),
            ("Yielding", ""),
            ("Superseded", ""),
            ("Refused", STALLED),
            ("NotPermitted", STALLED),
            ("Conflict", STALLED),
            ("Quarantined", STALLED),
        ];
        assert_eq!(told, wanted);
        let unloaded = observed(in_state(RevisionState::Active, Some(NOT_LOADED)), 1);
        assert_eq!(
            (unloaded.conditions[0].type_.as_str(), unloaded.conditions[0].reason.as_str()),
            (STALLED, NOT_LOADED)
        );
    }

    #[test]
    fn a_paused_rollout_is_stalled_only_if_a_person_must_act() {
        let paused = |reason: &str| {
            let paused = kaos_crds::PolicyRolloutPause { reason: reason.to_owned(), ..Default::default() };
            let rollout = PolicyRollout { paused: Some(paused), ..PolicyRollout::default() };
            let active = in_state(RevisionState::Active, Some(ROLLOUT_PAUSED));
            observed(PolicyRevisionStatus { rollout: Some(rollout), ..active }, 1).conditions[0].type_.clone()
        };
        for reason in
            ["SlowToStart", "ClusterTrouble", "NothingWasReady", "TooFewReady", "PassesMissing", "PodsMissing"]
        {
            assert_eq!(paused(reason), RECONCILING, "{reason}");
        }
        for reason in ASKS_FOR_PERSON {
            assert_eq!(paused(reason), STALLED, "{reason}");
        }
    }

    #[test]
    fn an_older_definition_gets_only_the_fields_and_states_that_it_has() {
        let held = observed(
            PolicyRevisionStatus {
                limits_digest: Some("sha256:1".to_owned()),
                preview: Some(kaos_crds::PolicyPreview::default()),
                ..in_state(RevisionState::Held, Some("WouldRefuse"))
            },
            1,
        );
        assert_eq!(Definition::Current.allowed(&held), held);
        let yielding = PolicyRevisionStatus {
            namespaces_over_budget: vec!["team-a".to_owned()],
            rollout: Some(PolicyRollout::default()),
            ..in_state(RevisionState::Yielding, None)
        };
        let without_budgets = Definition::WithoutBudgets.allowed(&yielding);
        assert_eq!(without_budgets, PolicyRevisionStatus { namespaces_over_budget: Vec::new(), ..yielding });
        let older = Definition::WithoutPreviews.allowed(&held);
        assert_eq!((older.state, &older.preview, &older.limits_digest), (RevisionState::Pending, &None, &None));
        assert_eq!(older.conditions, held.conditions);
        let oldest = Definition::WithoutConditions.allowed(&held);
        assert_eq!((oldest.conditions.len(), oldest.observed_generation), (0, None));
        assert!(is_unknown_state("status.state: Unsupported value: \"Held\": supported values: \"Pending\""));
        assert!(!is_unknown_state("status.kinds: Invalid value"));
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time_and_a_new_one_begins_with_the_state() {
        let at = |since: &str, status: PolicyRevisionStatus| PolicyRevisionStatus {
            since: Some(since.to_owned()),
            ..status
        };
        let time =
            |status: &PolicyRevisionStatus| status.conditions[0].last_transition_time.clone().unwrap_or_default();
        let pending = observed(at("t1", in_state(RevisionState::Pending, None)), 1);
        let checking = observed(PolicyRevisionStatus { state: RevisionState::Checking, ..at("t2", pending) }, 1);
        assert_eq!(time(&checking), "t1");
        assert_eq!(observed(checking.clone(), 1), checking, "a second time changes nothing");
        let refused = observed(PolicyRevisionStatus { state: RevisionState::Refused, ..at("t3", checking) }, 1);
        assert_eq!((time(&refused).as_str(), refused.conditions.len()), ("t3", 1));
    }
}
