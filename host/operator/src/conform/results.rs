//! The results of all checks.

use std::collections::BTreeMap;

use kaos_policy::{
    contract::{Refusal, ResourceType},
    policy::PolicyId,
};
use serde::Serialize;
use serde_json::Value;

use super::spread::Spread;

/// A property that the checks test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// The policy passes the gate.
    Gate,
    /// Each object ends in a plan, or in a refusal that helps the user.
    Answers,
    /// Two sandboxes give the same answer, and use the same fuel.
    Determinism,
    /// A pass after the apply plans the same children.
    Idempotence,
    /// Each declared setting has an effect.
    Settings,
    /// The containers have all variables of the mapping.
    Variables,
    /// The manifests are valid for Kubernetes.
    Manifests,
    /// No pass uses almost all of its fuel.
    Fuel,
}

impl Property {
    /// All properties, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Gate,
        Self::Answers,
        Self::Determinism,
        Self::Idempotence,
        Self::Settings,
        Self::Variables,
        Self::Manifests,
        Self::Fuel,
    ];

    /// The name of the check.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Answers => "answers",
            Self::Determinism => "determinism",
            Self::Idempotence => "idempotence",
            Self::Settings => "settings",
            Self::Variables => "variables",
            Self::Manifests => "manifests",
            Self::Fuel => "fuel",
        }
    }
}

/// How the first pass over an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// A plan.
    Planned,
    /// The policy refuses the object as invalid.
    Invalid,
    /// The policy waits for another object.
    Waiting,
    /// The policy does not support the object.
    Unsupported,
    /// The policy failed.
    Failed,
}

impl End {
    pub(super) fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Invalid(_) => Self::Invalid,
            Refusal::Waiting(_) => Self::Waiting,
            Refusal::Unsupported(_) => Self::Unsupported,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Invalid => "refused as invalid",
            Self::Waiting => "waiting",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
        }
    }
}

/// A frequent reason why the policy refused objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrequentRefusal {
    /// How the passes ended: the kind of refusal.
    pub end: End,
    /// The field or the object that the refusal names, without the positions of list items and the names of objects.
    pub about: String,
    /// The message of the first of these refusals.
    pub message: String,
    /// The number of objects.
    pub objects: u64,
}

/// A claimed kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedKind {
    /// The kind.
    #[serde(flatten)]
    pub of: ResourceType,
    /// Whether the kind's schema is known. If the schema is unknown, the random objects only change values of the
    /// samples.
    pub has_schema: bool,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// The check found no problem.
    Passed,
    /// The check found a problem.
    Failed,
    /// The check did not run.
    Skipped,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckResult {
    /// The check.
    #[serde(rename = "check")]
    pub property: Property,
    /// The outcome.
    #[serde(rename = "result")]
    pub outcome: CheckOutcome,
    /// The finding, as a text for people.
    pub found: String,
    /// The number of objects for which the check failed.
    pub failures: u64,
    /// The smallest object for which the check fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Counterexample>,
}

impl CheckResult {
    pub(super) fn passed(property: Property, found: String) -> Self {
        Self { property, outcome: CheckOutcome::Passed, found, failures: 0, counterexample: None }
    }

    pub(super) fn skipped(property: Property, why: &str) -> Self {
        Self { property, outcome: CheckOutcome::Skipped, found: why.to_owned(), failures: 0, counterexample: None }
    }

    pub(super) fn failed(
        property: Property,
        found: String,
        failures: u64,
        counterexample: Option<Counterexample>,
    ) -> Self {
        Self { property, outcome: CheckOutcome::Failed, found, failures, counterexample }
    }
}

/// An object for which a check fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counterexample {
    /// The number of the original object. The check removed fields of the original object to get the field `object`.
    pub number: u64,
    /// The name of the original object.
    pub case: String,
    /// The problem.
    pub message: String,
    /// The object.
    pub object: Value,
    /// The other objects in the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Value>,
    /// The settings with which the check fails; `None` for the usual settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
}

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The policy; `None` if the gate did not get its description.
    pub policy: Option<PolicyId>,
    /// The seed of the random objects.
    pub seed: u64,
    /// The number of checked objects.
    pub objects: u64,
    /// The number of objects for each end of a pass.
    pub ends: BTreeMap<End, u64>,
    /// The most frequent reasons why the policy refused objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<FrequentRefusal>,
    /// The claimed kinds.
    pub kinds: Vec<ClaimedKind>,
    /// The kinds of children whose fields neither Kubernetes nor a known CRD defines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<ResourceType>,
    /// Violations of the kinds' schemas in samples and in objects from files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The result of each check.
    #[serde(rename = "checks")]
    pub results: Vec<CheckResult>,
    /// The fuel of the passes that ended in a plan or a refusal.
    pub fuel: Option<Spread>,
    /// The limit for the fuel of a pass; `None` if the policy did not pass the gate.
    pub fuel_limit: Option<u64>,
}

impl Findings {
    /// Returns the report for a policy that did not pass the gate.
    pub fn of_gate(policy: Option<PolicyId>, seed: u64, error: &str) -> Self {
        let result = |property| match property {
            Property::Gate => CheckResult::failed(property, error.to_owned(), 1, None),
            _ => CheckResult::skipped(property, "the policy did not pass the gate"),
        };
        Self {
            policy,
            seed,
            objects: 0,
            ends: BTreeMap::new(),
            refusals: Vec::new(),
            kinds: Vec::new(),
            unchecked: Vec::new(),
            warnings: Vec::new(),
            results: Property::ALL.map(result).to_vec(),
            fuel: None,
            fuel_limit: None,
        }
    }

    /// Returns the failed checks.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| result.outcome == CheckOutcome::Failed)
    }

    /// Returns the number of objects for each end of a pass, as a text for people.
    pub fn ends_as_text(&self) -> String {
        let ends = self.ends.iter().map(|(end, count)| format!("{count} {}", end.text()));
        ends.collect::<Vec<_>>().join(", ")
    }
}
