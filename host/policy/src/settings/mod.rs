//! Effective settings of a policy: layers merged, defaults filled in, checked against the schema, and for
//! every value the layer that gave it.

mod assign;
mod bounds;
mod error;
mod listed;
mod merge;
mod path;
mod schema;
mod text;
mod validate;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

pub use assign::{assignments, file};
pub use error::{SchemaError, SettingsError, SettingsErrors};
pub(crate) use listed::listed;
pub use path::Path;
pub use schema::Schema;

use crate::{digest::Digest, near::slipped};

/// What an object's annotation begins with to override a setting; the setting's path follows.
pub const ANNOTATION_PREFIX: &str = "settings.kaos.tools/";

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

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

/// Values from one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Which place.
    pub origin: Origin,
    /// The policy that they are for; without one, for every policy.
    pub policy: Option<String>,
    /// The values.
    pub content: Content,
}

/// The form that values come in.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An object of the form that the schema describes, in part.
    Tree(Value),
    /// Variables by name. The schema's `x-env` says which setting one feeds; an empty one counts as unset,
    /// and one that feeds nothing is not looked at.
    Env(BTreeMap<String, String>),
}

impl Layer {
    /// Variables, for every policy.
    pub fn env(origin: Origin, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { origin, policy: None, content: Content::Env(variables.into_iter().collect()) }
    }

    /// A part of the settings of one policy.
    pub fn tree(origin: Origin, policy: impl Into<String>, tree: Value) -> Self {
        Self { origin, policy: Some(policy.into()), content: Content::Tree(tree) }
    }

    /// Variables that feed no setting of these schemas and are spelt almost as one that does, with that one.
    pub fn misspelt<'a>(&self, schemas: impl IntoIterator<Item = &'a Schema>) -> Vec<(&str, &'a str)> {
        let Content::Env(variables) = &self.content else { return Vec::new() };
        let schemas = schemas.into_iter();
        let known: BTreeSet<&str> = schemas.flat_map(|schema| schema.variables().keys().map(String::as_str)).collect();
        let strangers = variables.keys().map(String::as_str).filter(|name| !known.contains(name));
        strangers.filter_map(|name| Some((name, slipped(name, known.iter().copied())?))).collect()
    }

    fn concerns(&self, policy: &str) -> bool {
        self.policy.as_deref().is_none_or(|name| name == policy)
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

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.via {
            Some(via) => write!(f, "{via} of {}", self.origin),
            None => write!(f, "{}", self.origin),
        }
    }
}

/// Complete settings that are valid by the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    tree: Value,
    text: String,
    sources: BTreeMap<Path, Source>,
    /// Of the text and of who gave what in it.
    digest: Digest,
}

impl Effective {
    /// The settings as one object.
    pub fn tree(&self) -> &Value {
        &self.tree
    }

    /// The same as JSON text with sorted keys: what the policy is handed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Each value's path and where it came from, sorted by path.
    pub fn sources(&self) -> impl Iterator<Item = (&Path, &Source)> {
        self.sources.iter()
    }

    /// The same for the same values from the same places: whether a policy's use of a value passes may depend on who gave
    /// it.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// What whoever runs the operator gave, without the policy's own defaults and without what others may set: those
    /// of a namespace and authors of objects.
    pub(crate) fn of_operator(&self) -> Value {
        self.given_by(|origin| match origin {
            Origin::Environment
            | Origin::OperatorConfig
            | Origin::PolicyFile(_)
            | Origin::ClusterPolicy(_)
            | Origin::File(_)
            | Origin::CommandLine => true,
            Origin::SchemaDefault | Origin::NamespacePolicy(_) | Origin::Annotation => false,
        })
    }

    /// Of that, what the process was started with by its flags. The environment is not among it: the chart's pods have
    /// what `kaos-operator-config` held when they began in theirs, and whoever installs policies may write that.
    pub(crate) fn of_flags(&self) -> Value {
        self.given_by(|origin| matches!(origin, Origin::PolicyFile(_) | Origin::File(_) | Origin::CommandLine))
    }

    /// What the object's own annotations gave.
    pub(crate) fn of_annotations(&self) -> Value {
        self.given_by(|origin| *origin == Origin::Annotation)
    }

    /// Each value that settings of a namespace gave: its path, its source, and the settings with nothing else in them.
    pub(crate) fn of_namespaces(&self) -> impl Iterator<Item = (&Path, &Source, Value)> {
        self.given_one_by_one(|origin| matches!(origin, Origin::NamespacePolicy(_)))
    }

