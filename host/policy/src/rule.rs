//! The rules of the guard, and the description of a breach.

use std::fmt;

use serde::Serialize;

/// A rule that an answer can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The needs name only types that the claim reads.
    ReadsClaimed,
    /// Needs have unique ids and valid paths of fields, and their number is limited. If a later round names the same id
    /// again, the target and the fields are the same.
    NeedsOrderly,
    /// Manifests have only types that the claim emits. An overlay changes and adds only types of its own claim.
    EmitsClaimed,
    /// An overlay keeps the children of the layer below, and their selectors. It also keeps the plan gates, the
    /// finalizer, the kept volume claims and the notes.
    KeepsBelow,
    /// Manifests are not cluster-scoped and grant no rights.
    NoClusterPower,
    /// Manifests are in the object's own namespace.
    OwnNamespace,
    /// No manifest is the object itself.
    NotItself,
    /// No two manifests have the same kind and name.
    NoDuplicates,
    /// The number and the size of manifests are limited.
    Bounded,
    /// Names, labels and annotations are valid.
    ValidNames,
    /// Manifests contain no metadata that only the host or the API server may write.
    HostMetadata,
    /// Manifests have the form of a Kubernetes object.
    WellFormed,
    /// Manifests of Kubernetes' own kinds contain only fields and values that the kind accepts.
    FitsKind,
    /// No container has the same variable twice.
    NoDuplicateEnv,
    /// The containers in the manifests have exactly the variables of the plan's mapping.
    EnvAsMapped,
    /// The user's spec, the settings or a grant allow every raised privilege.
    NoPrivilege,
    /// The plan's origins have valid paths and sources.
    ValidOrigins,
    /// The user's spec, the settings or a grant name every Secret, PersistentVolumeClaim and data source.
    /// Alternatively, the plan itself can contain a Secret or PersistentVolumeClaim that its pods use.
    NamedReferences,
    /// The plan's finalizer belongs to the claimed kind's group, or the settings or a grant name the finalizer.
    OwnFinalizer,
    /// If the contract requires a JSON object in a text, the text is a JSON object.
    JsonObjects,
    /// An `extra` contains only members that the host knows.
    KnownExtra,
}

/// A broken rule of the guard, with the path in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// The rule that the answer breaks.
    pub rule: Rule,
    /// The path of the need, the manifest or the variable.
    pub path: String,
    /// The wrong value, and the allowed values or a remedy.
    pub message: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({:?})", self.path, self.message, self.rule)
    }
}

/// Whether the fields that a user writes in an object's spec can raise privileges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum UserPrivileges {
    /// A privilege is allowed if the object's spec contains the same field and value.
    #[default]
    Allowed,
    /// Only grants and settings can raise privileges.
    Forbidden,
}
