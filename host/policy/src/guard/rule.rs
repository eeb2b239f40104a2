//! The rules of the guard, and what is said of an answer that breaks one.

use std::fmt;

use serde::Serialize;

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
