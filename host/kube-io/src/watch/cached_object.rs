//! One cached object: its text in compressed form, and the few facts that the watch needs without parsing.

use std::sync::Arc;

use kaos_objects::{ResourceType, metadata};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    bare::{self, BareObject},
    dictionary::Dictionary,
    known_labels::{KnownLabels, MAX_LABELS},
    managed_fields::{ManagedFields, is_shared, last_change},
    sent_object::SentObject,
    text::Text,
};
use crate::hashing::hash;

/// The reason why an object from the API server cannot be cached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// The JSON is not an object with metadata, or an identifying field is missing.
    #[error("the object has no usable metadata.{0}")]
    Field(&'static str),
    /// The object has more labels than the watch stores.
    #[error("the object has more than {MAX_LABELS} labels, so no policy finds the object by label: remove some labels")]
    Labels,
}

/// A cached object.
#[derive(Debug, Clone)]
pub(super) struct CachedObject {
    /// The JSON text, without managed fields, last applied configuration and resource version.
    text: Text,
    pub(super) uid: Box<str>,
    pub(super) version: u64,
    /// The UID of the object's controller.
    pub(super) owner: Option<Box<str>>,
    pub(super) labels: KnownLabels,
    /// A hash of everything except the resource version.
    pub(super) content: u64,
    /// A hash of everything except status and resource version. This field is set only for claimed kinds.
    pub(super) essence: u64,
    /// Whether another field manager owns a part of the spec. This field is set only if [`Extract`] asks for this fact.
    pub(super) shared: bool,
    /// The last time at which a user changed the object's spec. This field is set only for claimed kinds.
    pub(super) changed: Option<Box<str>>,
}

/// An object in its cached form, with its namespace and name.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) item: CachedObject,
}

/// The facts that the watch extracts from each object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extract {
    pub(super) labels: bool,
    pub(super) essence: bool,
    pub(super) shared: bool,
    pub(super) form: StoredForm,
}

impl Extract {
    /// Returns whether a fact comes from the managed fields.
    fn needs_managed_fields(self) -> bool {
        self.shared || self.essence
    }
}

/// How much of an object the cache stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum StoredForm {
    /// The whole object.
    #[default]
    Whole,
    /// The cache stores only namespace, name, UID, version and hashes of labels.
    Bare,
}

/// The controller in an object's owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) of: ResourceType,
    pub(super) name: String,
    pub(super) uid: String,
}

/// An object that cannot be cached completely.
#[derive(Debug, Clone)]
pub(super) struct Unusable {
    /// The object's name and the reason.
    pub(super) what: String,
    /// The object's version.
    pub(super) version: Option<u64>,
    /// The part of the object that can be cached.
    pub(super) left: Option<Box<Arrived>>,
}

/// The fields that identify an object and show its deletion. All other parts may be nested too deeply for the parser.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NamedMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<Vec<String>>,
}

impl Unusable {
    fn new(metadata: &NamedMetadata, why: &dyn std::error::Error, left: Option<Arrived>) -> Self {
        let version = metadata.resource_version.as_ref().and_then(|version| version.parse().ok());
        let what = format!("{}: {why}", metadata.name.as_deref().unwrap_or("?"));
        Self { what, version, left: left.map(Box::new) }
    }

    /// Handles JSON that cannot be parsed: keeps the object's metadata, and replaces the spec by the error.
    fn unread(sent: &RawValue, why: &serde_json::Error, of: &ResourceType, extract: Extract) -> Self {
        let metadata = named(sent);
        let object = json!({"metadata": metadata, "spec": format!("the object cannot be read: {why}")});
        Self::new(&metadata, why, Arrived::new(object, of, extract).ok())
    }
}

fn named(sent: &RawValue) -> NamedMetadata {
    serde_json::from_str::<Named>(sent.get()).unwrap_or_default().metadata
}

impl Arrived {
    /// Converts an object from the server. Parses each object of a list separately. So an object that cannot be parsed,
    /// for example because of too deep nesting, does not block the other objects.
    pub(super) fn read(sent: &RawValue, of: &ResourceType, extract: Extract) -> Result<Self, Unusable> {
        let arrived = if extract.form == StoredForm::Bare {
            bare::read(sent, extract.labels).map(|read| read.map(Self::bare).map_err(Malformed::Field))
        } else {
            serde_json::from_str(sent.get()).map(|SentObject { object, managed }| {
                let managed = managed.filter(|_| extract.needs_managed_fields());
                Self::with(object, managed.map(ManagedFields::decode).unwrap_or_default(), of, extract)
            })
        };
        let arrived = arrived.map_err(|error| Unusable::unread(sent, &error, of, extract))?;
        let arrived = arrived.map_err(|error| Unusable::new(&named(sent), &error, None))?;
        if arrived.item.labels == KnownLabels::TooMany {
            return Err(Unusable::new(&named(sent), &Malformed::Labels, Some(arrived)));
        }
        Ok(arrived)
    }

