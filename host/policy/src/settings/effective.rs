//! Effective settings, with the layer that gave each value.

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
    /// The settings as one object.
    pub fn tree(&self) -> &Value {
        &self.tree
    }

    /// The settings as JSON text with sorted keys, as the policy receives them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Each value's path and source, sorted by path.
    pub fn sources(&self) -> impl Iterator<Item = (&Path, &Source)> {
        self.sources.iter()
    }

    /// The digest of the values and their sources. The source counts, since the guard may allow or reject a value by
    /// its source.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// The values from the operator's owner: without the schema's defaults, a namespace's settings and annotations.
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

    /// The values from the process's own flags. The environment is left out: in the chart's pods, it holds the data of
    /// `kaos-operator-config` at the start, and the user that installs policies may write that ConfigMap.
    pub(crate) fn of_flags(&self) -> Value {
        self.given_by(|origin| matches!(origin, Origin::PolicyFile(_) | Origin::File(_) | Origin::CommandLine))
    }

    /// The values from the object's own annotations.
    pub(crate) fn of_annotations(&self) -> Value {
        self.given_by(|origin| *origin == Origin::Annotation)
    }

    /// Each value from a namespace's settings: its path, its source, and settings with only this value.
    pub(crate) fn of_namespaces(&self) -> impl Iterator<Item = (&Path, &Source, Value)> {
        self.given_one_by_one(|origin| matches!(origin, Origin::NamespacePolicy(_)))
    }

    /// Each value from the origins that `by` selects, in the same form.
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

    /// The source of the value at a path, or of the nearest value above or below it.
    pub fn source(&self, path: &Path) -> Option<&Source> {
        nearest(&self.sources, path)
    }
}

/// Puts a value at the path `names`.
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
