//! The label sets of the metrics. Each field of a label set becomes a label with the field's name.

use kaos_policy::{contract::ResourceType, policy::PolicyId};
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TypeLabels {
    group: String,
    kind: String,
}

impl From<&ResourceType> for TypeLabels {
    fn from(of: &ResourceType) -> Self {
        Self { group: of.group().to_owned(), kind: of.kind.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PassLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SpendingLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    /// The namespace of the objects. The label's name is not `namespace`, because scrapers add a label `namespace` with
    /// the namespace of the operator.
    pub(super) object_namespace: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ObjectsLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    pub(super) ready: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UnservedLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchStateLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    pub(super) state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchErrorLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    pub(super) reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(super) struct PolicyLabels {
    policy: String,
    version: String,
}

impl PolicyLabels {
    /// The labels that policies share if too many policies have samples. No policy has this name, because names of
    /// policies contain no parentheses.
    pub(super) fn of_others() -> Self {
        Self { policy: "(others)".to_owned(), version: String::new() }
    }
}

impl From<&PolicyId> for PolicyLabels {
    fn from(id: &PolicyId) -> Self {
        Self { policy: id.name.clone(), version: id.version.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ActiveLabels {
    #[prometheus(flatten)]
    pub(super) of: TypeLabels,
    #[prometheus(flatten)]
    pub(super) policy: PolicyLabels,
    pub(super) digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PolicyFailureLabels {
    #[prometheus(flatten)]
    pub(super) policy: PolicyLabels,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PolicyCallLabels {
    #[prometheus(flatten)]
    pub(super) policy: PolicyLabels,
    pub(super) verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct AnswerLabels {
    #[prometheus(flatten)]
    pub(super) policy: PolicyLabels,
    pub(super) remembered: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiCallLabels {
    pub(super) verb: &'static str,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RevisionStateLabels {
    pub(super) state: &'static str,
    pub(super) current: bool,
}

/// Names a package by its ConfigMap, in the form `namespace/name`. A label with the name `namespace` would collide with
/// the namespace of the scraped pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PackageLabels {
    pub(super) package: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RolloutObjectsLabels {
    #[prometheus(flatten)]
    pub(super) package: PackageLabels,
    pub(super) moved: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RolloutPauseLabels {
    #[prometheus(flatten)]
    pub(super) package: PackageLabels,
    pub(super) reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RolloutReturnLabels {
    #[prometheus(flatten)]
    pub(super) package: PackageLabels,
    pub(super) cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VerbLabels {
    pub(super) verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildLabels {
    pub(super) version: &'static str,
    pub(super) rust: &'static str,
}