    /// Converts an object.
    pub(super) fn new(mut object: Value, of: &ResourceType, extract: Extract) -> Result<Self, Malformed> {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let managed = metadata.and_then(|metadata| metadata.remove("managedFields"));
        let managed = managed.filter(|_| extract.needs_managed_fields());
        Self::with(object, managed.map(ManagedFields::convert).unwrap_or_default(), of, extract)
    }

    /// Converts an object without its managed fields. Adds the object's type, because the items of a list do not
    /// contain their type.
    fn with(
        mut object: Value,
        managed: Vec<ManagedFields>,
        of: &ResourceType,
        extract: Extract,
    ) -> Result<Self, Malformed> {
        let fields = object.as_object_mut().ok_or(Malformed::Field("name"))?;
        fields.entry("apiVersion").or_insert_with(|| json!(of.api_version));
        fields.entry("kind").or_insert_with(|| json!(of.kind));
        let owner = owner_of(&object).map(|owner| owner.uid.into_boxed_str());
        let metadata = object["metadata"].as_object_mut().ok_or(Malformed::Field("name"))?;
        let text = |field| metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name: Arc<str> = text("name").ok_or(Malformed::Field("name"))?.into();
        let namespace: Arc<str> = text("namespace").unwrap_or_default().into();
        let uid: Box<str> = text("uid").ok_or(Malformed::Field("uid"))?.into();
        let version = version_of(metadata.get("resourceVersion")).ok_or(Malformed::Field("resourceVersion"))?;
        let shared = extract.shared && is_shared(&managed);
        let changed = if extract.essence { last_change(managed) } else { None };
        for field in ["resourceVersion", "selfLink"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(metadata::LAST_APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let labels = if extract.labels { KnownLabels::of(&object) } else { KnownLabels::default() };
        let essence = if extract.essence { essence_of(&mut object) } else { 0 };
        let text = object.to_string();
        let content = hash(&text);
        let item = CachedObject { content, text: text.into(), uid, version, owner, labels, essence, shared, changed };
        Ok(Self { namespace, name, item })
    }

    /// Converts a bare object: of its content, the cache stores only the UID, the version and the hashes of the labels.
    fn bare(BareObject { namespace, name, uid, version, labels }: BareObject) -> Self {
        let (text, uid) = (String::new().into(), uid.into_boxed_str());
        let (owner, content, essence, shared, changed) = (None, 0, 0, false, None);
        let item = CachedObject { text, uid, version, owner, labels, content, essence, shared, changed };
        Self { namespace: namespace.into(), name: name.into(), item }
    }

    /// Compresses the object's text. Callers call this function before they take the lock of the cache.
    #[must_use]
    pub(super) fn packed(mut self, dictionary: &Dictionary) -> Self {
        self.item.text = dictionary.packed(self.item.text);
        self
    }
}

impl CachedObject {
    /// Returns the parsed object.
    pub(super) fn value(&self) -> Value {
        parse(&self.text, self.version)
    }

    /// Returns the text, so that the caller can expand and parse it without holding the lock.
    pub(super) fn text(&self) -> &Text {
        &self.text
    }

    /// Returns whether the object has these labels.
    pub(super) fn carries(&self, wanted: &[(String, String)]) -> bool {
        self.labels.carry(wanted)
    }
}

/// Parses an object from its cached text.
pub(super) fn parse(text: &Text, version: u64) -> Value {
    // This module wrote the text, so the parser does not fail.
    let mut object: Value = serde_json::from_slice(&text.plain()).unwrap_or_default();
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object
}

/// Parses a resource version into a number, so that the watch can compare versions. New releases of Kubernetes
/// guarantee that clients can compare versions as numbers. In older releases, versions are also numbers, but without a
/// guarantee.
pub(super) fn version_of(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_str).and_then(|text| text.parse().ok())
}

/// Returns the controller in an object's owner references, or `None` without a controller.
pub(super) fn owner_of(object: &Value) -> Option<Owner> {
    let owner = metadata::controller(object)?;
    let text = |field: &str| owner[field].as_str().map(str::to_owned);
    Some(Owner { of: ResourceType::new(text("apiVersion")?, text("kind")?), name: text("name")?, uid: text("uid")? })
}

/// Returns a hash of the object without its status.
fn essence_of(object: &mut Value) -> u64 {
    let remove = |object: &mut Value| object.as_object_mut().and_then(|fields| fields.remove("status"));
    let status = remove(object);
    let essence = hash(object.to_string());
    if let Some(status) = status {
        object["status"] = status;
    }
    essence
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Extract = Extract { labels: true, essence: true, shared: true, form: StoredForm::Whole };

    fn widget() -> ResourceType {
        ResourceType::new("x.io/v1", "Widget")
    }

    fn object() -> Value {
        json!({"metadata": {"name": "a", "namespace": "t", "uid": "u", "resourceVersion": "7",
            "labels": {"b": "2", "a": "1", "odd": 3}, "managedFields": [{"manager": "x"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "spec": {"x": 1}, "status": {"y": 1}})
    }

    fn arrived(object: Value) -> Arrived {
        Arrived::new(object, &widget(), ALL).unwrap()
    }

    #[test]
    fn managed_fields_and_the_last_applied_configuration_are_not_kept() {
        let value = arrived(object()).item.value();
        assert_eq!(
            value,
            json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "t",
            "uid": "u", "resourceVersion": "7", "labels": {"b": "2", "a": "1", "odd": 3}}, "spec": {"x": 1}, "status": {"y": 1}})
        );
    }

    #[test]
    fn a_new_version_with_the_same_content_is_no_change() {
        let mut later = object();
        later["metadata"]["resourceVersion"] = json!("8");
        later["metadata"]["managedFields"] = json!([]);
        assert_eq!(arrived(object()).item.content, arrived(later).item.content);
    }

    #[test]
    fn a_status_changes_the_content_and_not_the_essence() {
        let mut later = object();
        later["status"] = json!({"y": 2});
        let (before, after) = (arrived(object()).item, arrived(later).item);
        assert_ne!(before.content, after.content);
        assert_eq!(before.essence, after.essence);
        let mut later = object();
        later["spec"] = json!({"x": 2});
        assert_ne!(before.essence, arrived(later).item.essence);
    }

    #[test]
    fn the_facts_of_managed_fields_are_the_same_in_a_text_and_in_a_value() {
        let mut sent = object();
        sent["metadata"]["managedFields"] = json!([{"manager": "somebody", "operation": "Update",
            "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:spec": {}}}]);
        let text = serde_json::value::to_raw_value(&sent).unwrap();
        for arrived in [Arrived::read(&text, &widget(), ALL).unwrap(), arrived(sent.clone())] {
            assert_eq!((arrived.item.shared, arrived.item.changed.as_deref()), (true, Some("2026-01-01T00:00:01Z")));
        }
        let none = Extract { shared: false, essence: false, ..ALL };
        let read = Arrived::read(&text, &widget(), none).unwrap().item;
        assert_eq!((read.shared, read.changed), (false, None));
    }

