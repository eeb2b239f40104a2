//! Settings that count, with the layer that gave each value.

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
    /// Of the text and of who gave what in it.
    pub(super) digest: Digest,
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
        nearest(&self.sources, path)
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
