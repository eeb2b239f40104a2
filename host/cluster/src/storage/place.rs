//! Where objects are kept: their type, their key, and what their metadata says of both.

use serde_json::Value;

/// A type of object, whatever the version.
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

/// An object among those of its type.
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

/// An object anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) resource: GroupResource,
    pub(crate) key: Key,
}

/// A text of an object's metadata; empty when absent.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The key that an object's metadata names.
pub(crate) fn key_of(object: &Value) -> Key {
    Key::new(meta(object, "namespace"), meta(object, "name"))
}

/// The revision of an object.
pub(crate) fn revision_of(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or_default()
}
