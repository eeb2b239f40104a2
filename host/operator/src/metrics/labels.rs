//! The label sets of the metrics. Their fields are the label names.

use kaos_policy::{contract::ResourceType, policy::PolicyId};
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Type {
    group: String,
    kind: String,
}

impl From<&ResourceType> for Type {
    fn from(of: &ResourceType) -> Self {
        Self { group: of.group().to_owned(), kind: of.kind.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Pass {
    #[prometheus(flatten)]
    pub(super) of: Type,
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Objects {
    #[prometheus(flatten)]
    pub(super) of: Type,
    pub(super) ready: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Unserved {
    #[prometheus(flatten)]
    pub(super) of: Type,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchState {
    #[prometheus(flatten)]
    pub(super) of: Type,
    pub(super) state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchError {
    #[prometheus(flatten)]
    pub(super) of: Type,
    pub(super) reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(super) struct Policy {
    policy: String,
    version: String,
}

impl From<&PolicyId> for Policy {
    fn from(id: &PolicyId) -> Self {
        Self { policy: id.name.clone(), version: id.version.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Active {
    #[prometheus(flatten)]
    pub(super) of: Type,
    #[prometheus(flatten)]
    pub(super) policy: Policy,
    pub(super) digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PolicyFailure {
    #[prometheus(flatten)]
    pub(super) policy: Policy,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiCall {
    pub(super) verb: &'static str,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RevisionState {
    pub(super) state: &'static str,
    pub(super) current: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Verb {
    pub(super) verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Build {
    pub(super) version: &'static str,
    pub(super) rust: &'static str,
}
