//! The scopes of policies and of settings.

use std::collections::BTreeSet;

use kaos_policy::settings::Origin;

/// The scope of a policy or of settings. The variants are in the order of precedence, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The whole cluster, for a policy that the process loaded at startup.
    ///
    /// A default policy of another version of the operator has this scope, too.
    Process,
    /// The whole cluster.
    Cluster,
    /// The scope consists of these namespaces.
    Namespaces(BTreeSet<String>),
    /// The namespace that contains the package.
    Own(String),
}

impl Reach {
    /// Returns the scope of a package in `namespace`. `listed` are the namespaces in the package's `policy.yaml`.
    /// `home` is the operator's namespace.
    pub fn of_package(namespace: &str, listed: &[String], home: &str) -> Self {
        match listed {
            _ if namespace != home => Self::Own(namespace.to_owned()),
            [] => Self::Cluster,
            listed => Self::Namespaces(listed.iter().cloned().collect()),
        }
    }

    /// Returns the origin for the settings of a package with this scope.
    pub fn origin(&self, namespace: &str, name: &str) -> Origin {
        match self {
            Self::Own(_) => Origin::NamespacePolicy(format!("{namespace}/{name}")),
            Self::Process => Origin::PolicyFile(name.to_owned()),
            Self::Cluster | Self::Namespaces(_) => Origin::ClusterPolicy(name.to_owned()),
        }
    }

    /// Returns whether the scope contains the namespace `place`. If `place` is `None`, returns whether the scope is the
    /// whole cluster.
    pub(super) fn holds(&self, place: Option<&str>) -> bool {
        match self {
            Self::Process | Self::Cluster => true,
            Self::Namespaces(namespaces) => place.is_some_and(|place| namespaces.contains(place)),
            Self::Own(namespace) => place == Some(namespace),
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &String> {
        let (many, one) = match self {
            Self::Process | Self::Cluster => (None, None),
            Self::Namespaces(namespaces) => (Some(namespaces), None),
            Self::Own(namespace) => (None, Some(namespace)),
        };
        many.into_iter().flatten().chain(one)
    }

    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Process => 0,
            Self::Cluster => 1,
            Self::Namespaces(_) => 2,
            Self::Own(_) => 3,
        }
    }

    /// Returns whether two scopes have a namespace in common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process | Self::Cluster, _) | (_, Self::Process | Self::Cluster) => true,
            (one, other) => one.places().any(|place| other.holds(Some(place))),
        }
    }

    /// Returns whether two scopes overlap and have the same precedence.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process, Self::Process) | (Self::Cluster, Self::Cluster) => true,
            (Self::Namespaces(one), Self::Namespaces(other)) => !one.is_disjoint(other),
            (Self::Own(one), Self::Own(other)) => one == other,
            _ => false,
        }
    }
}
