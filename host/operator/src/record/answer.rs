//! The answer of a pass in the form of a case, with its digest.

use kaos_policy::{
    contract::Refusal,
    digest::Digest,
    policy::PolicyId,
    render::{Planned, PolicyFailure, Rendered, Verdict},
};
use serde::{Deserialize, Serialize};

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
    /// Returns the verdict for the answer of a pass.
    pub fn of(rendered: &Rendered) -> Self {
        match &rendered.verdict {
            Verdict::Planned(planned) => Self::Planned(Box::new((**planned).clone())),
            Verdict::Refused(refusal) => Self::Refused(refusal.clone()),
            Verdict::Failed(failure) => Self::failed(failure),
        }
    }

    /// Returns the verdict for a failure of a policy.
    pub fn failed(failure: &PolicyFailure) -> Self {
        let (policy, category) = (failure.policy.clone(), failure.failure.category().to_owned());
        Self::Failed(CaseFailure { policy, category, message: failure.to_string() })
    }

    /// Returns a short text for the verdict, such as `failed: Trap`.
    pub fn word(&self) -> String {
        match self {
            Self::Planned(planned) => format!("plan of {}", children(planned.manifests.len())),
            Self::Refused(refusal) => format!("refused: {}", refusal.reason()),
            Self::Failed(failure) => format!("failed: {}", failure.category),
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
}