    #[test]
    fn labels_are_found_and_labels_that_are_not_text_are_skipped() {
        let item = arrived(object()).item;
        let wanted = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
        assert!(item.carries(&wanted("a", "1")));
        assert!(!item.carries(&wanted("a", "2")));
        assert!(!item.carries(&wanted("odd", "3")));
        assert!(item.carries(&[]));
    }

    #[test]
    fn an_object_without_identity_is_an_error_that_names_the_field() {
        for (field, value) in [("name", json!(1)), ("uid", json!("")), ("resourceVersion", json!("x"))] {
            let mut object = object();
            object["metadata"][field] = value;
            assert_eq!(Arrived::new(object, &widget(), ALL).unwrap_err(), Malformed::Field(field));
        }
        for odd in [json!(null), json!([]), json!({"metadata": []}), json!({})] {
            assert!(Arrived::new(odd, &widget(), ALL).is_err());
        }
    }

    #[test]
    fn the_owner_is_the_controller_among_the_references() {
        let mut object = object();
        let reference = |name: &str, controller: Value| {
            json!({"apiVersion": "x.io/v1", "kind": "Widget", "name": name,
            "uid": name, "controller": controller})
        };
        object["metadata"]["ownerReferences"] =
            json!([reference("a", json!(null)), "odd", reference("b", json!(true))]);
        assert_eq!(owner_of(&object).unwrap().name, "b");
        assert_eq!(arrived(object).item.owner.as_deref(), Some("b"));
    }
}
