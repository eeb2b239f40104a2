//! The format of a case: one decision of the policies about one object, as one JSON document.

use k8s_openapi::ByteString;
use kaos_policy::{
    contract::{Child, Outcome, Reference},
    digest::{Digest, canonical},
    gate::CodeForm,
    render::{DecisionId, PassInputs},
    settings::Origin,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CaseAnswer;

/// The format of the cases that this program writes and reads.
pub const FORMAT: &str = "kaos-case/1";

/// One decision of the policies about one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// The format and its version: [`FORMAT`].
    pub format: String,
    /// The id of the decision.
    pub decision: DecisionId,
    /// The object.
    pub object: Reference,
    /// The time of the pass.
    pub at: String,
    /// Why the case was kept.
    pub why: Why,
    /// The versions of the program that made the pass.
    pub operator: Versions,
    /// The origin of each layer's code, in the order of the layers of `inputs`.
    pub policies: Vec<PolicySource>,
    /// The inputs of the pass.
    pub inputs: PassInputs,
    /// The answer of the pass.
    pub answer: CaseAnswer,
    /// The outcome and the live children for which a policy's function `assess` failed. The field `answer` then has
    /// this failure and its fuel. `None` if the case records the answer of a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessed: Option<ObservedChildren>,
    /// The newer revisions that failed on the object or refused it, the newest first. If there are any, a fallback gave
    /// the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
    /// The masked values; `None` if the case contains no secret value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<Masked>,
    /// Why the case cannot be replayed; `None` if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Why a case was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Why {
    /// A policy failed.
    Failure,
    /// A policy refused the object.
    Refusal,
    /// A fallback answered.
    Fallback,
    /// The object had no plan before, or had another plan.
    Change,
    /// None of the other reasons applies. The operator keeps only some of these decisions.
    Routine,
    /// A user ran a command to record the decision about the object.
    Requested,
}

/// The versions of the program that made a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of kaos-operator.
    pub version: String,
    /// The version of the contract.
    pub contract: String,
}

/// The origin of the code of one layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySource {
    /// The digest of the component or of the script.
    pub digest: Digest,
    /// A text for people that says where the code comes from.
    pub from: String,
    /// The PolicyRevision of the policy; `None` for a policy that the operator had at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The origin of the settings in the policy's own package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Origin>,
    /// The digest of the script engine; `None` for a component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_engine: Option<Digest>,
    /// The form of the code.
    pub form: CodeForm,
    /// The code itself, in base64. A case has the code only if it was recorded with `--with-policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ByteString>,
}

/// The outcome of a pass and the live children, as a policy gets them to compute the status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedChildren {
    /// The outcome of the pass.
    pub outcome: Outcome,
    /// The live object of each child; `None` for a child that does not exist.
    pub children: Vec<(Reference, Option<Value>)>,
}

/// A revision whose failure or refusal led to a fallback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassedOver {
    /// The name of the PolicyRevision.
    pub revision: String,
    /// The failure or the refusal.
    pub how: String,
}

/// The masked values of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Masked {
    /// The number of masked values.
    pub values: usize,
    /// The paths of the first masked values.
    pub paths: Vec<String>,
    /// The effect of the masks on the answer.
    pub effect: MaskEffect,
}

/// The effect of masks on an answer. Except for `Unknown`, the case contains the answer to the masked inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MaskEffect {
    /// The masked inputs give the same answer with the same fuel.
    Nothing,
    /// The masked inputs give the same answer with other fuel.
    Fuel {
        /// The fuel of the pass in the operator.
        before: u64,
    },
    /// The masked inputs give another answer.
    Answer {
        /// The fuel of the pass in the operator.
        before: u64,
        /// The difference.
        what: String,
    },
    /// The masking program did not have the policies, so the case contains the answer to the inputs before masking.
    Unknown,
}

/// A reason why a text is not a case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The text is not a case.
    #[error("is not a case: {0}")]
    NotACase(String),
    /// The case has a format that this program does not know.
    #[error("has the format {0}, but this program reads {FORMAT}: use a newer kaos-operator")]
    OtherFormat(String),
}

impl ObservedChildren {
    /// Stores the outcome and the children, with parsed JSON.
    pub fn new(outcome: Outcome, children: &[Child]) -> Self {
        let parsed = |text: &String| serde_json::from_str(text).unwrap_or_default();
        let child = |Child { identity, live }: &Child| (identity.clone(), live.as_ref().map(parsed));
        Self { outcome, children: children.iter().map(child).collect() }
    }

    /// Returns the children in the form that policies receive.
    pub fn children(&self) -> Vec<Child> {
        let child = |(identity, live): &(Reference, Option<Value>)| Child {
            identity: identity.clone(),
            live: live.as_ref().map(canonical),
        };
        self.children.iter().map(child).collect()
    }
}

impl Versions {
    /// Returns the versions of this program.
    pub fn of_this_program() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), contract: kaos_policy::contract::VERSION.to_owned() }
    }
}

impl Case {
    /// Parses a case.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        #[derive(Deserialize)]
        struct OnlyFormat {
            format: String,
        }
        let wrong = |error: serde_json::Error| CaseError::NotACase(error.to_string());
        match serde_json::from_str::<Self>(text) {
            Ok(case) if case.format == FORMAT => Ok(case),
            Ok(case) => Err(CaseError::OtherFormat(case.format)),
            Err(error) => {
                let OnlyFormat { format } = serde_json::from_str(text).map_err(wrong)?;
                Err(if format == FORMAT { wrong(error) } else { CaseError::OtherFormat(format) })
            }
        }
    }
}
