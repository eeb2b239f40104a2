//! Effective settings. Each value has a source: the layer that set the value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Path,
    origin::{Origin, Source, nearest},
};
use crate::digest::Digest;

/// Complete settings that are valid by the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    pub(super) tree: Value,
    pub(super) text: String,
    pub(super) sources: BTreeMap<Path, Source>,
    /// The digest of the text and of every value's source.
    pub(super) digest: Digest,
}

impl Effective {
    /// Returns the settings as one object.
    pub fn tree(&self) -> &Value {
        &self.tree
    }

    /// Returns the settings as JSON text with sorted keys, in the form that the policy receives.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns each value's path and source, sorted by path.
    pub fn sources(&self) -> impl Iterator<Item = (&Path, &Source)> {
        self.sources.iter()
    }

    /// Returns the digest of the values and their sources. The digest includes the sources, because the guard may allow
    /// or reject a value by its source.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the values that the operator's owner set. Leaves out the schema's defaults, settings of namespaces, and
    /// annotations.
    pub(crate) fn of_operator(&self) -> Value {
        self.given_by(|origin| match origin {
            Origin::Preset(_)
            | Origin::Environment
            | Origin::OperatorConfig
            | Origin::PolicyFile(_)
            | Origin::ClusterPolicy(_)
            | Origin::File(_)
            | Origin::CommandLine => true,
            Origin::SchemaDefault | Origin::NamespacePolicy(_) | Origin::Annotation => false,
        })
    }

    /// Returns the values from the process's own flags. Leaves out the environment: in the chart's pods, the
    /// environment contains the data of `kaos-operator-config` from the time of the start. A user with the right to
    /// install policies possibly can also write that ConfigMap.
    pub(crate) fn of_flags(&self) -> Value {
        self.given_by(|origin| matches!(origin, Origin::PolicyFile(_) | Origin::File(_) | Origin::CommandLine))
    }

    /// Returns the values from the object's own annotations.
    pub(crate) fn of_annotations(&self) -> Value {
        self.given_by(|origin| *origin == Origin::Annotation)
    }

    /// Returns each value from a namespace's settings: its path, its source, and a tree that contains only this value.
    pub(crate) fn of_namespaces(&self) -> impl Iterator<Item = (&Path, &Source, Value)> {
        self.given_one_by_one(|origin| matches!(origin, Origin::NamespacePolicy(_)))
    }

    /// Returns each value with an origin for which the function `by` returns true. The result has the form of
    /// [`Self::of_namespaces`].
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

    /// Returns the source of the value at a path. If there is no value at the path, returns the source of the nearest
    /// value above or below the path. `None` if there is no such value.
    pub fn source(&self, path: &Path) -> Option<&Source> {
        nearest(&self.sources, path)
    }
}

/// Stores a value at the path `names`.
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
