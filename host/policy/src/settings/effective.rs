//! Effective settings: the result of merging all settings layers. Each value has a source, which is the layer that set
//! the value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Path,
    origin::{Origin, Source, nearest},
};
use crate::digest::Digest;

/// Complete settings that fit the schema.
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

    /// Returns the digest of the values and their sources. The digest includes the sources, because the guard's
    /// decision about a value can depend on its source.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the values that the operator's owner set. Leaves out the schema's defaults, settings of namespaces, and
    /// annotations.
    pub(crate) fn of_operator(&self) -> Value {
        let mut given = Value::Object(serde_json::Map::new());
        for (path, _) in self.sources.iter().filter(|(_, source)| source.origin.is_of_operator()) {
            let Some(value) = path.find_in(&self.tree) else { continue };
            put(&mut given, path.names(), value.clone());
        }
        given
    }

    /// Returns each value from a namespace's settings: its path, its source, and a tree that contains only this value.
    pub(crate) fn of_namespaces(&self) -> impl Iterator<Item = (&Path, &Source, Value)> {
        let is_namespace = |source: &Source| matches!(source.origin, Origin::NamespacePolicy(_));
        let given = self.sources.iter().filter(move |(_, source)| is_namespace(source));
        given.filter_map(|(path, source)| {
            let value = path.find_in(&self.tree)?;
            let mut alone = Value::Object(serde_json::Map::new());
            put(&mut alone, path.names(), value.clone());
            Some((path, source, alone))
        })
    }

    /// Returns the source of the value at a path. If there is no value at the path, returns the source of the nearest
    /// value above the path. If there is none, returns the source of the strongest value below the path. Returns `None`
    /// if no value is at, above or below the path.
    pub fn source(&self, path: &Path) -> Option<&Source> {
        nearest(&self.sources, path)
    }
}

/// Stores a value at the path `names`.
pub(super) fn put(at: &mut Value, names: &[String], value: Value) {
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
