//! The origins of settings, and the precedence of these origins.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::Path;

/// The origin of a setting. The variants are sorted by precedence, the weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The policy's own default.
    SchemaDefault,
    /// A preset with this name. A preset contains the defaults of one version of KAOS.
    Preset(String),
    /// The environment of this process.
    Environment,
    /// The ConfigMap `kaos-operator-config`.
    OperatorConfig,
    /// The `policy.yaml` next to a component of the flag `--policy`. The variant has the component's path.
    PolicyFile(String),
    /// The ConfigMap of a package for the whole cluster. The variant has the ConfigMap's name.
    ClusterPolicy(String),
    /// The ConfigMap of a package for a namespace. The variant has `namespace/name` of the ConfigMap.
    NamespacePolicy(String),
    /// A settings file. The variant has the file's name.
    File(String),
    /// A `--set` argument of the command line.
    CommandLine,
    /// An annotation of the object.
    Annotation,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchemaDefault => f.write_str("the policy's default"),
            Self::Preset(name) => write!(f, "the preset {name}"),
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
    /// Returns whether the operator's owner writes this layer. The schema's defaults, the settings of namespaces and
    /// annotations have other authors.
    pub(crate) fn is_of_operator(&self) -> bool {
        match self {
            Self::Preset(_)
            | Self::Environment
            | Self::OperatorConfig
            | Self::PolicyFile(_)
            | Self::ClusterPolicy(_)
            | Self::File(_)
            | Self::CommandLine => true,
            Self::SchemaDefault | Self::NamespacePolicy(_) | Self::Annotation => false,
        }
    }

    /// Returns whether this layer comes from the process's own flags. Returns false for the environment: in the chart's
    /// pods, the environment contains a copy of `kaos-operator-config`. Users with the right to install policies can
    /// perhaps also write this ConfigMap.
    pub(crate) fn is_of_flags(&self) -> bool {
        matches!(self, Self::PolicyFile(_) | Self::File(_) | Self::CommandLine)
    }

    /// Returns the rank of a layer. Layers of equal rank keep their order, so of two `--set` arguments, the later
    /// argument wins.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::SchemaDefault => 0,
            Self::Preset(_) => 1,
            Self::Environment => 2,
            Self::OperatorConfig => 3,
            Self::PolicyFile(_) | Self::ClusterPolicy(_) => 4,
            Self::NamespacePolicy(_) => 5,
            Self::File(_) => 6,
            Self::CommandLine => 7,
            Self::Annotation => 8,
        }
    }
}

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The origin of the layer that contains the value.
    pub origin: Origin,
    /// The variable or annotation that contains the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// Returns the source of the value at a path. If no value is at the path, returns the source of the nearest value above
/// the path. If no value is above the path, returns the source of the strongest value below the path.
pub(super) fn nearest<'a>(sources: &'a BTreeMap<Path, Source>, path: &Path) -> Option<&'a Source> {
    let above = sources.iter().filter(|(other, _)| other.covers(path)).max_by_key(|(other, _)| other.names().len());
    let below = sources.iter().filter(|(other, _)| path.covers(other)).max_by_key(|(_, source)| source.origin.rank());
    above.or(below).map(|(_, source)| source)
}
