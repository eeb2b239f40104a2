//! The form in which objects are shown: at the version that was asked for, and whole, as metadata or as a table.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use crate::{
    catalogue::{Family, Resource},
    kinds, schema,
    storage::revision_of,
};

/// What a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Table,
    Metadata,
}

impl Form {
    /// Reads an `Accept` header; `None` when nothing in it is served.
    pub(crate) fn of_accept(accept: &str) -> Self {
        for part in accept.split(',') {
            if part.contains("protobuf") || part.contains("cbor") {
                continue;
            }
            if part.contains("as=Table") {
                return Self::Table;
            }
            if part.contains("as=PartialObjectMetadata") {
                return Self::Metadata;
            }
            if part.contains("application/json") || part.contains("*/*") {
                return Self::Whole;
            }
        }
        Self::Whole
    }

    /// Whether anything that is accepted is served.
    pub(crate) fn acceptable(accept: &str) -> bool {
        accept.is_empty()
            || accept.split(',').any(|part| {
                let part = part.split(';').next().unwrap_or_default().trim();
                matches!(
                    part,
                    "application/json" | "*/*" | "application/*" | "application/yaml" | "text/plain" | "text/*"
                )
            })
    }
}

/// A stored object at the version of `resource`.
pub(crate) fn present(resource: &Resource, object: &Arc<Value>) -> Arc<Value> {
    match resource.family {
        Family::NewEvent => Arc::new(kinds::event_from_stored(object)),
        Family::Custom => {
            let outdated = resource.custom.as_ref().is_some_and(|custom| revision_of(object) < custom.since);
            if !outdated && object["apiVersion"] == *resource.api_version() {
                return Arc::clone(object);
            }
            let mut object = (**object).clone();
            object["apiVersion"] = json!(resource.api_version());
            // The definition changed after the object was written.
            schema::prune::prune(&mut object, &resource.node);
            schema::defaults::fill(&mut object, &resource.node);
            Arc::new(object)
        }
        _ => Arc::clone(object),
    }
}

/// The shape that field selectors look at.
pub(super) fn in_shape<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.family == Family::NewEvent {
        Cow::Owned(kinds::event_from_stored(object))
    } else {
        Cow::Borrowed(object)
    }
}

/// An object's metadata alone.
pub(crate) fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}
