//! The answer of a pass in the form of a case, with its digest.

use kaos_policy::{
    contract::Refusal,
    digest::Digest,
    policy::PolicyId,
    render::{Planned, Refused, Rendered, Verdict},
};
use serde::{Deserialize, Serialize};

use crate::plan::{AnsweredSide, Said, Side};

/// The answer of a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseAnswer {
    /// The digest of the verdict.
    pub digest: Digest,
    /// The fuel of all layers together.
    pub fuel: u64,
    /// The verdict.
    pub verdict: CaseVerdict,
}

/// The verdict of a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CaseVerdict {
    /// The plan.
    Planned(Box<Planned>),
    /// The refusal.
    Refused(Refusal),
    /// The failure.
    Failed(CaseFailure),
}

/// A failure of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseFailure {
    /// The policy that failed.
    pub policy: PolicyId,
    /// The category of the failure, such as `Trap`.
    pub category: String,
    /// The message.
    pub message: String,
}

impl CaseVerdict {
    /// Returns the verdict of a pass.
    pub fn of(rendered: &Rendered) -> Self {
        match &rendered.verdict {
            Verdict::Planned(planned) => Self::Planned(Box::new((**planned).clone())),
            Verdict::Refused(refusal) => Self::Refused(refusal.clone()),
            Verdict::Failed(failure) => Self::Failed(CaseFailure {
                policy: failure.policy.clone(),
                category: failure.failure.category().to_owned(),
                message: failure.to_string(),
            }),
        }
    }

    /// Returns the verdict in one or two words.
    pub fn word(&self) -> String {
        match self {
            Self::Planned(planned) => format!("plan of {}", children(planned.manifests.len())),
            Self::Refused(refusal) => format!("refused: {}", refusal.reason()),
            Self::Failed(failure) => format!("failed: {}", failure.category),
        }
    }

    /// Returns the verdict in the form of `policy plan`.
    pub fn said(&self) -> Said {
        match self {
            Self::Planned(_) => Said::Planned,
            Self::Refused(refusal) => {
                let Refused { reason, messages } = Refused::of(refusal);
                Said::Refused(reason.to_owned(), messages.iter().map(ToString::to_string).collect())
            }
            Self::Failed(failure) => Said::Failed(failure.message.clone()),
        }
    }
}

fn children(many: usize) -> String {
    if many == 1 { "1 child".to_owned() } else { format!("{many} children") }
}

impl CaseAnswer {
    /// Returns a verdict with its digest.
    pub fn new(verdict: CaseVerdict, fuel: u64) -> Self {
        // The serialization never fails, because all keys are texts.
        let value = serde_json::to_value(&verdict).unwrap_or_default();
        Self { digest: Digest::of_json(&value), fuel, verdict }
    }

    /// Returns the answer as one side of a comparison. `policies` are the policy and its overlays.
    pub(super) fn side<'a>(&'a self, policies: impl IntoIterator<Item = &'a PolicyId>) -> Option<AnsweredSide<'a>> {
        let mut policies = policies.into_iter().cloned();
        let side =
            Side { policy: policies.next()?, overlays: policies.collect(), fuel: self.fuel, said: self.verdict.said() };
        let manifests = match &self.verdict {
            CaseVerdict::Planned(planned) => Some(planned.manifests.as_slice()),
            CaseVerdict::Refused(_) | CaseVerdict::Failed(_) => None,
        };
        Some(AnsweredSide { side, manifests, needs: &[] })
    }
}
