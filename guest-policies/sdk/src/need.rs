//! Asking for other objects.

use crate::types::{Need, Reference, ResourceType, Selector, Target};

/// A type, for claims and selectors.
pub fn resource_type(api_version: &str, kind: &str) -> ResourceType {
    ResourceType { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

/// An object in the namespace of the primary object.
pub fn reference(api_version: &str, kind: &str, name: &str) -> Reference {
    Reference { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, name: name.to_owned() }
}

/// An object in another namespace; reading it takes a grant.
pub fn reference_in(namespace: &str, api_version: &str, kind: &str, name: &str) -> Reference {
    Reference { namespace: Some(namespace.to_owned()), ..reference(api_version, kind, name) }
}

/// The object that `reference` names, under the policy's own `id`.
pub fn named(id: impl Into<String>, reference: Reference) -> Need {
    Need { id: id.into(), target: Target::Named(reference) }
}

/// All objects of a type in the namespace of the primary object that carry all of `labels`.
pub fn labelled(id: impl Into<String>, of: ResourceType, labels: &[(&str, &str)]) -> Need {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Need { id: id.into(), target: Target::Labelled(Selector { of, namespace: None, labels }) }
}
