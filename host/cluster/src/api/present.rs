//! Renders objects at the requested version: as whole objects, as metadata only, or as a table.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use crate::{
    catalogue::{Family, Resource},
    kinds, schema,
    storage::revision_of,
};

/// The output format that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presentation {
    Whole,
    #[cfg(feature = "kubectl")]
    Table,
    Metadata,
}

impl Presentation {
    /// Reads an `Accept` header. Returns `Whole` if the header names no known format.
    pub(crate) fn of_accept(accept: &str) -> Self {
        for part in accept.split(',') {
            if part.contains("protobuf") || part.contains("cbor") {
                continue;
            }
            #[cfg(feature = "kubectl")]
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

    /// Returns whether the header `Accept` names a media type that the server can send.
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

/// Converts a stored object to the version of `resource`.
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
            // Remove fields that the CustomResourceDefinition no longer declares. A user can change the
            // CustomResourceDefinition after the last write of the object.
            schema::prune::prune(&mut object, &resource.node);
            schema::defaults::fill(&mut object, &resource.node);
            Arc::new(object)
        }
        _ => Arc::clone(object),
    }
}

/// Returns the object with the field names of the requested API group, because field selectors use these names.
pub(super) fn in_shape<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.family == Family::NewEvent {
        Cow::Owned(kinds::event_from_stored(object))
    } else {
        Cow::Borrowed(object)
    }
}

/// Returns only the metadata of an object.
pub(crate) fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}
