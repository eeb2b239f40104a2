//! Converts recorded answers for the comparison of plans ([`crate::plan`]).

use kaos_policy::{policy::PolicyId, render::Refused};

use crate::{
    plan::{AnsweredSide, Said, Side},
    record::{CaseAnswer, CaseVerdict},
};

/// Converts a recorded verdict for the comparison.
pub(super) fn said(verdict: &CaseVerdict) -> Said {
    match verdict {
        CaseVerdict::Planned(_) => Said::Planned,
        CaseVerdict::Refused(refusal) => {
            let Refused { reason, messages } = Refused::of(refusal);
            Said::Refused(reason.to_owned(), messages.iter().map(ToString::to_string).collect())
        }
        CaseVerdict::Failed(failure) => Said::Failed(failure.message.clone()),
    }
}

/// Converts a recorded answer into one side of a comparison. `policies` names the policy, then its overlays.
pub(super) fn side<'a>(
    answer: &'a CaseAnswer,
    policies: impl IntoIterator<Item = &'a PolicyId>,
) -> Option<AnsweredSide<'a>> {
    let mut policies = policies.into_iter().cloned();
    let (fuel, said) = (answer.fuel, said(&answer.verdict));
    let side = Side { policy: policies.next()?, overlays: policies.collect(), fuel, said };
    let manifests = match &answer.verdict {
        CaseVerdict::Planned(planned) => Some(planned.manifests.as_slice()),
        CaseVerdict::Refused(_) | CaseVerdict::Failed(_) => None,
    };
    Some(AnsweredSide { side, manifests, needs: &[], rendered: None })
}
