//! The requests of persons about a rollout: annotations of the PolicyRevision. The chart's admission policy makes sure
//! that the user has the right to approve, and that the name is their own.

use kaos_crds::PolicyRollout;

use crate::catalogue::installed::records::{ROLLOUT, ROLLOUT_BY, ROLLOUT_FOR, Revision};

/// A request by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Pause,
    /// Ends a pause. If the operator paused the rollout, the rollout goes on although the evidence does not suffice.
    Resume,
    /// Moves all objects, and ends the rollout.
    Promote,
    /// Returns all objects to the revision that served before.
    Return,
}

impl Verb {
    /// All requests.
    const ALL: [Self; 4] = [Self::Pause, Self::Resume, Self::Promote, Self::Return];

    /// Returns the text of the request in the annotation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Promote => "promote",
            Self::Return => "return",
        }
    }
}

/// The request of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RolloutRequest {
    pub(super) verb: Verb,
    pub(super) by: String,
}

/// Returns the text that names the next request about a rollout. An annotation with another text is an old request, and
/// has no effect.
pub(crate) fn next_request(rollout: &PolicyRollout) -> String {
    format!("{}/{}", rollout.started, rollout.requests.saturating_add(1))
}

/// Returns the request that the operator has not handled yet.
pub(super) fn request(revision: &Revision, rollout: &PolicyRollout) -> Option<RolloutRequest> {
    let annotations = revision.metadata.annotations.as_ref()?;
    let text = |of: &str| annotations.get(of).map(|text| text.trim());
    let by = text(ROLLOUT_BY).filter(|by| !by.is_empty())?.to_owned();
    let verb = Verb::ALL.into_iter().find(|verb| text(ROLLOUT) == Some(verb.name()))?;
    (text(ROLLOUT_FOR)? == next_request(rollout)).then_some(RolloutRequest { verb, by })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kaos_crds::PolicyRevisionSpec;

    use super::*;
    use crate::catalogue::installed::records::revision_resource;

    #[test]
    fn a_request_counts_once_and_only_for_the_rollout_that_the_person_saw() {
        let rollout = |started: &str, requests| PolicyRollout {
            started: started.to_owned(),
            requests,
            ..PolicyRollout::default()
        };
        let mut revision = Revision::new("r", &revision_resource(), PolicyRevisionSpec::default());
        assert_eq!(request(&revision, &rollout("t1", 0)), None);
        let mut annotate = |verb: &str, by: &str, of: &str| {
            let all = [(ROLLOUT, verb), (ROLLOUT_BY, by), (ROLLOUT_FOR, of)];
            let all: BTreeMap<_, _> = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            revision.metadata.annotations = Some(all);
            revision.clone()
        };
        let first = next_request(&rollout("t1", 0));
        let pause = annotate("pause", "alice", &first);
        let wanted = RolloutRequest { verb: Verb::Pause, by: "alice".to_owned() };
        assert_eq!(request(&pause, &rollout("t1", 0)), Some(wanted));
        assert_eq!(request(&pause, &rollout("t1", 1)), None, "the operator has handled it");
        assert_eq!(request(&pause, &rollout("t2", 0)), None, "it was about an earlier rollout");
        assert_eq!(request(&annotate("stop", "alice", &first), &rollout("t1", 0)), None);
        assert_eq!(request(&annotate("pause", " ", &first), &rollout("t1", 0)), None);
    }
}
