//! Who gave a value, and which of two who did counts.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::Path;

/// Who gave a value. The order is the order of precedence, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The policy itself.
    SchemaDefault,
    /// The environment of this process.
    Environment,
    /// The ConfigMap `kaos-operator-config`.
    OperatorConfig,
    /// The `policy.yaml` of a component that the process was started with; the component.
    PolicyFile(String),
    /// A policy ConfigMap for the cluster; its name.
    ClusterPolicy(String),
    /// A policy ConfigMap for a namespace; `namespace/name`.
    NamespacePolicy(String),
    /// A settings file; its name.
    File(String),
    /// `--set`
    CommandLine,
    /// An annotation of the object.
    Annotation,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchemaDefault => f.write_str("the policy's default"),
            Self::Environment => f.write_str("the environment"),
            Self::OperatorConfig => f.write_str("ConfigMap kaos-operator-config"),
            Self::PolicyFile(component) => write!(f, "the policy.yaml of {component}"),
            Self::ClusterPolicy(name) => write!(f, "policy ConfigMap {name} of the operator's namespace"),
            Self::NamespacePolicy(name) => write!(f, "policy ConfigMap {name} (namespace)"),
            Self::File(name) => write!(f, "file {name}"),
            Self::CommandLine => f.write_str("--set"),
            Self::Annotation => f.write_str("an annotation of the object"),
        }
    }
}

impl Origin {
    /// Layers of equal rank keep the order they are given in, so that of two `--set` the later wins.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::SchemaDefault => 0,
            Self::Environment => 1,
            Self::OperatorConfig => 2,
            Self::PolicyFile(_) | Self::ClusterPolicy(_) => 3,
            Self::NamespacePolicy(_) => 4,
            Self::File(_) => 5,
            Self::CommandLine => 6,
            Self::Annotation => 7,
        }
    }
}

/// Where one value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The layer.
    pub origin: Origin,
    /// The variable or annotation within the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Some(via) => write!(f, "{via} of {}", self.origin),
            None => write!(f, "{}", self.origin),
        }
    }
}

/// The source of a value, or of the nearest one above or below it.
pub(super) fn nearest<'a>(sources: &'a BTreeMap<Path, Source>, path: &Path) -> Option<&'a Source> {
    let above = sources.iter().filter(|(other, _)| other.covers(path)).max_by_key(|(other, _)| other.names().len());
    let below = sources.iter().filter(|(other, _)| path.covers(other)).max_by_key(|(_, source)| source.origin.rank());
    above.or(below).map(|(_, source)| source)
}
