//! The result for one object on one side of a comparison: before or after a change.

use kaos_policy::{
    policy::PolicyId,
    render::{Refused, Rendered, Verdict},
};
use serde::Serialize;

/// The answer of the policies for one object, before or after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The policy that answered.
    pub policy: PolicyId,
    /// The overlays that apply on top of this policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<PolicyId>,
    /// The fuel of the pass.
    pub fuel: u64,
    /// The answer.
    #[serde(flatten)]
    pub said: Said,
}

/// The answer of the policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "said", content = "because")]
pub enum Said {
    /// A plan.
    Planned,
    /// A refusal: its reason, and a message for each problem.
    Refused(String, Vec<String>),
    /// A failure of a policy.
    Failed(String),
}

impl Side {
    /// Returns the result of a pass.
    pub fn of(rendered: &Rendered) -> Self {
        let said = match &rendered.verdict {
            Verdict::Planned(_) => Said::Planned,
            Verdict::Refused(refusal) => {
                let Refused { reason, messages } = Refused::of(refusal);
                Said::Refused(reason.to_owned(), messages.iter().map(ToString::to_string).collect())
            }
            Verdict::Failed(failure) => Said::Failed(failure.to_string()),
        };
        Self { policy: rendered.policy.clone(), overlays: rendered.overlays.clone(), fuel: rendered.fuel, said }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Planned => f.write_str("planned"),
            Self::Refused(reason, messages) => write!(f, "{reason}: {}", messages.join("; ")),
            Self::Failed(message) => write!(f, "failed: {message}"),
        }
    }
}
