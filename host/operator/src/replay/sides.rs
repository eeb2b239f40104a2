//! Recorded answers in the form of `policy plan`.

use kaos_policy::{policy::PolicyId, render::Refused};

use crate::{
    plan::{AnsweredSide, Said, Side},
    record::{CaseAnswer, CaseVerdict},
};

/// Returns a verdict in the form of `policy plan`.
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

/// Returns an answer as one side of a comparison. `policies` are the policy and its overlays.
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
