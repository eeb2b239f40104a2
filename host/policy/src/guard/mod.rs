//! The output firewall: what a policy asks for and answers, against what it may.
//!
//! Nothing is mended or dropped here. A breach names the rule and the path, and the whole answer is void.
//!
//! Guarded is what reaches beyond the object's own namespace, pods and rights: other types, places and names than the
//! claim's; power over nodes, other ServiceAccounts, Secrets and claims that nobody named ([`Rule::NamedReferences`]);
//! Services that are reached from outside, volumes and devices of others, tokens for others to trust; metadata that the host
//! or a controller acts on, also inside of templates; finalizers of others.
//!
//! Deliberately not guarded is what a policy is there to decide, or what the cluster has better means for: images and
//! commands (admission, image policies), `tolerations`, affinity, resources and `replicas` (quotas), ConfigMaps by name,
//! labels and selectors, NetworkPolicies of the namespace, hosts of routes, addresses of load balancers that may be had, and
//! annotations of pods that some add-on gives a meaning, but for those of security profiles and cloud roles. References inside of custom resources are not
//! looked for, those of pods in them apart: who may emit such a type is decided by the operator's rights. Nor are claims
//! that a `StatefulSet` finds by their name, since nothing but that name tells whose they are.

mod annotated;
mod asked;
mod breaches;
mod cap;
mod env;
mod filled;
mod finalizer;
mod manifest;
mod metadata;
mod needs;
mod plan;
mod privilege;
mod raised;
mod references;
mod said;
mod shape;
mod words;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub(crate) use cap::Cap;
pub(crate) use needs::{may_read, needs};
pub(crate) use plan::{Rules, Stop, plan};
pub(crate) use shape::{Step, written};
pub(crate) use words::of_the_user;

/// The items of a list; none, if it is no list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A rule that an answer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Needs name only types that the claim reads.
    ReadsClaimed,
    /// Needs have unique ids that keep their meaning, and there are not too many.
    NeedsOrderly,
    /// Manifests are only of types that the claim emits.
    EmitsClaimed,
    /// Manifests are not cluster-scoped and grant no rights.
    NoClusterPower,
    /// Manifests are in the object's own namespace.
    OwnNamespace,
    /// Manifests are not the object itself.
    NotItself,
    /// No two manifests are the same object.
    NoDuplicates,
    /// There are not too many manifests, and they are not too large.
    Bounded,
    /// Names, labels and annotations are valid.
    ValidNames,
    /// Metadata that the host or the API server owns is left alone.
    HostMetadata,
    /// Manifests have the form of an object.
    WellFormed,
    /// Kubernetes' own kinds have the fields that Kubernetes gives them, with values that it takes.
    FitsKind,
    /// No container has a variable twice.
    NoDuplicateEnv,
    /// The plan's mapping is what the manifests carry.
    EnvAsMapped,
    /// Privilege is the user's own word, that of the settings, or granted.
    NoPrivilege,
    /// Secrets, claims, and what claims are filled from, are named by the user or the settings, granted, or of the same
    /// plan.
    NamedReferences,
    /// The finalizer that a plan asks for is of the claimed kind's group, the word of the settings, or granted.
    OwnFinalizer,
    /// Texts that must be JSON objects are.
    JsonObjects,
}

/// Where an answer broke which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// The path: of a need, of a manifest, of the mapping.
    pub path: String,
    /// What is there and what may be.
    pub message: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({:?})", self.path, self.message, self.rule)
    }
}

/// Whether a user's own spec may raise privilege.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum UserPrivileges {
    /// What stands verbatim in the object's spec is allowed.
    #[default]
    Allowed,
    /// Only grants are.
    Forbidden,
}