    /// The same of what others gave.
    pub(crate) fn given_one_by_one(&self, by: fn(&Origin) -> bool) -> impl Iterator<Item = (&Path, &Source, Value)> {
        let given = self.sources.iter().filter(move |(_, source)| by(&source.origin));
        given.filter_map(|(path, source)| {
            let value = path.find_in(&self.tree)?;
            let mut alone = Value::Object(serde_json::Map::new());
            put(&mut alone, path.names(), value.clone());
            Some((path, source, alone))
        })
    }

    fn given_by(&self, by: impl Fn(&Origin) -> bool) -> Value {
        let mut given = Value::Object(serde_json::Map::new());
        for (path, _) in self.sources.iter().filter(|(_, source)| by(&source.origin)) {
            let Some(value) = path.find_in(&self.tree) else { continue };
            put(&mut given, path.names(), value.clone());
        }
        given
    }

    /// Where the value at a path came from: its own source, or that of the nearest value above or below it.
    pub fn source(&self, path: &Path) -> Option<&Source> {
        error::nearest(&self.sources, path)
    }
}

/// Puts a value where names lead from the outside in.
fn put(at: &mut Value, names: &[String], value: Value) {
    let Some((first, rest)) = names.split_first() else {
        *at = value;
        return;
    };
    if !at.is_object() {
        *at = Value::Object(serde_json::Map::new());
    }
    if let Some(fields) = at.as_object_mut() {
        put(fields.entry(first.as_str()).or_insert(Value::Null), rest, value);
    }
}

impl Schema {
    /// The effective settings of a policy: the schema's defaults and, over them, each layer that concerns
    /// it, the strongest origin last whatever order they are given in.
    pub fn resolve(&self, policy: &str, layers: &[Layer]) -> Result<Effective, SettingsErrors> {
        let mut merged = merge::Merged::new(self.defaults());
        let mut errors = Vec::new();
        let mut ordered: Vec<&Layer> = layers.iter().filter(|layer| layer.concerns(policy)).collect();
        ordered.sort_by_key(|layer| layer.origin.rank());
        for layer in ordered {
            match &layer.content {
                Content::Tree(tree) => merged.tree(tree, &Source { origin: layer.origin.clone(), via: None }),
                Content::Env(variables) => self.feed(&mut merged, &layer.origin, variables, &mut errors),
            }
        }
        self.finish(policy, merged, errors)
    }

    /// The same settings with what an object's annotations override. Annotations that name no setting of
    /// this schema are for another layer and left alone.
    pub fn annotated(
        &self,
        policy: &str,
        settings: &Effective,
        annotations: &BTreeMap<&str, &str>,
    ) -> Result<Effective, SettingsErrors> {
        let mut merged = merge::Merged::from(settings.clone());
        let mut errors = Vec::new();
        for (key, value) in annotations {
            let Some(path) = key.strip_prefix(ANNOTATION_PREFIX).map(Path::parse) else { continue };
            if !self.has(&path) {
                continue;
            }
            let source = Source { origin: Origin::Annotation, via: Some((*key).to_owned()) };
            if !self.annotatable(&path) {
                let message = "may not be set by an annotation: ask whoever owns the policy's settings".to_owned();
                errors.push(SettingsError { policy: policy.to_owned(), path, source: Some(source), message });
                continue;
            }
            match self.convert(&path, value) {
                Ok(value) => merged.leaf(&path, value, &source),
                Err(message) => {
                    errors.push(SettingsError { policy: policy.to_owned(), path, source: Some(source), message });
                }
            }
        }
        self.finish(policy, merged, errors)
    }

    fn feed(
        &self,
        merged: &mut merge::Merged,
        origin: &Origin,
        variables: &BTreeMap<String, String>,
        errors: &mut Vec<SettingsError>,
    ) {
        for (variable, path) in self.variables() {
            let Some(text) = variables.get(variable).filter(|text| !text.is_empty()) else { continue };
            let source = Source { origin: origin.clone(), via: Some(variable.clone()) };
            match self.convert_variable(path, text) {
                Ok(value) => merged.leaf(path, value, &source),
                Err(message) => errors.push(SettingsError {
                    policy: String::new(),
                    path: path.clone(),
                    source: Some(source),
                    message,
                }),
            }
        }
    }

    fn finish(
        &self,
        policy: &str,
        merged: merge::Merged,
        mut errors: Vec<SettingsError>,
    ) -> Result<Effective, SettingsErrors> {
        let settings = merged.finish();
        errors.extend(self.violations(&settings));
        if errors.is_empty() {
            return Ok(settings);
        }
        for error in &mut errors {
            policy.clone_into(&mut error.policy);
        }
        Err(SettingsErrors(errors))
    }
}

impl Origin {
    /// Layers of equal rank keep the order they are given in, so that of two `--set` the later wins.
    fn rank(&self) -> u8 {
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
