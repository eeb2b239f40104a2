//! The identity of stored objects: type and key. Also reads keys, revisions and other metadata from objects.

use serde_json::Value;

/// A type of objects, independent of its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupResource {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl GroupResource {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }
}

/// Identifies an object among the objects of its type.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// Identifies an object among all objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    pub(crate) resource: GroupResource,
    pub(crate) key: Key,
}

/// Returns the text in a field of an object's metadata. Returns the empty text if the field is missing.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the key of an object, from its metadata.
pub(crate) fn key_of(object: &Value) -> Key {
    Key::new(meta(object, "namespace"), meta(object, "name"))
}

/// Returns the revision of an object.
pub(crate) fn revision_of(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or_default()
}
